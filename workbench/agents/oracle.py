"""The oracle: runs a task's own reference solution, as Harbor does. Only for checking tasks; it is no policy."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping

from workbench.agents import Budget
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import Episode, Turn

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SOLVE = "bash /solution/solve.sh; code=$?; rm -rf /solution; exit $code"


class Oracle:
    """Puts the step's `solution/` folder at /solution, runs `bash /solution/solve.sh`, and removes the folder again.

    The exit code is recorded and decides nothing (Harbor's rule: only the verifier grades). The [solution] env of
    task.toml is set; its `${NAME}` and `${NAME:-default}` take the host's value only of names in `host_env`, since a
    task is not to be trusted with the host's keys (Harbor takes any). Without a value or default the variable is unset.
    """

    name = "oracle"
    model = ""

    def __init__(self, host_env: tuple[str, ...] = ()):
        self.host_env = host_env

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        """Run the solution for at most budget.seconds. Raises SandboxError."""
        if step.solution is None or not (step.solution / "solve.sh").is_file():
            return Episode(
                self.name, ended_by="error", error="the task has no solution/solve.sh", instruction=step.instruction
            )
        started = time.monotonic()
        sandbox.put(step.solution, "/solution")
        try:
            env = self._env(task.config.get("solution") or {})
            result = sandbox.exec(["bash", "-c", _SOLVE], env=env, timeout=budget.seconds)
        except BaseException:
            sandbox.exec(["rm", "-rf", "/solution"])
            raise
        if result.killed_by:  # the line above did not come to its end
            sandbox.exec(["rm", "-rf", "/solution"])
        turn = Turn(
            index=0,
            command="bash /solution/solve.sh",
            observation=result.output,
            exit_code=result.exit_code,
            command_seconds=time.monotonic() - started,
            extra={"killed_by": result.killed_by} if result.killed_by else {},
        )
        ended = "time" if result.killed_by == "time" else "submit"
        return Episode(self.name, (turn,), submitted=ended == "submit", ended_by=ended, instruction=step.instruction)

    def _env(self, solution: Mapping[str, object]) -> dict[str, str]:
        given = {str(k): str(v) for k, v in (solution.get("env") or {}).items()}
        host = {name: os.environ[name] for name in self.host_env if name in os.environ}
        filled = {k: _fill(v, host) for k, v in given.items()}
        return {k: v for k, v in filled.items() if v is not None}


def _fill(text: str, host: Mapping[str, str]) -> str | None:
    """`text` with its variables replaced; None when one of them has neither value nor default."""
    found = _VARIABLE.findall(text)
    if any(name not in host and f"${{{name}}}" in text for name, _ in found):
        return None
    return _VARIABLE.sub(lambda m: host.get(m[1], m[2] or ""), text)
