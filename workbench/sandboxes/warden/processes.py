"""The processes of one sandbox, as the warden sees them: find, count and kill, however they hide."""

# ruff: noqa: PTH208
from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable

import unlinked
from linux import CLONE_NEWPID

_KILL_SECONDS = 10.0
_RACE_SECONDS = 1.0


class Processes:
    """init: a pidfd of the sandbox's first process. proc: its open /proc. own_pids: the warden's process namespace.
    reap: takes the status of the command in progress when it has ended (a dead command still counts as a process)."""

    def __init__(self, init: int, proc: int, own_pids: int, reap: Callable[[], None]):
        self.init, self.proc, self.own_pids, self.reap = init, proc, own_pids, reap
        self.stood_still: set[str] = set()  # before `freeze`: those stay stopped
        self.first_marker = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
        if self.first_marker < 0:
            self.first_marker = 1 << 30

    def marker(self, number: int) -> int:
        """The hard limit on message queues that marks command `number` and its descendants."""
        return max(self.first_marker - number, 0)

    def names(self) -> list[str]:
        """Everything but the first process, as numbered inside."""
        self.reap()
        os.lseek(self.proc, 0, os.SEEK_SET)
        return [name for name in os.listdir(self.proc) if name.isdigit() and name != "1"]

    def kill_since(self, number: int) -> int:
        """Kill what command `number` started, and whatever hides among its successors.

        Each command runs under its own hard limit on message queues, one lower than the command before: descendants
        inherit it, nobody inside can raise it, and who lowers it only becomes one of the killed.
        """
        limit = self.marker(number)
        killed: set[str] = set()
        begun = time.monotonic()
        while True:
            found = {pid for pid in self.names() if (mark := self._marker(pid)) is not None and mark <= limit}
            late = time.monotonic() - begun
            if not found:
                return len(killed)
            if late > _KILL_SECONDS or (late > _RACE_SECONDS and found - killed):
                return len(killed) + self.kill_all()  # it forks faster than one by one can kill
            if found & killed:
                self._wake_init()
            killed |= found
            for pid in found:
                self._signal(pid)
            time.sleep(0.0005)

    def _marker(self, pid: str) -> int | None:
        for line in self._read(f"{pid}/limits").splitlines():
            if line.startswith("Max msgqueue"):
                return int(line.split()[3]) if line.split()[3].isdigit() else None
        return None  # it has ended

    def _read(self, path: str) -> str:
        try:
            fd = os.open(path, os.O_RDONLY, dir_fd=self.proc)
        except OSError:
            return ""
        try:
            return os.read(fd, 1 << 16).decode(errors="replace")
        except OSError:
            return ""
        finally:
            os.close(fd)

    def _signal(self, pid: str, number: int = signal.SIGKILL) -> None:
        try:
            fd = os.open(pid, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        except OSError:
            return
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(fd, number)
        os.close(fd)

    def freeze(self) -> int:
        """Stop every process, so that files hold still while they are read; how many there are. `thaw` lets them go on."""
        found = self.names()
        self.stood_still = {
            pid for pid in found if self._read(f"{pid}/stat").rpartition(")")[2].split()[:1] in (["T"], ["t"])
        }
        if found:
            self._signal_from_within(signal.SIGSTOP)
        return len(found)

    def thaw(self) -> None:
        for pid in self.names():
            if pid not in self.stood_still:
                self._signal(pid, signal.SIGCONT)

    def kill_all(self) -> int:
        """Kill everything but the first process: `kill(-1)` from within, which no fork can slip past."""
        seen, until = set(), time.monotonic() + _KILL_SECONDS
        while found := self.names():
            seen.update(found)
            if time.monotonic() > until:
                raise TimeoutError(f"{len(found)} processes do not end")
            self._wake_init()
            try:
                self._signal_from_within(signal.SIGKILL)
            except BlockingIOError:  # the sandbox has used up its processes, ours too
                for pid in found:
                    self._signal(pid)
            time.sleep(0.0005)
        return len(seen)

    def _wake_init(self) -> None:
        """A tracer may have stopped the first process, which takes the dead's status: without it they never go."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.init, signal.SIGCONT)

    def _signal_from_within(self, number: int) -> None:
        os.setns(self.init, CLONE_NEWPID)
        try:
            killer = os.fork()
            if killer == 0:
                try:
                    os.kill(-1, number)
                finally:
                    os._exit(0)
        finally:
            os.setns(self.own_pids, CLONE_NEWPID)
        os.waitpid(killer, 0)

    def memory(self, names: list[str]) -> int:
        """Resident bytes that are not shared with files."""
        total = 0
        for pid in names:
            words = self._read(f"{pid}/statm").split()
            total += (int(words[1]) - int(words[2])) * resource.getpagesize() if len(words) > 2 else 0
        return total

    def hidden(self, names: list[str]) -> tuple[int, int]:
        """Bytes on disk and in memory of files that belong to no process and no folder."""
        return unlinked.size(self.proc, names)
