"""The terminal agent: one model, one bash tool, a plain-text action protocol (workbench.agents.protocol)."""

from __future__ import annotations

import time
from dataclasses import replace

from workbench.agents import Budget
from workbench.agents.prompts import PROMPTS, Prompt
from workbench.agents.protocol import Action, observation, parse_action
from workbench.agents.shell import Shell
from workbench.agents.turns import turn_of
from workbench.models import ContextFull, Message, Model, OutOfTime, Reply, Sampling
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import EndedBy, Episode, Turn

MALFORMED_LIMIT = 3  # turns in a row that ask for nothing


class TerminalAgent:
    """Asks `model` for a turn, runs its one bash block, shows what came of it, until submission or a limit.

    prompt: a name in prompts.PROMPTS ("standard"; "small" for models of about 100M weights) or a Prompt.
    sampling.seed: None draws freely; a number makes turn t of an episode use seed + t.
    Limits: see agents.Budget. Its seconds bound every reply and every command too. A turn that is no action gets an
    observation that says what is expected; the third in a row ends the episode ("malformed").
    """

    name = "terminal"

    def __init__(
        self, model: Model, *, sampling: Sampling = Sampling(max_tokens=2048), prompt: str | Prompt = "standard"
    ):
        if isinstance(prompt, str) and prompt not in PROMPTS:
            raise ValueError(
                f"no prompt {prompt!r}: use one of {sorted(PROMPTS)}, or give a workbench.agents.prompts.Prompt"
            )
        self.prompt = PROMPTS[prompt] if isinstance(prompt, str) else prompt
        self._model, self.sampling, self.model = model, sampling, model.name

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        """Act at one step. SandboxError and ModelError pass through, but for ContextFull and OutOfTime."""
        return _Run(self, step, sandbox, budget).play()

    def ask(self, messages: list[Message], sampling: Sampling) -> Reply:
        return self._model.reply(messages, sampling)


class _Run:
    """The state of one episode."""

    def __init__(self, agent: TerminalAgent, step: Step, sandbox: Sandbox, budget: Budget):
        self.agent, self.step, self.budget = agent, step, budget
        self.shell = Shell(sandbox)
        self.messages = agent.prompt.opening(step.instruction)
        self.turns: list[Turn] = []
        self.deadline = time.monotonic() + budget.seconds
        self.tokens = self.malformed = 0

    def play(self) -> Episode:
        ended: EndedBy | None = None
        while ended is None:
            ended = self._limit() or self._turn()
        return Episode(
            agent=self.agent.name,
            turns=tuple(self.turns),
            model=self.agent.model,
            submitted=ended == "submit",
            ended_by=ended,
            system=self.agent.prompt.system,
            instruction=self.step.instruction,
        )

    def _limit(self) -> EndedBy | None:
        if self._left() <= 0:
            return "time"
        if len(self.turns) >= self.budget.turns:
            return "turns"
        return "tokens" if self.tokens >= self.budget.tokens else None

    def _left(self) -> float:
        return self.deadline - time.monotonic()

    def _turn(self) -> EndedBy | None:
        try:
            reply = self.agent.ask(self.messages, self._sampling())
        except ContextFull:
            return "context"
        except OutOfTime:
            return "time"
        self.tokens += reply.completion_tokens
        action = parse_action(reply.text)
        if self._left() <= 0 and not action.submit:  # too late to run anything
            self._note(reply, action)
            return "time"
        return self._act(reply, action)

    def _sampling(self) -> Sampling:
        wanted, number = self.agent.sampling, len(self.turns)
        return replace(
            wanted,
            max_tokens=min(wanted.max_tokens, self.budget.tokens - self.tokens),
            seconds=min(self._left(), wanted.seconds if wanted.seconds is not None else float("inf")),
            seed=None if wanted.seed is None else wanted.seed + number,
        )

    def _act(self, reply: Reply, action: Action) -> EndedBy | None:
        if action.submit:
            self._note(reply, action)
            return "submit"
        prompt = self.agent.prompt
        if action.command is None:
            self.malformed += 1
            shown = prompt.malformed.replace("{problem}", action.problem.capitalize())
            self._note(reply, action, shown)
            return "malformed" if self.malformed >= MALFORMED_LIMIT else None
        self.malformed = 0
        started = time.monotonic()
        result = self.shell.run(action.command, min(self.budget.command_seconds, max(self._left(), 0.1)))
        shown = prompt.observation.replace("{observation}", observation(result, prompt.observation_chars))
        self._note(reply, action, shown, exit_code=result.exit_code, command_seconds=time.monotonic() - started)
        return None

    def _note(self, reply: Reply, action: Action, shown: str = "", **more: object) -> None:
        extra = {"problem": action.problem} if action.problem else {}
        if reply.finish != "stop":
            extra["finish"] = reply.finish
        command = action.command if "exit_code" in more else None
        self.turns.append(turn_of(reply, len(self.turns), command=command, observation=shown, extra=extra, **more))
        self.messages.append({"role": "assistant", "content": reply.text})
        self.messages.append({"role": "user", "content": shown})
