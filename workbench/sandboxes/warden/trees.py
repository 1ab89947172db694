"""Folders full of hostile names, from outside the sandbox: measure, copy as a layer, remove."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH208, PTH120, PTH102, PTH103, PTH106
from __future__ import annotations

import errno
import itertools
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 8 << 20
_ENTRY = 512  # bytes that a name counts for: millions of empty files are a full disk too
_LEVELS = 500  # descriptors that removing a tree may hold


@contextmanager
def _many_open() -> Iterator[None]:
    """Room for one descriptor a level of a deep tree; commands keep the limit that they know."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@_many_open()
def size(folder: str) -> int:
    """Bytes of disk used below `folder`; links are not followed, a file with several names counts once.

    Folders are entered one by one, each from the one above: a path could be too long for the kernel, or lead elsewhere
    by the time it is used. A tree deeper than there are descriptors counts as without end.
    """
    total, seen, open_folders = 0, set(), []
    try:
        open_folders.append([_enter(folder), None])
        while open_folders:
            here, below = open_folders[-1]
            if below is None:
                below = open_folders[-1][1] = []
                total += _measure(here, below, seen)
            if below:
                try:
                    open_folders.append([_enter(below.pop(), here), None])
                except OSError as error:
                    if error.errno in (errno.EMFILE, errno.ENFILE):
                        return 1 << 62
            else:
                os.close(open_folders.pop()[0])
        return total
    finally:
        for here, _ in open_folders:
            os.close(here)


def _enter(name: str, above: int | None = None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)


def _measure(here: int, below: list[str], seen: set[int]) -> int:
    """Bytes of the entries of one folder; names of its folders are added to `below`."""
    total = 0
    with os.scandir(here) as entries:
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(info.st_mode):
                below.append(entry.name)
            elif info.st_nlink > 1:
                if info.st_ino in seen:
                    continue
                seen.add(info.st_ino)
            total += info.st_blocks * 512 + _ENTRY
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
    serial = itertools.count()
    while names := os.listdir(top):
        _drop(names, top, serial)
        if os.listdir(top) == names:
            raise OSError(errno.ENOTEMPTY, "some files cannot be removed", names[0])


def _drop(names: list[str], top: int, serial: Iterator[int]) -> None:
    """Remove entries of `top`, depth first through open folders; what lies deeper than _LEVELS is moved up into `top`
    (renames across folders are slow), where the caller meets it again."""
    stack = [(os.dup(top), list(names), "")]
    while stack:
        here, left, own = stack[-1]
        if not left:
            os.close(here)
            stack.pop()
            if stack:
                _gone(own, stack[-1][0])
            continue
        name = left.pop()
        if _gone(name, here):
            continue
        os.chmod(name, 0o700, dir_fd=here)
        folder = _enter(name, here)
        if len(stack) < _LEVELS:
            stack.append((folder, os.listdir(folder), name))
            continue
        for below in os.listdir(folder):
            if not _gone(below, folder):
                os.chmod(below, 0o700, dir_fd=folder)  # to move a folder its own .. is written
                os.rename(below, _unused(top, serial), src_dir_fd=folder, dst_dir_fd=top)
        os.close(folder)
        _gone(name, here)


def _gone(name: str, folder: int) -> bool:
    """Remove a file or an empty folder; False for a folder that holds something."""
    try:
        os.unlink(name, dir_fd=folder)
        return True
    except FileNotFoundError:  # somebody else removes it too
        return True
    except (IsADirectoryError, PermissionError):  # a folder: what unlink says depends on the file system
        pass
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _unused(top: int, serial: Iterator[int]) -> str:
    while True:
        name = f".lifted-{next(serial)}"
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name


