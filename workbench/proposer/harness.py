"""The `harness` method: an agent that designs environments inside a sandbox, with a workspace and the host's tools.

AutoEnvScaling §3.1 and Fig. 18, appendices D and E. The agent is any `workbench.agents.Agent`; it acts in a sandbox without
network. Its tools reach the host over one socket, where they are counted and capped. What it leaves in `env_NNN/` is taken
out and is the proposal; whether that is any good is admission's to say, and nothing that happened inside is believed.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from workbench.agents import Agent, Budget
from workbench.proposer import Assignment, Proposal, violations
from workbench.proposer.limits import Notes
from workbench.proposer.store import PARTS, HarnessStore
from workbench.proposer.submission import Taken, take
from workbench.proposer.tools import Toolbox, ToolDesk
from workbench.proposer.tools_server import ToolServer
from workbench.proposer.tools_wire import WireLimits
from workbench.proposer.workspace import WORK, Past, assignment_text, instruction, mounts, write_fixed, write_past
from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, Image, Limits, Sandbox, SandboxOverrun
from workbench.tasks import Step, Task, TaskError, load_task
from workbench.traces import Episode

IMAGE = Path(__file__).with_name("image")
# Table 10 gives the paper's sandbox sizes without saying whose; these are ours, for many episodes on one machine.
SANDBOX = Limits(cpus=1.0, memory_mb=1024, disk_mb=1024, processes=256)
EPISODE = Budget(turns=64, tokens=131_072, seconds=3600.0, command_seconds=900.0)


@dataclass(frozen=True)
class HarnessSettings:
    """budget: of one episode; its command_seconds must outlast the longest tool call with its waiting. limits: of the
    proposer's own sandbox. max_bytes, max_files: of a submission. wire: bounds of a tool's request."""

    budget: Budget = EPISODE
    limits: Limits = SANDBOX
    max_bytes: int = 64 << 20
    max_files: int = 4_000
    wire: WireLimits = WireLimits()


@dataclass
class _Rooms:
    """What all episodes share on the host: the fixed parts, and the past of the round."""

    folder: Path
    past: Path | None = None
    rounds: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class HarnessProposer:
    """Lets an agent design environments. Safe from many threads: one sandbox, one socket and one tool desk an episode.

    agent: an Agent, or a function from the episode's seed to one. backend: where the proposer's sandbox runs; its mounts must
    be able to carry a socket (bubblewrap, a local Docker engine). toolbox: what the tools may use and run in; default:
    bubblewrap without network in builds, no solver, no web, no worlds. store: where memory/ and tools/ are kept (default: a
    folder that goes with this object).
    """

    def __init__(
        self,
        agent: Agent | Callable[[int], Agent],
        *,
        backend: Backend | None = None,
        toolbox: Toolbox | None = None,
        store: HarnessStore | str | Path | None = None,
        settings: HarnessSettings = HarnessSettings(),
        name: str | None = None,
    ):
        self.backend, self.toolbox = places(backend, toolbox)
        self.settings = settings
        self._agent: Callable[[int], Agent] = (lambda seed: agent) if isinstance(agent, Agent) else agent
        self._temporary = TemporaryDirectory(prefix=prefix("harness"))
        home = Path(self._temporary.name)
        self.store = store if isinstance(store, HarnessStore) else HarnessStore(store or home / "store")
        self._rooms = _Rooms(home / "shared")
        self._last: dict[str, Path] = {}
        self._image: Image | None = None
        first = self._agent(0)
        self.name = name or f"harness:{first.name}" + (f":{first.model}" if first.model else "")

    def refresh(self, past: Iterable[Past]) -> None:
        """The pool as the next episodes see it (each round). Episodes in flight keep what they have."""
        with self._rooms.lock:
            self._rooms.rounds += 1
            folder = self._rooms.folder / f"past-{self._rooms.rounds}"
        write_past(folder, past)
        with self._rooms.lock:
            self._rooms.past = folder

    def close(self) -> None:
        """Remove this object's own temporary files."""
        self._temporary.cleanup()

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        """One episode. With `feedback` it begins with the version that this proposer answered the assignment with last.
        ModelError and SandboxError pass through."""
        began, notes = time.monotonic(), Notes()
        desk = ToolDesk(self.toolbox, f"{assignment.run_id}-{assignment.id}-{seed}", notes)
        episode, taken, version = Episode(self.name), Taken(None, "no-files", "the episode did not begin"), None
        try:
            with ExitStack() as stack:
                run = _Run(self, assignment, target, seed, feedback, desk, notes)
                episode, taken, version = run.play(stack)
        except SandboxOverrun as error:
            taken = Taken(None, "sandbox-memory", f"the sandbox died: {error}")
        finally:
            desk.close()
        return self._proposal(assignment, episode, taken, desk, notes, version, time.monotonic() - began)

    def _proposal(
        self, assignment: Assignment, episode: Episode, taken: Taken, desk: ToolDesk, notes: Notes, version: int | None,
        seconds: float,
    ) -> Proposal:  # fmt: skip
        violations.read_episode(episode, notes)
        if taken.path is None:
            notes.add(taken.kind)
        else:
            violations.read_task(taken.path, notes)
            with self._rooms.lock:
                self._last[assignment.id] = taken.path
        checked = _checked(taken.path, desk)
        if taken.path is not None and not all(checked.values()):
            notes.add("unvalidated")
        used = desk.meter.to_row()
        tools = {**used, "validated": checked, "counts": notes.to_row(), "harness_version": version}
        return Proposal(
            assignment.id, self.name, str(taken.path) if taken.path is not None else None, taken.message, seconds,
            math.fsum(turn.usd for turn in episode.turns) + used["usd"], len(episode.turns), episode,
            tools=tools, violations=violations.named(notes),
        )  # fmt: skip

    def shared(self) -> Path:
        """The fixed parts, written once."""
        with self._rooms.lock:
            folder = self._rooms.folder / "fixed"
            if not folder.is_dir():
                made = self._rooms.folder / "fixed.new"
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir(parents=True)
                write_fixed(made)
                made.rename(folder)
            if self._image is None:
                self._image = self.backend.build(IMAGE)
        return folder

    @property
    def image(self) -> Image:
        assert self._image is not None
        return self._image

    def past(self, assignment: Assignment, folder: Path) -> Path:
        """The round's past; where nobody refreshed it, the parent environment alone."""
        with self._rooms.lock:
            if self._rooms.past is not None:
                return self._rooms.past
        try:
            parent = [Past(assignment.parent, load_task(assignment.parent_path), (), assignment.round)]
        except TaskError:
            parent = []
        write_past(folder, parent)
        return folder

    def last(self, assignment: Assignment, target: Path) -> Path | None:
        """The version that a revision begins with."""
        with self._rooms.lock:
            known = self._last.get(assignment.id)
        return next((p for p in (known, target, target.parent / assignment.id) if p is not None and p.is_dir()), None)

    def agent(self, seed: int) -> Agent:
        return self._agent(seed)


