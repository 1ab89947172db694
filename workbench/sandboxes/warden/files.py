"""File work inside a sandbox, done by the warden in the sandbox's own mount namespace.

There every path, link and `..` ends within the sandbox, whatever it contains. Files go to and come from the host as
open descriptors, so the host never resolves a name that a sandbox chose.
"""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH112, PTH116, PTH118, PTH120, PTH211
from __future__ import annotations

import contextlib
import os
import stat

import command
import trees
from linux import CLONE_NEWNS, attach_tree

_COPY = 8 << 20
_MAX_DEPTH = 100


class Entered:
    """Within the block this process sees the sandbox's files; afterwards its own again."""

    def __init__(self, inside: int, outside: int):
        self.inside, self.outside = inside, outside

    def __enter__(self) -> None:
        os.setns(self.inside, CLONE_NEWNS)
        self.mask = os.umask(0o022)

    def __exit__(self, *_: object) -> None:
        os.umask(self.mask)
        os.setns(self.outside, CLONE_NEWNS)
        os.chdir("/")


def attach(tree: int, target: str) -> None:
    """Mount `tree` at `target`. Parents that are missing are made, those that are links are replaced."""
    parts = [part for part in target.split("/") if part]
    if not parts or ".." in parts or parts[0] in ("proc", "dev"):
        raise ValueError(f"cannot mount on {target!r}")
    is_folder = stat.S_ISDIR(os.fstat(tree).st_mode)
    for end in range(1, len(parts) + 1):
        path = "/" + "/".join(parts[:end])
        _make_folder(path) if end < len(parts) or is_folder else _make_file(path)
    attach_tree(tree, target)


def _make_folder(path: str) -> None:
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.mkdir(path, 0o755)


def _make_file(path: str) -> None:
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            return
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644))


def open_regular(path: str) -> int:
    """A descriptor of a regular file. A link, a device, a pipe and whatever the kernel invents below /proc is refused."""
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode):
        raise ValueError(f"{path} is not a regular file but a {_kind(info.st_mode)}")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and info.st_dev != os.stat("/proc").st_dev:
        return fd
    os.close(fd)
    raise ValueError(f"{path} is not a file on disk")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "device")


def list_tree(path: str, limit: int) -> tuple[dict, list[int]]:
    """What `path` is; for a folder its folders and regular files as [relative path, is folder, mode, bytes, stamp].

    The stamp changes with every change of a file: an agent can set a file's modification time, but not that of its inode."""
    info = os.lstat(path)
    if stat.S_ISREG(info.st_mode):
        return {"kind": "file", "mode": stat.S_IMODE(info.st_mode), "size": info.st_size}, []
    if not stat.S_ISDIR(info.st_mode):
        raise ValueError(f"{path} is neither a file nor a folder but a {_kind(info.st_mode)}")
    if info.st_dev == os.stat("/proc").st_dev:
        raise ValueError(f"{path} is not a folder on disk")
    entries: list[list[object]] = []
    todo = [""]
    while todo:
        below = todo.pop()
        with os.scandir(os.path.join(path, below)) as found:
            for entry in found:
                info = entry.stat(follow_symlinks=False)
                mode, name = info.st_mode, os.path.join(below, entry.name)
                if stat.S_ISDIR(mode) and name.count("/") < _MAX_DEPTH:
                    todo.append(name)
                elif not stat.S_ISREG(mode):
                    continue
                stamp = [info.st_ino, info.st_mtime_ns, info.st_ctime_ns]
                entries.append([name, stat.S_ISDIR(mode), stat.S_IMODE(mode), info.st_size, stamp])
                if len(entries) > limit:
                    raise ValueError(f"{path} holds more than {limit} files")
    return {"kind": "folder", "entries": entries}, []


def gather(paths: list[str], target: str) -> list[str]:
    """Copy those of `paths` that exist below `target`, with the folders above them; which these were."""
    os.mkdir(target, 0o755)
    present = []
    for path in paths:
        above = ""
        for part in path.strip("/").split("/")[:-1]:
            above += f"/{part}"
            if os.path.isdir(above) and not os.path.lexists(target + above):
                os.mkdir(target + above)
                trees.copy_attributes(above, target + above, os.stat(above))
        if os.path.lexists(path):
            present.append(path)
            if not os.path.lexists(target + path):
                trees.copy_any(path, target + path)
    return present


def put(wanted: dict, fds: list[int]) -> None:
    """Write `entries` below `target`: [relative path ("" is the target), kind, mode, link target or descriptor index]."""
    uid, gid, _, _ = command._identity(wanted["user"], wanted["users"])
    target = wanted["target"]
    if not target.startswith("/"):
        raise ValueError(f"{target!r} is not an absolute path")
    os.makedirs(os.path.dirname(target.rstrip("/")) or "/", exist_ok=True)
    for name, kind, mode, what in wanted["entries"]:
        path = os.path.join(target, name) if name else target.rstrip("/") or "/"
        if kind == "folder":
            if not (name == "" and os.path.isdir(path)):  # the target itself may be a link to a folder
                _make_folder(path)
        elif kind == "link":
            _unlink(path)
            os.symlink(what, path)
        else:
            _write(path, fds[what])
        os.chown(path, uid, gid, follow_symlinks=False)
        if kind != "link" and not (kind == "folder" and name == ""):
            os.chmod(path, mode)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _write(path: str, source: int) -> None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        offset = 0
        while sent := os.sendfile(fd, source, offset, _COPY):
            offset += sent
    finally:
        os.close(fd)
