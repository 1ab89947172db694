"""The host's side of a proposer's tools: what each call does, with whose slots, and what is counted.

A task comes as files over the socket and is written anew on the host (workbench.proposer.tools_wire), so no call ever
reads the proposer's own sandbox, which is busy with the very command that asks. Child trials are for the proposer's eyes:
they are in no journal and in no training batch. Their words are cleaned before they are shown.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from workbench.agents import Agent, Budget
from workbench.proposer.limits import Caps, Charge, Meter, Notes, Refused, Slots, working
from workbench.proposer.tools_server import Answer, Request
from workbench.proposer.tools_text import rewards, shown, verdict
from workbench.proposer.web import Web, WebRefused
from workbench.sandboxes import Backend, Mount, SandboxError, SandboxOverrun
from workbench.tasks import Task, TaskError, load_task
from workbench.trials import Trial, plain
from workbench.trials.batch import Watch
from workbench.trials.outcomes import Cancelled, judge_error
from workbench.trials.run import run_trial
from workbench.trials.setting import agent_env, agent_limits, prepare

_SECONDS = 600.0  # of one command or reference solution, at most


class WorldLibrary(Protocol):
    """Latent worlds for the `worlds` tool. The library draws the seed, from the training partition; a caller cannot."""

    def list(self) -> str:
        """The generators, their tiers and corruptions, as text."""

    def compose(self, generator: str, tier: str, corruptions: Sequence[str], target: Path, *, draw: object) -> Path:
        """Write a task at `target` (new). draw: names the draw; the same name gives the same task again, so that an episode
        that is played again sees what it saw. ValueError says what is wrong with the choice."""


@dataclass(frozen=True)
class SolverTool:
    """How `solver_model` rolls out. agent_factory: the current solver of an attempt's number (one policy version for a
    whole episode: it is asked for once an attempt, so give a factory that is bound to a version)."""

    agent_factory: Callable[[int], Agent]
    rollouts: int = 4
    budget: Budget = Budget()


@dataclass
class Toolbox:
    """What the tools of every episode share. networks: what a task may declare; a task with the public network would be a
    way around the web rules."""

    backend: Backend
    slots: Slots = field(default_factory=Slots)
    caps: Caps = Caps()
    solver: SolverTool | None = None
    web: Web | None = None
    worlds: WorldLibrary | None = None
    networks: tuple[str, ...] = ("no-network",)

    def offered(self) -> dict[str, int]:
        """Tool → calls in an episode, of those that this run really has."""
        missing = {"solver_model": self.solver is None, "worlds": self.worlds is None}
        missing |= {"web_search": self.web is None or self.web.search_client is None}
        missing |= {"web_fetch": self.web is None or self.web.fetch_client is None}
        return {tool: n for tool, n in self.caps.calls.items() if n and not missing.get(tool)}


@dataclass(frozen=True)
class Validation:
    """One verdict of `validate`, as the host saw it."""

    digest: str
    which: str
    reward: float | None
    outcome: str


class ToolDesk:
    """Answers one episode's calls. key: of the episode; child rollouts draw their numbers from it, not from the gate's."""

    def __init__(self, toolbox: Toolbox, key: str, notes: Notes):
        self.box, self.key, self.notes = toolbox, key, notes
        self.meter = Meter(replace(toolbox.caps, calls=toolbox.offered()))
        self.validations: list[Validation] = []
        self.cancel = threading.Event()
        self.watch = Watch(self.cancel)

    def close(self) -> None:
        """End every child that still runs."""
        self.watch.abort()

    def answer(self, request: Request) -> Answer:
        """As ToolServer's `handle`. Refused passes through; whatever else fails is told as the host's failure."""
        tools = {"build": self._build, "run": self._run, "validate": self._validate, "solver_model": self._solver_model,
                 "web_search": self._web, "web_fetch": self._web, "worlds": self._worlds}  # fmt: skip
        if request.tool not in tools:
            self.notes.add("unknown-tool")
            return Answer(f"refused: no tool {plain(request.tool[:80])!r}: there are {', '.join(tools)}", False, 64)
        with self.meter.call(request.tool) as charge:
            try:
                return tools[request.tool](request, charge)
            except (SandboxError, Cancelled) as error:
                if isinstance(error, SandboxOverrun):
                    return Answer(f"the sandbox died: {plain(str(error))}", False, 1)
                return Answer(f"the host could not do it: {plain(str(error))[:500]}; try once more", False, 74)

    # ------------------------------------------------------------------ tasks

    def _task(self, request: Request) -> Task:
        """The task that was sent, checked as the gate does. Broken raises what is answered."""
        if request.folder is None:
            raise Refused("no-task", "this tool needs a task's folder")
        if not request.folder.is_dir():
            raise Refused("no-task", "the folder is empty")
        try:
            task = load_task(request.folder)
        except TaskError as error:
            faults = "\n".join(f"- {f.kind}: {f.where + ': ' if f.where else ''}{f.message}" for f in error.faults)
            raise _Broken(f"the task's files are not in order:\n{faults}") from None
        for who, mode in (("the agent's", task.network), ("the verifier's", task.verifier_network)):
            if mode not in self.box.networks:
                self.notes.add("task:network")
                raise _Broken(f'{who} network_mode is "{mode}"; write network_mode = "no-network"')
        return task

    @contextmanager
    def _backend(self, request: Request, charge: Charge) -> Iterator[Backend]:
        """The back end, with a slot held; what it starts ends with the episode."""
        slot = self.box.slots.hold("task", request.wanted)
        with slot, working(charge), self.watch.over(self.box.backend) as backend:
            yield backend

    def _build(self, request: Request, charge: Charge) -> Answer:
        try:
            task = self._task(request)
            with self._backend(request, charge) as backend:
                setting = prepare(self._in_time(task), backend)
        except _Broken as error:
            return error.answer()
        except Exception as error:
            return _judged(error)
        bases = ", ".join(f"{k} is {v}" for k, v in setting.agent.stands_for.items())
        return Answer(f"the files are in order and the image is built ({bases or 'no base was replaced'})")

    def _run(self, request: Request, charge: Charge) -> Answer:
        command = request.args.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return Answer("run needs a shell command", False, 64)
        try:
            task = self._task(request)
            with self._backend(request, charge) as backend:
                return self._run_in(backend, task, command, request.args)
        except _Broken as error:
            return error.answer()
        except (SandboxError, Cancelled, Refused):
            raise
        except Exception as error:
            return _judged(error)

    def _run_in(self, backend: Backend, task: Task, command: str, args: Mapping[str, Any]) -> Answer:
        image = prepare(self._in_time(task), backend).agent
        step, tests = task.steps[0], bool(args.get("tests"))
        mounts = [Mount(step.tests, "/tests")] if tests and step.tests.is_dir() else []
        mounts += [Mount(step.solution, "/solution")] if args.get("solution") and step.solution is not None else []
        box = backend.start(image, limits=agent_limits(task), mounts=mounts, env=agent_env(task), verifier=tests)
        try:
            if tests:
                box.exec(["mkdir", "-p", "/logs/verifier"])
            result = box.exec(command, timeout=self._seconds())
        finally:
            box.stop()
        limit = f"; it passed the {result.killed_by} limit" if result.killed_by else ""
        return Answer(
            f"[exit code {result.exit_code}{limit}]\n{shown(result.output)}", exit_code=result.exit_code & 0xFF
        )

    def _validate(self, request: Request, charge: Charge) -> Answer:
        which = request.args.get("which")
        if which not in ("oracle", "noop"):
            return Answer("validate needs `oracle` or `noop`", False, 64)
        try:
            task = self._task(request)
        except _Broken as error:
            return error.answer()
        from workbench.agents.noop import NoOp
        from workbench.agents.oracle import Oracle

        seconds = self._seconds()
        budget = Budget(turns=1, seconds=seconds, command_seconds=seconds)
        with self.box.slots.hold("task", request.wanted), working(charge):
            trial = self._trial(self._in_time(task), Oracle() if which == "oracle" else NoOp(), budget)
        if trial.outcome == "infra":
            raise SandboxError(f"{trial.reason}: {trial.message[:300]}")
        self.validations.append(Validation(task.digest, which, trial.reward, trial.outcome))
        return verdict(which, trial)

    def _trial(self, task: Task, agent: Agent, budget: Budget, **more: Any) -> Trial:
        with self.watch.over(self.box.backend) as backend:
            return run_trial(task, agent, backend, budget=budget, cancel=self.cancel, **more)

    def _solver_model(self, request: Request, charge: Charge) -> Answer:
        solver = self.box.solver
        assert solver is not None  # `offered` says so, and the meter has asked it
        try:
            task = self._task(request)
        except _Broken as error:
            return error.answer()
        seconds = min(solver.budget.seconds, self._seconds())
        budget, call = replace(solver.budget, seconds=seconds), self.meter.calls["solver_model"]

        def attempt(i: int) -> Trial:
            number = zlib.crc32(f"{self.key}-tool-{call}-{i}".encode())
            with self.box.slots.hold("solver", request.wanted):
                return self._trial(
                    self._in_time(task), solver.agent_factory(number), budget, admitted=True, seed=number
                )

        with ThreadPoolExecutor(min(solver.rollouts, self.box.slots.size["solver"])) as threads:
            trials = list(threads.map(attempt, range(solver.rollouts)))
        charge.working += sum(t.seconds for t in trials)
        charge.usd += sum(t.usd for t in trials)
        return rewards(trials)

    def _in_time(self, task: Task) -> Task:
        """The task with a build time that the episode still has."""
        return replace(task, build_timeout=min(task.build_timeout, self._seconds()))

    def _seconds(self) -> float:
        return max(1.0, min(_SECONDS, self.meter.left()))

    # ------------------------------------------------------------ web, worlds

    def _web(self, request: Request, charge: Charge) -> Answer:
        assert self.box.web is not None
        try:
            with working(charge):
                if request.tool == "web_search":
                    text, usd = self.box.web.search(str(request.args.get("query", ""))[:1000])
                else:
                    text, usd = self.box.web.fetch(str(request.args.get("url", ""))[:4000])
        except WebRefused as error:
            self.notes.add(error.kind)
            return Answer(f"refused: {plain(str(error))}", False, 1, {"kind": error.kind})
        charge.usd += usd
        return Answer(plain(text)[:20_000])

    def _worlds(self, request: Request, charge: Charge) -> Answer:
        library, args = self.box.worlds, request.args
        assert library is not None
        asked = args.get("corruptions") or []
        if not isinstance(asked, list) or not all(isinstance(c, str) for c in asked):
            self.notes.add("garbage")
            return Answer("worlds: corruptions are a list of names", False, 64)
        draw = f"{self.key}-{self.meter.calls['worlds']}"
        with self.box.slots.hold("task", request.wanted), working(charge):
            if args.get("action") == "list":
                return Answer(shown(library.list()))
            chosen, target = (str(args.get("generator")), str(args.get("tier"))), request.scratch / "world"
            try:
                made = library.compose(*chosen, asked[:32], target, draw=draw)
            except ValueError as error:
                return Answer(f"refused: {plain(str(error))}", False, 64)
        return Answer("composed; the host chose the seed. Validate it, and change it as you like", folder=made)


class _Broken(ValueError):
    """The task itself is wrong: no failure of a tool, which has found it."""

    def answer(self) -> Answer:
        return Answer(shown(str(self)), exit_code=1)


def _judged(error: Exception) -> Answer:
    judged = judge_error(error)
    if isinstance(error, (Refused, Cancelled)) or judged.outcome != "task":
        raise error if isinstance(error, (Refused, Cancelled)) else SandboxError(judged.message)
    return Answer(f"the task cannot be built ({judged.reason}): {shown(judged.message)}", exit_code=1)
