"""The journal of a run: append-only JSON lines that survive `kill -9` and can be read while they are written.

One record is one line, written by a single write(2) to a descriptor opened with O_APPEND, so that records of several
threads never mix. What reaches the kernel survives the death of the process (not a power failure: nothing is fsynced).
A line that a kill cut short is ignored on reading, and closed with a newline by the next append. A cut line can not be
mistaken for a whole one: no proper prefix of a JSON object is itself a JSON object.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

FLOAT, RESERVED = "$float", "$"


class RunLocked(RuntimeError):
    """Another process writes this run."""


class FileLock:
    """An exclusive lock that the kernel drops when its process dies, however it dies. The file names the holder."""

    def __init__(self, path: Path):
        import fcntl

        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 100, 0).decode(errors="replace").strip()
            os.close(self._fd)
            raise RunLocked(f"{path.parent} is being written by {holder or 'another process'}: wait for it") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"process {os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock file `path`."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class Journal:
    """Writes and reads one journal file. Safe for the threads of one process; `FileLock` keeps other processes out."""

    def __init__(self, path: Path, run_id: str):
        self.path, self.run_id = path, run_id
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._once: dict[tuple[str, str], threading.Lock] = {}
        self._places: dict[tuple[str, str], tuple[int, int]] = {}  # (kind, id) → offset, length
        for offset, line in _lines(path):
            if record := _decode(line):
                self._places[record["kind"], record["id"]] = (offset, len(line))
        self._torn = self._ends_torn()

    def record(self, kind: str, row: Mapping[str, Any] | None = None, *, id: str | None = None) -> dict[str, Any]:
        """Append one record and return it. `id`: the argument, else row["id"], else a fresh one.

        The record is the row with `kind`, `id`, `run_id` and `time` (seconds since 1970) in front; a row's own
        run_id and time are kept. A row that has a `kind` of its own raises ValueError. OSError when the disk is full;
        then the record does not count, and the journal stays readable.
        """
        row = dict(row or {})
        if row.get("kind", kind) != kind:
            raise ValueError(f"a row of kind {kind!r} must not have a key 'kind' of its own ({row['kind']!r})")
        key = str(id if id is not None else row.get("id") or uuid.uuid4().hex[:12])
        head = {"kind": kind, "id": key, "run_id": self.run_id, "time": time.time()}
        record = {**head, **row, "kind": kind, "id": key}
        line = (json.dumps(plain(record), allow_nan=False, separators=(",", ":")) + "\n").encode("ascii")
        with self._lock:
            self._append(line)
            self._places[kind, key] = (os.lseek(self._fd, 0, os.SEEK_END) - len(line), len(line))
        return record

    def done(self, kind: str, key: str) -> bool:
        """Whether a record of this kind and id is in the journal."""
        return (kind, key) in self._places

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The latest record of this kind and id, or None."""
        place = self._places.get((kind, key))
        return _decode(os.pread(self._fd, place[1], place[0])) if place else None

    def once(self, kind: str, key: str, fn: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The record (kind, key); `fn()` is called for its row only when the journal does not have it yet.

        This is what makes a run resumable: work whose record was written is never done again, in this process or in
        a later one. Threads that ask for the same key wait for the first. When `fn` raises nothing is recorded.
        """
        with self._lock:
            gate = self._once.setdefault((kind, key), threading.Lock())
        with gate:
            if (found := self.get(kind, key)) is None:
                self.record(kind, fn(), id=key)
                found = self.get(kind, key)  # as a later process will read it, so that resuming changes nothing
        return found  # type: ignore[return-value]

    def rows(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Every record (of one kind), oldest first."""
        return [r for r in read_journal(self.path) if kind in (None, r["kind"])]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, line: bytes) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"{self.path} belongs to process {self._pid}: a forked child must not write it")
        data = b"\n" + line if self._torn else line
        self._torn = True  # until the whole line is there
        written = os.write(self._fd, data)
        while written < len(data):  # a signal or a full disk cut the write short; no other writer exists
            written += os.write(self._fd, data[written:])
        self._torn = False

    def _ends_torn(self) -> bool:
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole record of a journal, oldest first; safe while another process appends. Missing file: none."""
    for _, line in _lines(path):
        if record := _decode(line):
            yield record


class Tail:
    """Follows a growing journal: each `new()` gives the records that were completed since the last call."""

    def __init__(self, path: Path):
        self.path, self._offset = path, 0

    def new(self) -> list[dict[str, Any]]:
        records = []
        for offset, line in _lines(self.path, self._offset):
            if line.endswith(b"\n"):
                self._offset = offset + len(line)
                records.append(_decode(line))
        return [r for r in records if r]


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(start)
        for line in file:
            yield start, line
            start += len(line)


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line, object_hook=restore)
    except ValueError:
        return None  # torn
    return record if isinstance(record, dict) and {"kind", "id"} <= record.keys() else None


def plain(value: Any) -> Any:
    """`value` as strict JSON: dataclasses and mappings become objects; tuples, sets and arrays lists; paths strings.

    Numbers that JSON lacks become {"$float": "nan" | "inf" | "-inf"}; keys that begin with "$" get a second one.
    TypeError for what has no such form: a record must be readable without the code that wrote it.
    """
    if value is None or isinstance(value, str | bool | int):
        return value if type(value) in (type(None), str, bool, int) else _base(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {FLOAT: str(float(value))}
    if isinstance(value, Mapping):
        return {_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_key(f.name): plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, without importing numpy
        return plain(value.tolist())
    raise TypeError(f"a journal row cannot hold {type(value).__name__} {value!r:.80}: give plain data")


def _base(value: str | int) -> Any:
    """Members of a str or int enumeration as the plain value that they stand for."""
    return str.__str__(value) if isinstance(value, str) else int(value)


def _key(key: Any) -> str:
    text = key if isinstance(key, str) else str(key)
    return RESERVED + text if text.startswith(RESERVED) else text


def restore(data: dict[str, Any]) -> Any:
    """The `object_hook` that undoes `plain`'s two signs."""
    if len(data) == 1 and FLOAT in data:
        return float(data[FLOAT])
    return {k[1:] if k.startswith(RESERVED) else k: v for k, v in data.items()}
