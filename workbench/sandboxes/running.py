"""One command in a sandbox, followed from its start to its end on the calling thread."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from workbench.sandboxes import ExecResult, SandboxError
from workbench.sandboxes.streams import Kept
from workbench.sandboxes.warden import wire

if TYPE_CHECKING:
    from workbench.sandboxes.sandbox import BubblewrapSandbox

_FIRST_TICK = 0.1
_TICK = 0.3  # seconds between looks at what a running command has used
_LAST_WORDS = 0.05  # seconds to take what a command printed just before it ended
_KILLED = 137


class Run:
    """One command from start to end, on the calling thread."""

    def __init__(self, box: BubblewrapSandbox, request: dict, stdin: bytes, seconds: float):
        self.box, self.slot, self.stdin, self.seconds = box, box.slot, memoryview(stdin), seconds
        self.killed_by: str | None = None
        self.status: int | None = None
        self.asked = ""  # the request whose answer is awaited: "usage" or "kill"
        self.before = self.slot.cgroup.counters() if self.slot.cgroup else (0, 0)
        self.disk_before: int | None = None
        self.started = time.monotonic()
        self.poll = select.poll()
        self.feed: int | None = None
        self._start(request)

    def _start(self, request: dict) -> None:
        limit = self.box.limits.output_bytes
        stdin_r, stdin_w = os.pipe() if self.stdin else (os.open("/dev/null", os.O_RDONLY), None)
        (out_r, out_w), (err_r, err_w) = os.pipe(), os.pipe()
        self.streams = {fd: Kept(fd, limit) for fd in (out_r, err_r)}
        self.feed = stdin_w
        try:
            self.slot.call("exec", [stdin_r, out_w, err_w], **request)
        except SandboxError as error:
            wire.close([stdin_r, out_w, err_w])
            self._close()
            if self.slot.broken or "BlockingIOError" not in str(error):
                raise
            self.status, self.killed_by = 126, "processes"  # no room left to fork: the limit, not the command
            return
        wire.close([stdin_r, out_w, err_w])
        for fd in self.streams:
            self.poll.register(fd, select.POLLIN)
        self.poll.register(self.slot.link, select.POLLIN)
        if self.feed is not None:
            os.set_blocking(self.feed, False)
            self.poll.register(self.feed, select.POLLOUT)

    def result(self) -> ExecResult:
        if self.status is None:
            try:
                self._follow()
                self._last_words()
            finally:
                self._close()
        seconds = time.monotonic() - self.started
        (out, cut_out), (err, cut_err) = (stream.text() for stream in self.kept)
        return ExecResult(self._code(), out, err, seconds, cut_out or cut_err, self._cause())

    @property
    def kept(self) -> list[Kept]:
        return list(self.streams.values())

    def _follow(self) -> None:
        deadline, look = self.started + self.seconds, self.started + _FIRST_TICK
        while self.status is None or self.asked:
            now = time.monotonic()
            if self.box.stopping:
                self.slot.broken = True  # in the middle of a command: the warden goes, and all that it started
                raise SandboxError(f"sandbox {self.box.id} was stopped while a command ran")
            if not self.asked and self.status is None:
                if now >= deadline and self.killed_by is None:
                    self._kill("time")
                elif now >= look and self.killed_by is None:
                    self._ask("usage")
                    look = now + _TICK
            wait = max(min(deadline, look) - now, 0.01) if self.killed_by is None else 1.0
            for fd, _ in self.poll.poll(wait * 1000):
                self._event(fd)
            if self.killed_by and time.monotonic() > deadline + 60 and self.killed_by == "time":
                self.slot.broken = True
                raise SandboxError(f"sandbox {self.box.id}: a command could not be killed")

    def _event(self, fd: int) -> None:
        if fd == self.slot.link.fileno():
            self._message()
        elif fd == self.feed:
            self._write()
        elif not self.streams[fd].read() and self.streams[fd].ended:
            self.poll.unregister(fd)

    def _message(self) -> None:
        answer, fds = self.slot.receive()
        wire.close(fds)
        if "ended" in answer:
            self.status = answer["ended"]
            return
        asked, self.asked = self.asked, ""
        self.slot.checked(answer, [])
        if asked == "usage" and self.status is None:
            self._judge(answer)

    def _judge(self, usage: dict) -> None:
        """Stop a command that has written more than the disk allows (unless it is making room), or, where no group
        limits memory, one that holds too much."""
        limit = self.box.limits.disk_mb << 20
        before, self.disk_before = self.disk_before, usage["disk"]
        if usage["disk"] > limit and (before is None or usage["disk"] >= before):
            self._kill("disk")
        elif self.box.watch_memory and usage["memory"] > self.box.limits.memory_mb << 20:
            self._kill("memory")

    def _kill(self, cause: str) -> None:
        self.killed_by = cause
        self._ask("kill", number=self.box.commands if cause == "time" else 0)

    def _ask(self, op: str, **request: object) -> None:
        self.asked = op
        self.slot.send({"op": op, **request})

    def _write(self) -> None:
        try:
            sent = os.write(self.feed, self.stdin[: 1 << 20])
        except BlockingIOError:
            return
        except BrokenPipeError:  # the command reads no further
            sent = len(self.stdin)
        self.stdin = self.stdin[sent:]
        if not self.stdin:
            self.poll.unregister(self.feed)
            os.close(self.feed)
            self.feed = None

    def _last_words(self) -> None:
        """The command has ended; a child that it left may hold the pipes open and write for ever."""
        until = time.monotonic() + _LAST_WORDS
        for stream in self.kept:
            while not stream.ended and stream.read() and time.monotonic() < until:
                pass
        held = [stream.fd for stream in self.kept if not stream.ended]
        if held:
            self.slot.call("drain", held)

    def _close(self) -> None:
        wire.close([*self.streams, *([self.feed] if self.feed is not None else [])])
        self.feed = None

    def _cause(self) -> str | None:
        if self.killed_by or self.status == 0 or not self.slot.cgroup:
            return self.killed_by
        memory, forks = self.slot.cgroup.counters()
        if memory > self.before[0]:
            return "memory"
        return "processes" if forks > self.before[1] else None

    def _code(self) -> int:
        if self.killed_by == "time":
            return 124
        return self.status or _KILLED if self.killed_by in ("disk", "memory") else self.status
