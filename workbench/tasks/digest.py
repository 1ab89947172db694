"""The files of a task directory, seen without following a link, and the digest over them."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

IGNORED = (
    "__pycache__", "*.pyc", "*.pyo", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".ipynb_checkpoints",
    ".git", ".DS_Store", "*.swp", "*.swo", "*~", ".#*", "#*#",
)  # fmt: skip
"""Names that take no part in a digest, wherever they stand: caches, version control, editors' files."""

_IGNORED = re.compile("|".join(fnmatch.translate(pattern) for pattern in IGNORED))

MAX_FILES = 20_000
MAX_DEPTH = 64
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One file of a task. path: relative, with "/"; target: what a link says, "" for anything else.
    size: the apparent size in bytes (a sparse file counts in full)."""

    path: str
    kind: Literal["file", "link", "other"]
    size: int = 0
    executable: bool = False
    target: str = ""


class TooMany(ValueError):
    """More files, or deeper folders, than a task may have."""


def ignored(name: str) -> bool:
    """Whether a file or folder of this name is left out of the digest."""
    return _IGNORED.fullmatch(name) is not None


def walk(root: Path, max_files: int | None = None) -> Iterator[Entry]:
    """Every file, link and special file below `root`, caches included but nothing below a `.git`.

    Links are named, never followed; nothing is opened. Raises TooMany past `max_files` entries (default 20,000) or 64 levels, OSError for a
    folder that cannot be read.
    """
    most = MAX_FILES if max_files is None else max_files
    count, folders = 0, [(os.fspath(root), "", 0)]
    while folders:
        folder, prefix, depth = folders.pop()
        if depth > MAX_DEPTH:
            raise TooMany(f"folders are nested more than {MAX_DEPTH} deep at {prefix[:80]}…")
        with os.scandir(folder) as items:
            for item in items:
                count += 1
                if count > most:
                    raise TooMany(f"more than {most:,} files")
                if item.is_dir(follow_symlinks=False):
                    if item.name != ".git":
                        folders.append((item.path, f"{prefix}{item.name}/", depth + 1))
                    continue
                yield _entry(item, prefix + item.name)


def _entry(item: os.DirEntry[str], path: str) -> Entry:
    info = item.stat(follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        return Entry(path, "link", target=os.readlink(item.path))  # noqa: PTH115 - Path would tidy the text up
    if stat.S_ISREG(info.st_mode):
        return Entry(path, "file", info.st_size, bool(info.st_mode & stat.S_IXUSR))
    return Entry(path, "other")


def digest(root: Path, entries: list[Entry] | None = None) -> str:
    """sha256, in hex, over the files sorted by path: path, kind, the owner's x bit, size and bytes; of a link its text.

    Empty folders, owners, times and the other mode bits have no part in it, so that a clone, a copy and a wheel's
    unpacking agree. Raises ValueError for a device, pipe or socket, OSError for what cannot be read.
    """
    total = hashlib.sha256(b"workbench task 1\n")
    if entries is None:
        entries = list(walk(root))
    for entry in sorted(entries, key=lambda e: os.fsencode(e.path)):
        if any(ignored(part) for part in entry.path.split("/")):
            continue
        if entry.kind == "other":
            raise ValueError(f"{entry.path}: a device, pipe or socket has no digest; remove it")
        kind = "l" if entry.kind == "link" else "x" if entry.executable else "-"
        _add(total, os.fsencode(entry.path), kind.encode())
        if entry.kind == "link":
            _add(total, os.fsencode(entry.target))
        else:
            _add_file(total, root / entry.path)
    return total.hexdigest()


def _add(total, *parts: bytes) -> None:
    """Each part with its length before it, so that no two lists of parts read alike."""
    for part in parts:
        total.update(len(part).to_bytes(8, "big"))
        total.update(part)


def _add_file(total, path: Path) -> None:
    with open_plain(path) as file:
        left = os.fstat(file.fileno()).st_size
        total.update(left.to_bytes(8, "big"))
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                raise OSError(f"{path} became shorter while it was read")
            total.update(chunk)
            left -= len(chunk)


def open_plain(path: Path):
    """Open a regular file for reading. OSError for a link; ValueError for a pipe or device, without waiting on it."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{path} is not a regular file")
    return os.fdopen(handle, "rb")


def read_plain(path: Path, max_bytes: int) -> bytes:
    """A regular file's bytes. ValueError when there are more than `max_bytes`, or for anything but a regular file."""
    with open_plain(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path} has more than {max_bytes:,} bytes")
    return data
