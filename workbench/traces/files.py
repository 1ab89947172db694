"""Big JSON files a piece at a time: lines of JSONL, members of one large object. Gzipped or not. Memory: one piece.

Every byte is hostile: a line or an element may be cut, broken, endless, or not what its name says.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from workbench.traces.store import TraceError

MAX_PIECE = 256 << 20  # bytes of one line or element; what is longer is no message of an agent
_CHUNK = 1 << 20
_BROKEN_SHOWN = 20
_AFTER = frozenset(",]}: \t\r\n")  # what may stand after a value


class Broken:
    """What was wrong with a file while it was read. torn: bytes of a cut end. lines: what was not JSON, by place."""

    def __init__(self) -> None:
        self.torn, self.count, self.places = 0, 0, []

    def add(self, place: str) -> None:
        self.count += 1
        if len(self.places) < _BROKEN_SHOWN:
            self.places.append(place)


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked when it is gzipped. Raises TraceError when it cannot be read."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is no ordinary file" if path.exists() else "does not exist"
            raise TraceError(f"{path} {what}: give a trace file")
        handle = path.open("rb")
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    packed = handle.read(2) == b"\x1f\x8b"
    handle.seek(0)
    return gzip.GzipFile(fileobj=handle) if packed else handle


def json_lines(path: Path, broken: Broken | None = None) -> Iterator[dict[str, Any]]:
    """Every object of a JSONL file. A last line without its newline that is no JSON is torn; other lines that are no
    JSON object, or too long, are left out and noted in `broken`."""
    broken = Broken() if broken is None else broken
    for number, line in enumerate(_lines(path, broken), 1):
        if not line.strip():
            continue
        try:
            if len(line) > MAX_PIECE:
                raise ValueError(f"longer than {MAX_PIECE >> 20} MiB")
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError("no object")
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
            if line.endswith(b"\n"):
                broken.add(f"line {number}: {error}")
            else:
                broken.torn = len(line)
            continue
        yield value


def _lines(path: Path, broken: Broken) -> Iterator[bytes]:
    with open_bytes(path) as file:
        try:
            while line := file.readline(MAX_PIECE + 1):
                cut = line
                while len(cut) > MAX_PIECE and not cut.endswith(b"\n"):  # the rest of a line that is too long
                    cut = file.readline(MAX_PIECE + 1)
                yield line if cut is line else line + b"\n"
        except (EOFError, zlib.error, gzip.BadGzipFile):
            broken.torn = broken.torn or 1  # the end of the archive is missing


class Cut(Exception):
    """The file ended, or stopped being JSON, inside of a value."""


def json_members(path: Path, arrays: Collection[str] = (), broken: Broken | None = None) -> Iterator[tuple[str, Any]]:
    """The members of the one object in a JSON file, in their order. A member named in `arrays` that is a list comes as
    one (name, element) for each element. What follows a cut or a mistake is not read; `broken` says so.
    Raises TraceError when the file does not begin with an object."""
    broken = Broken() if broken is None else broken
    with open_bytes(path) as raw:
        reader = _Reader(raw)
        try:
            if reader.peek() != "{":
                raise TraceError(f"{path}: not a JSON object")
            yield from reader.members(arrays)
        except Cut as error:
            broken.torn = max(1, reader.left())
            if str(error):
                broken.add(str(error))


class _Reader:
    """JSON text that arrives in chunks. `json`'s own decoder reads each value; when it fails at the end of what has
    arrived so far, it is asked again with twice as much."""

    def __init__(self, raw: IO[bytes]):
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace")
        self._decode = json.JSONDecoder().raw_decode
        self._buffer, self._at, self._ended = "", 0, False

    def left(self) -> int:
        return len(self._buffer) - self._at

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def members(self, arrays: Collection[str]) -> Iterator[tuple[str, Any]]:
        self._take("{")
        while self.peek() != "}":
            name = self.value()
            self._take(":")
            if name in arrays and self.peek() == "[":
                for element in self.elements():
                    yield name, element
            else:
                yield name, self.value()
            if self.peek() != "}":
                self._take(",")

    def elements(self) -> Iterator[Any]:
        self._take("[")
        while self.peek() != "]":
            yield self.value()
            if self.peek() != "]":
                self._take(",")
        self._take("]")

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except RecursionError as error:
                raise Cut("nested too deeply") from error
            except ValueError as error:
                if not self._more():
                    raise Cut("" if self.left() == 0 else f"no JSON after {self.left()} characters: {error}") from error
                continue
            # A number may go on in the next chunk, also after what looks like its end: 1 of 1.5, 1.5 of 1.5e3.
            if self._buffer[end : end + 1] in _AFTER or not self._more():
                self._at = end
                return value

    def _take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise Cut()
        self._at += 1

    def _more(self) -> bool:
        """Read on, at least as much as is waiting. False at the end."""
        if self._ended or self.left() > MAX_PIECE:
            return False
        try:
            chunk = self._text.read(max(_CHUNK, self.left()))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            chunk = ""
        self._ended = not chunk
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return bool(chunk)
