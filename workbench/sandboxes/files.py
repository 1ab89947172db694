"""Files between host and sandbox. Content travels as open descriptors: neither side resolves the other's names."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH115, PTH118, PTH123
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from workbench.sandboxes.slots import Slot
from workbench.sandboxes.warden import wire

_MAX_FILES = 200_000
_CHUNK = 1 << 20


def put(slot: Slot, source: Path, target: str, user: str, users: bool) -> None:
    common = {"target": target, "user": user, "users": users}
    entries: list[list[object]] = []
    fds: list[int] = []
    for name, path, mode in _walk(source):
        if stat.S_ISLNK(mode):
            entries.append([name, "link", 0, os.readlink(path)])
        elif stat.S_ISDIR(mode):
            entries.append([name, "folder", stat.S_IMODE(mode), ""])
        else:
            entries.append([name, "file", stat.S_IMODE(mode), len(fds)])
            fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        if len(fds) >= wire.MAX_FDS or len(entries) >= 1000:
            _send(slot, common, entries, fds)
            entries, fds = [], []
    if entries:
        _send(slot, common, entries, fds)


def _send(slot: Slot, common: dict, entries: list, fds: list[int]) -> None:
    try:
        slot.call("put", fds, entries=entries, **common)
    finally:
        wire.close(fds)


def _walk(source: Path) -> Iterator[tuple[str, Path, int]]:
    """(name below the target, path, mode), folders before what they hold. The source itself may be a link."""
    mode = source.stat().st_mode
    if not stat.S_ISDIR(mode):
        if not stat.S_ISREG(mode):
            raise ValueError(f"{source} is neither a file nor a folder")
        yield "", source, mode
        return
    yield "", source, mode
    for folder, folders, names in os.walk(source):
        for name in sorted([*folders, *names]):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                yield str(path.relative_to(source)), path, mode


def write(slot: Slot, path: str, data: bytes, mode: int, user: str, users: bool) -> None:
    store = os.memfd_create("data", os.MFD_CLOEXEC)
    with open(store, "wb") as file:
        file.write(data)
        file.flush()
        slot.call("put", [store], target=path, user=user, users=users, entries=[["", "file", mode, 0]])


def read(slot: Slot, path: str, max_bytes: int) -> bytes:
    (fd,) = slot.call("open", path=path)[1]
    with open(fd, "rb") as file:
        if os.fstat(fd).st_size > max_bytes:
            raise ValueError(f"{path} has {os.fstat(fd).st_size} bytes, more than {max_bytes}")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path} has more than {max_bytes} bytes")
    return data


def get(slot: Slot, source: str, target: Path, max_bytes: int) -> None:
    listing = slot.call("list", path=source, limit=_MAX_FILES)[0]
    if listing["kind"] == "file":
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(slot, source, target, listing["mode"], max_bytes)
        return
    if sum(size for _, is_folder, _, size, _ in listing["entries"] if not is_folder) > max_bytes:
        raise ValueError(f"{source} holds more than {max_bytes} bytes")
    target.mkdir(parents=True, exist_ok=True)
    left = max_bytes
    for name, is_folder, mode, *_ in listing["entries"]:
        path = _safe(target, name)
        if is_folder:
            path.mkdir(exist_ok=True, parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            left -= _fetch(slot, os.path.join(source, name), path, mode, left)
        except FileNotFoundError:  # gone since the folder was listed
            continue


def changes(
    slot: Slot, source: str, known: dict[str, object], max_bytes: int, max_files: int
) -> tuple[dict[str, bytes], list[str]]:
    """Regular files below `source` that changed since the last call, by relative path, and the names of those gone.

    known: what the last call saw; empty at the first. ValueError: too many files or bytes, or `source` is no folder."""
    try:
        listing = slot.call("list", path=source, limit=max_files)[0]
    except FileNotFoundError:
        listing = {"kind": "folder", "entries": []}
    if listing["kind"] != "folder":
        raise ValueError(f"{source} is not a folder")
    found = {name: [size, *stamp] for name, is_folder, _, size, stamp in listing["entries"] if not is_folder}
    if sum(stamp[0] for stamp in found.values()) > max_bytes:
        raise ValueError(f"{source} holds more than {max_bytes} bytes")
    gone = [name for name in known if name not in found]
    changed: dict[str, bytes] = {}
    for name in found:
        if known.get(name) == found[name]:
            continue
        try:
            changed[name] = read(slot, os.path.join(source, name), max_bytes)
        except (FileNotFoundError, ValueError):  # gone, or something else by now: the next call sees it
            gone.append(name)
            continue
        known[name] = found[name]
    for name in gone:
        known.pop(name, None)
    if sum(map(len, changed.values())) > max_bytes:
        raise ValueError(f"{source} grew beyond {max_bytes} bytes")
    return changed, gone


def _safe(target: Path, name: str) -> Path:
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"the sandbox names a file {name!r}")
    return target.joinpath(*parts)


def _fetch(slot: Slot, source: str, target: Path, mode: int, max_bytes: int) -> int:
    """Copy one file out; the number of bytes. A sparse or growing file cannot pass the limit."""
    (fd,) = slot.call("open", path=source)[1]
    copied = 0
    if target.is_symlink():
        target.unlink()
    with open(fd, "rb", buffering=0) as inside, open(target, "wb") as outside:
        while data := inside.read(_CHUNK):
            copied += len(data)
            if copied > max_bytes:
                outside.close()
                target.unlink()
                raise ValueError(f"{source} holds more than {max_bytes} bytes")
            outside.write(data)
    target.chmod(mode & 0o777)
    return copied
