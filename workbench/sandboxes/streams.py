"""What a command prints, kept within bounds however much it is."""

from __future__ import annotations

import os

_CHUNK = 1 << 18


class Kept:
    """The head and the tail of a stream: at most `limit` bytes in memory, the rest counted."""

    def __init__(self, fd: int, limit: int):
        self.fd, self.half, self.ended = fd, max(limit // 2, 1), False
        self.head, self.tail, self.total = bytearray(), bytearray(), 0
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what is there; False when there was nothing (more) to take."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.ended = True
            return False
        self.total += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * self.half + _CHUNK:
            del self.tail[: -self.half]
        return True

    def text(self) -> tuple[str, bool]:
        """(text, was it cut): a line says how many bytes are missing where they are missing."""
        tail = bytes(self.tail[-self.half :])
        dropped = self.total - len(self.head) - len(tail)
        if dropped <= 0:
            return (bytes(self.head) + tail).decode("utf-8", "replace"), False
        head = bytes(self.head).decode("utf-8", "replace")
        return f"{head}\n[... {dropped} bytes dropped ...]\n{tail.decode('utf-8', 'replace')}", True