class _Run:
    """One episode of a HarnessProposer."""

    def __init__(
        self, proposer: HarnessProposer, assignment: Assignment, target: Path, seed: int, feedback: str, desk: ToolDesk,
        notes: Notes,
    ):  # fmt: skip
        self.proposer, self.assignment, self.target, self.seed = proposer, assignment, Path(target), seed
        self.feedback, self.desk, self.notes = feedback, desk, notes
        self.env = env_name(assignment)

    def play(self, stack: ExitStack) -> tuple[Episode, Taken, int]:
        proposer, settings = self.proposer, self.proposer.settings
        home = Path(mkdtemp(prefix=prefix("episode")))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        version = proposer.store.for_round(self.assignment.round)
        text = assignment_text(self.assignment, self.env, proposer.toolbox.offered(), self.feedback)
        (home / "assignment.md").write_text(text, encoding="utf-8")
        (home / "socket").mkdir()
        seen = mounts(
            proposer.shared(), proposer.past(self.assignment, home / "past"), home / "assignment.md", home / "socket"
        )
        server = ToolServer(self.desk.answer, home / "socket", self.notes, limits=settings.wire)
        stack.callback(server.close)
        agent = proposer.agent(self.seed)
        seen = [*seen, *getattr(agent, "mounts", ())]  # a coding agent brings its program
        sandbox = proposer.backend.start(
            proposer.image, limits=settings.limits, mounts=seen, label=self.assignment.run_id
        )
        stack.callback(sandbox.stop)
        stack.callback(self.desk.close)  # children first: their callers then come to an end
        self._furnish(sandbox, proposer.store.path(version.number))
        task = self._task(home, instruction(text))
        episode = agent.run(task, task.steps[0], sandbox, settings.budget)
        self.desk.close()
        server.close()
        sandbox.kill_all()
        taken = take(
            sandbox, f"{WORK}/{self.env}", self.target, max_bytes=settings.max_bytes, max_files=settings.max_files
        )
        return episode, taken, self._keep(sandbox, home / "kept", version.number)

    def _furnish(self, sandbox: Sandbox, kept: Path) -> None:
        """What is the proposer's own: its memory and tools, and in a revision its last version."""
        for part in PARTS:
            sandbox.put(kept / part, f"{WORK}/{part}")
        if self.feedback and (last := self.proposer.last(self.assignment, self.target)) is not None:
            sandbox.put(last, f"{WORK}/{self.env}")

    def _task(self, home: Path, text: str) -> Task:
        step = Step("", text, home / "no-tests", None)
        return Task(home, f"proposer/{self.assignment.id}", (step,), "")

    def _keep(self, sandbox: Sandbox, folder: Path, started: int) -> int:
        """Save memory/ and tools/ as a version; what cannot be kept is named and left behind."""
        for part in PARTS:
            taken = take(sandbox, f"{WORK}/{part}", folder / part, max_bytes=4 << 20, max_files=400)
            if taken.path is None and taken.kind != "no-files":
                self.notes.add(f"{part}:{taken.kind}")
                return started
        try:
            return self.proposer.store.save(folder, started=started, source=self.assignment.id).number
        except (ValueError, OSError):
            self.notes.add("memory:too-large")
            return started


def env_name(assignment: Assignment) -> str:
    """env_NNN of an assignment: its number in the round."""
    digits = "".join(c for c in assignment.id.rpartition("a")[2] if c.isdigit())
    return f"env_{int(digits or 0) % 1000:03d}"


def _checked(path: Path | None, desk: ToolDesk) -> dict[str, bool]:
    """Whether the host itself saw exactly the submitted files pass oracle and noop."""
    try:
        digest = load_task(path).digest if path is not None else ""
    except TaskError:
        digest = ""
    seen = {v.which: v.reward for v in desk.validations if v.digest == digest and v.reward is not None}
    return {"oracle": seen.get("oracle") == 1.0, "noop": "noop" in seen and seen["noop"] < 0.5}


def places(backend: Backend | None, toolbox: Toolbox | None) -> tuple[Backend, Toolbox]:
    """Where the proposer's sandbox and where its children run. By default the builds of the children have no network: a RUN
    step that reads a page would go around the web rules."""
    from workbench.sandboxes import Network, get_backend

    backend = backend or get_backend("bubblewrap")
    if toolbox is not None:
        return backend, toolbox
    if backend.name != "bubblewrap":
        return backend, Toolbox(backend)
    return backend, Toolbox(get_backend("bubblewrap", build_network=Network("no-network")))
