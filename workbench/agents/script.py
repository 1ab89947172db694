"""An agent that runs given commands: partial and wrong solutions, and episodes for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.agents import Budget
from workbench.agents.protocol import observation
from workbench.agents.shell import Shell
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import EndedBy, Episode, Turn


class ScriptedAgent:
    """Runs `commands` one after another, one a turn, in one carried-over shell state, then submits.

    A failing command does not end it; the budget's turns and seconds do."""

    model = ""

    def __init__(self, commands: Sequence[str], *, name: str = "script"):
        self.commands, self.name = tuple(commands), name

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedAgent:
        """A `.json` file with a list of commands, or any other file as one shell script. Raises ValueError, OSError."""
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".json":
            return cls([text], name=f"script:{path.name}")
        try:
            commands = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
        if not isinstance(commands, list) or not all(isinstance(c, str) for c in commands):
            raise ValueError(f"{path}: expected a JSON list of shell commands")
        return cls(commands, name=f"script:{path.name}")

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        shell, deadline = Shell(sandbox), time.monotonic() + budget.seconds
        turns: list[Turn] = []
        ended: EndedBy = "submit"
        for index, command in enumerate(self.commands):
            left = deadline - time.monotonic()
            if index >= budget.turns or left <= 0:
                ended = "time" if left <= 0 else "turns"
                break
            result = shell.run(command, min(budget.command_seconds, left))
            turns.append(
                Turn(
                    index=index,
                    text=command,
                    command=command,
                    observation=observation(result, 8000),
                    exit_code=result.exit_code,
                    command_seconds=result.seconds,
                )
            )
        return Episode(
            self.name, tuple(turns), submitted=ended == "submit", ended_by=ended, instruction=step.instruction
        )
