"""The attached stream of one command in a container: bounded capture, standard input, a deadline.

The engine sends frames of 8 header bytes (stream number, three zeros, big-endian length) and a payload.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Callable

from workbench.sandboxes import Limits
from workbench.sandboxes.docker_processes import parse_stat

STDOUT, STDERR = 1, 2
_CHECK_DISK = 1.0  # seconds between two looks at the disk
_QUIET = 0.05  # seconds of silence before the engine is asked (each question costs the two of us some milliseconds)


class Capture:
    """Keeps at most `limit` bytes of a stream: the first half and the last half. The rest is counted and dropped."""

    def __init__(self, limit: int):
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head, self._tail, self._tail_size, self.total = bytearray(), deque(), 0, 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        data = data[-self._tail_limit :] if self._tail_limit else b""
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def dropped(self) -> int:
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        tail = b"".join(self._tail)
        tail = tail[-self._tail_limit :] if self._tail_limit else b""
        if not self.dropped:
            return bytes(self._head + tail).decode("utf-8", "replace")
        gap = f"\n[... {self.dropped} bytes dropped ...]\n"
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


class Command:
    """State of one exec: captures, the start line, limits that were hit."""

    def __init__(self, limits: Limits, deadline: float, too_big: Callable[[], bool]):
        self.out, self.err = Capture(limits.output_bytes), Capture(limits.output_bytes)
        self.since: int | None = None
        self.killed_by: str | None = None
        self._deadline, self._too_big = deadline, too_big
        self._first: bytes | None = b""
        self._looked = time.monotonic()

    def feed(self, number: int, data: bytes) -> None:
        if number != STDOUT:
            self.err.feed(data)
            return
        if self._first is not None:
            self._first += data
            line, found, rest = self._first.partition(b"\n")
            if not found:
                return
            process = parse_stat(line.decode("utf-8", "replace"))
            data = rest if process else self._first
            self.since, self._first = (process.start if process else None), None
        self.out.feed(data)

    def go_on(self) -> bool:
        now = time.monotonic()
        if now > self._deadline:
            self.killed_by = "time"
        elif now - self._looked > _CHECK_DISK:
            if self._too_big():
                self.killed_by = "disk"
            self._looked = time.monotonic()
        return self.killed_by is None


class Stream:
    """Frames from the socket that the SDK hands out for an attached command; standard input goes the other way.

    Both directions move in one loop: a command that answers while it reads would else block us, and we it.
    """

    def __init__(self, attached: object, stdin: bytes | None = None):
        self._keep = attached  # its response must live as long as the socket
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._socket.setblocking(False)
        self._buffer = bytearray(self._read_ahead(attached))
        self._pending = None if stdin is None else memoryview(stdin)

    def _read_ahead(self, attached: object) -> bytes:
        """What the HTTP client read past the response's headers; the SDK drops it, and a fast command's output with it."""
        reader = getattr(getattr(getattr(attached, "_response", None), "raw", None), "_fp", None)
        reader = getattr(reader, "fp", None)
        if reader is None or not hasattr(reader, "peek"):
            return b""
        with contextlib.suppress(OSError, ValueError):
            return bytes(reader.peek(1))
        return b""

    def frames(self, wait: float) -> list[tuple[int, bytes]] | None:
        """Frames that arrive within `wait` seconds: [] when none did, None at the end of the stream."""
        found = self._parse()
        if found:
            return found
        writers = [] if self._pending is None else [self._socket]
        readable, writable, _ = select.select([self._socket], writers, [], wait)
        if writable:
            self._write()
        if not readable:
            return []
        try:
            data = self._socket.recv(1 << 17)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        if not data:
            return None
        self._buffer += data
        return self._parse()

    def _write(self) -> None:
        """Send some standard input; close it after the last byte. A command that does not read it is no error."""
        try:
            sent = self._socket.send(self._pending[: 1 << 16]) if self._pending else 0
            self._pending = self._pending[sent:]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._pending = None
            return
        if not self._pending:
            self._pending = None
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _parse(self) -> list[tuple[int, bytes]]:
        frames, at = [], 0
        while len(self._buffer) - at >= 8:
            size = int.from_bytes(self._buffer[at + 4 : at + 8], "big")
            if len(self._buffer) - at - 8 < size:
                break
            frames.append((self._buffer[at], bytes(self._buffer[at + 8 : at + 8 + size])))
            at += 8 + size
        del self._buffer[:at]
        return frames

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(Exception):
            self._keep.close()  # type: ignore[attr-defined]


def follow(
    stream: Stream, running: Callable[[], bool], feed: Callable[[int, bytes], None], check: Callable[[], bool]
) -> bool:
    """Feed frames until the command has ended. True when it ended by itself, False when `check` said to stop.

    A background child may hold the stream open for ever, so the end is the engine's word that the main process
    exited (asked whenever the stream is quiet), and then what is already on its way.
    """
    quiet, asked = _QUIET, 0.0
    while True:
        frames = stream.frames(quiet)
        if frames is None:
            return True
        for number, data in frames:
            feed(number, data)
        if frames:
            quiet = _QUIET
        if not frames or time.monotonic() - asked > 0.5:
            asked = time.monotonic()
            if not running():
                break
            quiet = min(quiet * 1.6, 0.25)
        if not check():
            return False
    drain(stream, feed)
    return True


def drain(stream: Stream, feed: Callable[[int, bytes], None], *, seconds: float = 1.0) -> None:
    """Read what is still on its way, until the stream has been quiet for a moment."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        frames = stream.frames(0.02)
        if not frames:
            return
        for number, data in frames:
            feed(number, data)
