"""Folders full of hostile names, from outside the sandbox: measure, copy as a layer, remove."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH120, PTH101, PTH102, PTH103, PTH106, PTH115, PTH116, PTH123, PTH211
from __future__ import annotations

import os
import stat

_CHUNK = 8 << 20


def size(folder: str) -> int:
    """Bytes of disk used below `folder`; links are not followed, a file with several names counts once."""
    total, seen, todo = 0, set(), [folder]
    while todo:
        try:
            entries = os.scandir(todo.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
                    if info.st_ino in seen:
                        continue
                    seen.add(info.st_ino)
                total += info.st_blocks * 512
                if stat.S_ISDIR(info.st_mode):
                    todo.append(entry.path)
    return total


def remove(folder: str, *, keep_top: bool = False) -> None:
    """Remove without recursion (a hostile tree may be thousands deep): move deep folders up as they are met."""
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    if not keep_top:
        os.rmdir(folder)


def _empty(top: int) -> None:
    serial = 0
    while names := os.listdir(top):
        for name in names:
            try:
                os.unlink(name, dir_fd=top)
                continue
            except FileNotFoundError:  # somebody else removes it too
                continue
            except (IsADirectoryError, PermissionError):  # a folder: what unlink says depends on the file system
                pass
            try:
                os.rmdir(name, dir_fd=top)
                continue
            except OSError:
                pass
            os.chmod(name, 0o700, dir_fd=top)
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                serial = _lift(folder, top, serial)
            finally:
                os.close(folder)


def _lift(folder: int, top: int, serial: int) -> int:
    """Empty `folder`: files are unlinked, folders renamed into `top`, where the caller meets them again."""
    for name in os.listdir(folder):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=folder)
            continue
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            os.chmod(name, 0o700, dir_fd=folder)
            while True:
                serial += 1
                try:
                    os.rename(name, f".lifted-{serial}", src_dir_fd=folder, dst_dir_fd=top)
                    break
                except OSError:
                    if serial > 1 << 30:
                        raise
    return serial


def copy(source: str, target: str) -> None:
    """Copy a layer: owners, modes, times, links, hard links, whiteouts (devices 0:0) and overlay's own marks."""
    os.makedirs(target, exist_ok=True)
    linked: dict[int, str] = {}
    todo = [(source, target)]
    folders = []
    while todo:
        origin, goal = todo.pop()
        folders.append((origin, goal))
        with os.scandir(origin) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                path = f"{goal}/{entry.name}"
                if stat.S_ISDIR(info.st_mode):
                    os.mkdir(path, 0o700)
                    todo.append((entry.path, path))
                elif info.st_nlink > 1 and info.st_ino in linked:
                    os.link(linked[info.st_ino], path, follow_symlinks=False)
                else:
                    _copy_entry(entry.path, path, info)
                    linked[info.st_ino] = path
    for origin, goal in reversed(folders):
        copy_attributes(origin, goal, os.stat(origin))


def copy_any(source: str, target: str) -> None:
    info = os.lstat(source)
    if stat.S_ISDIR(info.st_mode):
        copy(source, target)
    else:
        _copy_entry(source, target, info)


def hide(layer: str, paths: list[str], present: list[str]) -> None:
    """Make the layer's version of `paths` the only one: folders opaque, what is not there marked as deleted."""
    for path in paths:
        place = layer + path
        if path in present:
            if stat.S_ISDIR(os.lstat(place).st_mode):
                os.setxattr(place, "user.overlay.opaque", b"y")
            continue
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        if not os.path.lexists(place):
            os.mknod(place, stat.S_IFCHR, 0)


def _copy_entry(origin: str, path: str, info: os.stat_result) -> None:
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFLNK:
        os.symlink(os.readlink(origin), path)
        os.chown(path, info.st_uid, info.st_gid, follow_symlinks=False)
        return
    if kind == stat.S_IFREG:
        _copy_bytes(origin, path)
    elif kind == stat.S_IFCHR and info.st_rdev == 0:
        os.mknod(path, stat.S_IFCHR, 0)  # "deleted here"
        return
    elif kind == stat.S_IFIFO:
        os.mkfifo(path)
    else:
        return  # a socket's name is nothing without its process
    copy_attributes(origin, path, info)


def _copy_bytes(origin: str, path: str) -> None:
    with open(origin, "rb", buffering=0) as source, open(path, "wb", buffering=0) as target:
        try:
            while os.copy_file_range(source.fileno(), target.fileno(), _CHUNK):
                pass
        except OSError:  # not on this file system
            while os.sendfile(target.fileno(), source.fileno(), None, _CHUNK):
                pass


def copy_attributes(origin: str, path: str, info: os.stat_result) -> None:
    os.chown(path, info.st_uid, info.st_gid, follow_symlinks=False)
    for name in os.listxattr(origin, follow_symlinks=False):
        if name.startswith("user."):
            os.setxattr(path, name, os.getxattr(origin, name, follow_symlinks=False), follow_symlinks=False)
    os.chmod(path, stat.S_IMODE(info.st_mode))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