@_many_open()
@contextmanager
def unless_changed() -> Iterator[None]:
    """A living sandbox's tree changes while it is read: what is gone, or of another kind by now, is passed over."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EEXIST):
            raise


def copy(source: str, target: str) -> None:
    """Copy a layer: owners, modes, times, links, hard links, holes, whiteouts (devices 0:0) and overlay's own marks."""
    os.makedirs(target, exist_ok=True)
    linked = f"{target}.linked"  # a second name of every file that has several, by its inode
    os.mkdir(linked, 0o700)
    open_folders = [(_enter(source), _enter(target), None)]
    try:
        while open_folders:
            origin, goal, below = open_folders.pop()
            open_folders.append((origin, goal, below if below is not None else _copy_files(origin, goal, linked)))
            if below := open_folders[-1][2]:
                name = below.pop()
                with unless_changed():
                    os.mkdir(name, 0o700, dir_fd=goal)
                    open_folders.append((_enter(name, origin), _enter(name, goal), None))
                continue
            _copy_marks(origin, goal, os.fstat(origin))
            os.close(origin)
            os.close(goal)
            open_folders.pop()
    finally:
        for origin, goal, _ in open_folders:
            os.close(origin)
            os.close(goal)
        remove(linked)


def _copy_files(origin: int, goal: int, linked: str) -> list[str]:
    """Copy what is no folder from one folder to another; the names of the folders."""
    below = []
    with os.scandir(origin) as entries:
        for entry in entries:
            with unless_changed():
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    below.append(entry.name)
                    continue
                several = f"{linked}/{info.st_ino}" if info.st_nlink > 1 else ""
                if several and os.path.lexists(several):
                    os.link(several, entry.name, dst_dir_fd=goal, follow_symlinks=False)
                elif _copy_entry(entry.name, entry.name, info, origin, goal) and several:
                    os.link(entry.name, several, src_dir_fd=goal, follow_symlinks=False)
    return below


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


def _copy_entry(
    origin: str, path: str, info: os.stat_result, above: int | None = None, goal: int | None = None
) -> bool:
    """Copy one thing that is no folder; False when it is nothing without its process (a socket's name)."""
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFREG:
        _copy_file(origin, path, info, above, goal)
        return True
    if kind == stat.S_IFLNK:
        os.symlink(os.readlink(origin, dir_fd=above), path, dir_fd=goal)
    elif kind == stat.S_IFCHR and info.st_rdev == 0:
        os.mknod(path, stat.S_IFCHR, 0, dir_fd=goal)  # "deleted here"
        return True
    elif kind == stat.S_IFIFO:
        os.mkfifo(path, 0o600, dir_fd=goal)
    else:
        return False
    os.chown(path, info.st_uid, info.st_gid, dir_fd=goal, follow_symlinks=False)
    if kind == stat.S_IFIFO:
        os.chmod(path, stat.S_IMODE(info.st_mode), dir_fd=goal)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=goal, follow_symlinks=False)
    return True


def _copy_file(origin: str, path: str, info: os.stat_result, above: int | None, goal: int | None) -> None:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    source = os.open(origin, os.O_RDONLY | os.O_NONBLOCK | flags, dir_fd=above)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600, dir_fd=goal)
        try:
            _copy_bytes(source, target)
            _copy_marks(source, target, info)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_bytes(source: int, target: int) -> None:
    """The data alone: a hole stays one, or a terabyte of nothing would fill the disk."""
    length, end = os.fstat(source).st_size, 0
    os.ftruncate(target, length)
    while end < length:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            raise
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < end:
            sent = os.sendfile(target, source, start, min(_CHUNK, end - start))
            if not sent:  # it became shorter
                return
            start += sent


def copy_attributes(origin: str, path: str, info: os.stat_result) -> None:
    """Owner, mode, times and overlay's marks of a folder, by path."""
    source, target = os.open(origin, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), _enter(path)
    try:
        _copy_marks(source, target, info)
    finally:
        os.close(source)
        os.close(target)


def _copy_marks(source: int, target: int, info: os.stat_result) -> None:
    os.chown(target, info.st_uid, info.st_gid)
    for name in os.listxattr(source):
        if name.startswith("user."):
            os.setxattr(target, name, os.getxattr(source, name))
    os.chmod(target, stat.S_IMODE(info.st_mode))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
