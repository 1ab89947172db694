"""What the rogue tests share: the agent that runs shell lines, the counted back end, and the watch over the host."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from workbench.agents import Budget
from workbench.sandboxes import Backend, Image, Sandbox, state_dir
from workbench.tasks import Step, Task
from workbench.traces import Episode, Turn

SECRET = "ROGUE_HOST_SECRET"


@dataclass(frozen=True)
class Shell:
    """Runs `commands`, one exec each, within the budget; says that it is done when the last has ended."""

    commands: tuple[str, ...]
    name: str = "rogue"
    model: str = ""

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        end, turns = time.monotonic() + budget.seconds, []
        for index, command in enumerate(self.commands):
            left = end - time.monotonic()
            if left <= 0:
                return Episode(self.name, tuple(turns), ended_by="time")
            result = sandbox.exec(command, timeout=min(left, budget.command_seconds))
            turns.append(Turn(index, command=command[:200], observation=result.output, exit_code=result.exit_code))
        late = time.monotonic() >= end
        return Episode(self.name, tuple(turns), submitted=not late, ended_by="time" if late else "submit")


class Counted:
    """A back end whose attempts differ: each sandbox started from an image (an agent's, or a no-op's grader) holds the
    number of those started before it in /app/start."""

    def __init__(self, backend: Backend):
        self.backend, self.count, self.lock = backend, 0, threading.Lock()

    def __getattr__(self, name: str):
        return getattr(self.backend, name)

    def start(self, image, **options) -> Sandbox:
        sandbox = self.backend.start(image, **options)
        if isinstance(image, Image):
            with self.lock:
                number, self.count = self.count, self.count + 1
            sandbox.write("/app/start", f"{number}\n".encode())
        return sandbox


def adopt_orphans() -> None:
    """Make this process the parent of every descendant that loses its own, so that `descendants` misses none."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def descendants() -> dict[int, str]:
    """Living processes below this one: pid → command line."""
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[pid], lines[pid] = int(parent), (entry / "cmdline").read_bytes().decode(errors="replace")
    found, new = set(), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    named = {pid: lines[pid].replace("\0", " ")[:200] for pid in found if pid in lines}
    # A warden waits for its next sandbox, and owns nothing meanwhile: what it had started would be listed itself.
    return {pid: line for pid, line in named.items() if "/sandboxes/warden " not in line}


@dataclass(frozen=True)
class Host:
    """The parts of the host that a hostile process would like to change."""

    processes: frozenset[int]
    mounts: frozenset[str]
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls) -> Host:
        with Path("/proc/self/mounts").open() as file:
            mounts = frozenset(line for line in file if str(state_dir()) in line)
        return cls(frozenset(descendants()), mounts, watched())

    def changes(self, *, wait: float = 3.0) -> list[str]:
        """One line for each thing that is not as it was. Processes that are ending get `wait` seconds."""
        end = time.monotonic() + wait
        while (left := {p: c for p, c in descendants().items() if p not in self.processes}) and time.monotonic() < end:
            time.sleep(0.05)
        now = Host.now()
        lines = [f"process {pid}: {command}" for pid, command in left.items()]
        lines += [f"mount {line.strip()}" for line in now.mounts - self.mounts]
        changed = {p for p in {*self.files, *now.files} if self.files.get(p) != now.files.get(p)}
        return lines + [f"file {path}" for path in sorted(changed)]


def watched() -> dict[str, str]:
    """Digest of each file that a case may try to change, and the name of every trace that one may leave."""
    names = ["/etc/passwd", "/etc/hosts", "/etc/ld.so.preload", "/etc/profile", "/etc/bash.bashrc", "/root/.bashrc", "/root/.gitconfig",
             "/proc/sys/kernel/hostname", "/proc/sys/kernel/panic", "/logs", "/tests", "/solution", "/app"]  # fmt: skip
    found = {}
    for name in names:
        with suppress(OSError):
            path = Path(name)
            found[name] = (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder" * path.is_dir()
            )
    for folder in ("/", "/tmp", "/var/tmp", "/root", "/app"):
        with suppress(OSError):
            found |= {str(p): "a trace" for p in Path(folder).glob("*rogue-escape*")}
    return {name: digest for name, digest in found.items() if digest}


class Results:
    """Runs the cases of a table side by side, each begun once; `result(name)` waits for one."""

    def __init__(self, run, cases, *, workers: int = 4):
        self.pool = ThreadPoolExecutor(workers)
        self.futures: dict[str, Future] = {case.name: self.pool.submit(run, case) for case in cases}

    def result(self, name: str):
        return self.futures[name].result(timeout=120)

    def wait(self) -> None:
        """Until every case has ended, well or not."""
        for future in self.futures.values():
            future.exception(timeout=200)

    def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)


def plain(text: str) -> bool:
    """Whether text has no control character but newlines and tabs."""
    return all(c.isprintable() or c in "\n\t" for c in text)


def chosen(request, cases):
    """The cases of a table that this session will ask for (`-k` and `-m` leave some out)."""
    names = {
        item.callspec.params["case"].name
        for item in request.session.items
        if hasattr(item, "callspec") and "case" in item.callspec.params
    }
    return [case for case in cases if case.name in names]
