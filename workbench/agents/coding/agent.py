"""One coding agent as an Agent: started in the sandbox, served by a relay, and judged by its last stop reason."""

from __future__ import annotations

import shlex
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.agents import Budget
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import install
from workbench.agents.coding.programs import HOME, PROGRAMS, Start
from workbench.agents.coding.relay import Call, Record, Relay
from workbench.models import BudgetExceeded, ModelError
from workbench.sandboxes import ExecResult, Mount, Sandbox, SandboxError
from workbench.tasks import Step, Task
from workbench.traces import EndedBy, Episode, Turn

MAX_LOGS = 64 << 20
_TAIL = 1500
_ABSENT, _ABSENT_WORD = 97, "the agent's program is absent"


class CodingAgent:
    """Claude Code, Codex or Pi at one step of a task.

    name: "claude-code", "codex" or "pi". endpoint: where its model answers, in the format that it speaks (messages,
    responses, chat completions). context: the model's context window in tokens (Pi and Codex want to know it; Claude
    Code goes by the model's name). keep_logs: a folder of the host for the agent's own session files, for `workbench
    traces import`; they come from the sandbox, and a policy can write what it likes into them.

    Budget: `turns` are answered model calls and `tokens` sampled ones, counted by the relay, which then answers with an
    error that ends the agent; `seconds` end it from outside; `command_seconds` hold for Claude Code's and Pi's shell
    (Codex ends its commands by limits of its own).
    """

    def __init__(self, name: str, endpoint: Endpoint, *, context: int = 200_000, keep_logs: str | Path | None = None):
        if name not in PROGRAMS:
            raise ValueError(f"no coding agent {name!r}: use one of {', '.join(PROGRAMS)}")
        self.name, self.model, self.endpoint, self.context = name, endpoint.model, endpoint, context
        self.program = PROGRAMS[name]
        self.keep_logs = Path(keep_logs) if keep_logs is not None else None

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a sandbox of this agent has to be started with; installs the agent when it is not there."""
        return (Mount(install(self.program.package), self.program.root, shared=True),)

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        """Act at one step. Raises ModelError when the endpoint could not be asked (also BudgetExceeded), SandboxError
        when the agent's program did not start or the sandbox cannot be served."""
        relay = self._relay(sandbox, budget)
        try:
            url = f"http://127.0.0.1:{relay.server.server_address[1]}"
            start = self.program.start(self.program, url, self.model, self.context, budget)
            result = self._execute(sandbox, start, step.instruction, relay.deadline)
        finally:
            record = relay.close()
        return self._episode(step, record, result)

    def _relay(self, sandbox: Sandbox, budget: Budget) -> Relay:
        listen = getattr(sandbox, "listen", None)
        if listen is None:
            raise SandboxError(
                f"{self.name} needs a sandbox whose loopback the host can serve: bubblewrap or docker, not "
                f"{sandbox.image.backend}"
            )
        listening = listen()
        try:
            return Relay(listening, self.program.wire, self.endpoint, budget, time.monotonic() + budget.seconds)
        except BaseException:
            listening.close()
            raise

    def _execute(self, sandbox: Sandbox, start: Start, instruction: str, deadline: float) -> ExecResult:
        """One command from start to end, which also removes what is the agent's own: no part of its work."""
        line = ["/bin/sh", "-c", _script(start.files, keep=self.keep_logs is not None), "sh", *start.argv]
        left = max(deadline - time.monotonic(), 0.1)
        result = sandbox.exec(line, env=start.env, stdin=instruction.encode(), timeout=left)
        if result.exit_code == _ABSENT and _ABSENT_WORD in result.stderr:
            raise SandboxError(f"{self.name} is not in the sandbox: start it with mounts=agent.mounts")
        if self.keep_logs is not None:
            self._copy_logs(sandbox, self.keep_logs / f"{self.name}-{uuid.uuid4().hex[:12]}")
        if self.keep_logs is not None or result.killed_by:
            sandbox.exec(["rm", "-rf", HOME])
        return result

    def _copy_logs(self, sandbox: Sandbox, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            sandbox.get(f"{HOME}/{self.program.logs}", target, max_bytes=MAX_LOGS)
        except (FileNotFoundError, ValueError):  # never started, or more than a log would be
            shutil.rmtree(target, ignore_errors=True)

    # ---------------------------------------------------------------- record

    def _episode(self, step: Step, record: Record, result: ExecResult) -> Episode:
        if record.over:
            raise BudgetExceeded(record.over)
        if record.failure:
            raise ModelError(f"{self.name}: {record.failure}")
        ended, error = _ended(record, result)
        if ended == "error" and not record.calls and record.problem is None:
            raise SandboxError(
                f"{self.name} asked for nothing and ended with exit code {result.exit_code}: {_said(result)}"
            )
        turns = tuple(_turn(index, call) for index, call in enumerate(record.calls))
        if record.refused or record.in_flight:
            turns = _noted(turns, record)
        return Episode(
            agent=self.name,
            turns=turns,
            model=self.model,
            submitted=ended == "submit",
            ended_by=ended,
            error=error,
            system=record.system,
            instruction=step.instruction,
        )


def _script(files: Mapping[str, str], *, keep: bool) -> str:
    """A shell script that makes the agent's home as the user that it runs as, and runs it. keep: the home stays."""
    lines = [
        f'if ! test -x "$1"; then echo {shlex.quote(_ABSENT_WORD)} >&2; exit {_ABSENT}; fi',
        f"rm -rf {HOME}; umask 077; mkdir -p {HOME}/tmp",
    ]
    for name, text in files.items():
        lines.append(f"printf %s {shlex.quote(text)} > {HOME}/{name}; chmod 700 {HOME}/{name}")
    ending = 'exec "$@"' if keep else f'"$@"; code=$?; rm -rf {HOME}; exit $code'
    return "\n".join([*lines, "umask 022", ending])


def _ended(record: Record, result: ExecResult) -> tuple[EndedBy, str]:
    """What ended an episode: a limit, else the last reply's stop reason. Exit codes mean something else to each agent
    (and nothing to Pi), so they are not looked at."""
    if result.killed_by == "time":
        return "time", ""
    if record.stopped is not None:
        return record.stopped, ""
    if record.problem is not None:
        kind, message = record.problem
        return ("context", message) if kind == "context" else ("error", f"the endpoint refused the request: {message}")
    last = record.calls[-1].said if record.calls else None
    if last is not None and last.finish == "stop":
        return "submit", ""
    if result.killed_by:
        return "error", f"the agent was killed: it passed the {result.killed_by} limit"
    if last is not None and last.finish == "length":
        return "error", "the last reply was cut at its token limit"
    if last is not None and last.finish == "refused":
        return "error", "the model refused to answer"
    return "error", f"the agent ended in the middle of its work: {_said(result)}"


def _said(result: ExecResult) -> str:
    text = (result.stderr.strip() or result.stdout.strip())[-_TAIL:]
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _turn(index: int, call: Call) -> Turn:
    """One model call: what it said, the commands that it asked for, and what its tools showed it.

    command: shell commands as they are, other tools as their name and arguments. extra: the calls, as the model wrote
    them, and the stop reason."""
    said = call.said
    commands = [c.command() if c.command() is not None else f"{c.name} {c.arguments}" for c in said.calls]
    extra: dict[str, object] = {"finish": said.finish}
    if said.calls:
        extra["calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in said.calls]
    if call.detached:
        extra["detached"] = True  # not to be trained on: a command of the policy's may have asked it
    if said.thinking:
        extra["thinking"] = said.thinking
    if any(r.error for r in call.results):
        extra["errors"] = [r.call for r in call.results if r.error]
    return Turn(
        index=index,
        text=said.text,
        command="\n".join(commands) if commands else None,
        observation="\n".join(r.text for r in call.results),
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
        usd=call.usd,
        model_seconds=call.seconds,
        command_seconds=call.next_asked - call.ended if call.next_asked is not None and said.calls else 0.0,
        extra=extra,
    )


def _noted(turns: tuple[Turn, ...], record: Record) -> tuple[Turn, ...]:
    """What the relay refused, and whether a call was given up, stands at the last turn."""
    if not turns:
        return turns
    more: dict[str, object] = {"refused": record.refused} if record.refused else {}
    if record.in_flight:
        more["given_up"] = "a call was in flight at the end: its tokens and price are not known"
    return (*turns[:-1], replace(turns[-1], extra={**turns[-1].extra, **more}))
