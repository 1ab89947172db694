"""Follows a journal that another process writes: only what is new, in pieces, within a limit of time and memory.

Nothing is locked and nothing is written. A last line without its end waits for the rest of it. A line that a kill cut short,
or that is too long to be read, is counted and passed over.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.runs.journal import restore

CHUNK = 256 << 10  # bytes read at a time: a few milliseconds of work
MOST_LINE = 4 << 20  # bytes of one record; a longer one is counted by its head
_HEAD = re.compile(rb'\{"kind":"([^"\\]{1,100})","id":"([^"\\]{1,200})"')


@dataclass(frozen=True)
class Entry:
    """One line of the journal. record: None when it was too long. offset, size: where it stands, in bytes."""

    kind: str
    offset: int
    size: int
    record: dict[str, Any] | None


class Follower:
    """Reads one journal from its beginning and goes on where it stopped. torn: lines that could not be read so far.

    restarted: how often the file was found shorter than before, or replaced; then it is read from its beginning again."""

    def __init__(self, path: Path):
        self.path = path
        self.offset = self.torn = self.restarted = 0
        self._rest, self._skipping, self._skipped = b"", False, 0
        self._file: tuple[int, int] | None = None

    def new(self, seconds: float = float("inf")) -> Iterator[Entry]:
        """What was completed since the last call. Stops after `seconds`, at a line's end; the next call goes on."""
        deadline = time.monotonic() + seconds
        try:
            file = self.path.open("rb", buffering=0)
        except FileNotFoundError:
            return
        with file:
            self._check(os.fstat(file.fileno()))
            file.seek(self.offset + self._skipped + len(self._rest))
            while chunk := file.read(CHUNK):
                yield from self._lines(chunk)
                if time.monotonic() >= deadline:
                    return

    def behind(self) -> int:
        """Bytes that are there and were not read."""
        try:
            return max(0, self.path.stat().st_size - self.offset - self._skipped - len(self._rest))
        except OSError:
            return 0

    def _check(self, found: os.stat_result) -> None:
        same = self._file in (None, (found.st_dev, found.st_ino))
        if not same or found.st_size < self.offset + self._skipped + len(self._rest):
            self.restarted += 1
            self.offset, self._rest, self._skipping, self._skipped = 0, b"", False, 0
        self._file = (found.st_dev, found.st_ino)

    def _lines(self, chunk: bytes) -> Iterator[Entry]:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = b""
        for line in lines:
            size = self._skipped + len(line) + 1
            entry = self._entry(line, size)
            self.offset += size
            self._skipping, self._skipped = False, 0
            if entry is not None:
                yield entry
        if self._skipping or len(rest) > MOST_LINE:
            keep = rest[:400] if not self._skipping else self._kept
            self._kept, self._skipping = keep, True
            self._skipped += len(rest)
        else:
            self._rest = rest

    def _entry(self, line: bytes, size: int) -> Entry | None:
        if self._skipping or len(line) > MOST_LINE:
            found = _HEAD.match(self._kept if self._skipping else line)
            if found is None:
                self.torn += 1
                return None
            return Entry(found[1].decode(errors="replace"), self.offset, size, None)
        record = decode(line)
        if record is None:
            self.torn += bool(line)
            return None
        return Entry(str(record["kind"])[:100], self.offset, size, record)

    _kept = b""


def decode(line: bytes) -> dict[str, Any] | None:
    """The record of a line, None when it is none."""
    try:
        # Only tagged values need the slower reading.
        record = json.loads(line, object_hook=restore) if b'"$' in line else json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and {"kind", "id"} <= record.keys() else None
