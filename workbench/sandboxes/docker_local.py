"""A running container's files without the engine's archives (40 ms and more each): through /proc/PID/root.

Only where the engine's machine is this one, we are root, and the container's users are this machine's. Paths are walked
folder by folder by descriptor and no link is ever followed, so that nothing inside can lead a read or a write elsewhere;
a path that leads over a link is the engine's to resolve (`NotHere`), as is all else that is not plain.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from workbench.sandboxes.docker_files import inside

_FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


class NotHere(Exception):
    """Ask the engine: the container does not run, the path leads over a link, or this machine may not."""


class LocalFiles:
    """init: the first process's pid on this machine, 0 for none. is_ours: whether a pid belongs to the container."""

    def __init__(self, init: int, is_ours: Callable[[int], bool]):
        self._init, self._is_ours = init, is_ours

    def read(self, path: str, *, max_bytes: int, what: str) -> bytes:
        """A regular file's bytes, of at most the size it has now. FileNotFoundError; ValueError as `read_single`."""
        with self._root() as root, _folder(root, posixpath.dirname(path)) as folder:
            file = os.open(posixpath.basename(path) or ".", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                info = os.fstat(file)
                if not stat.S_ISREG(info.st_mode):
                    raise ValueError(f"{what} is not a regular file")
                if info.st_size > max_bytes:
                    raise ValueError(f"{what} has {info.st_size:,} bytes, more than {max_bytes:,}")
                # opened only now that it is known to be no device or pipe, and by its descriptor: nothing can be swapped
                with Path(f"/proc/self/fd/{file}").open("rb", buffering=0) as opened:
                    return _exactly(opened.fileno(), info.st_size)
            finally:
                os.close(file)

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files, links and whole folders; one that is not there is none."""
        with self._root() as root:
            for path in paths:
                with contextlib.suppress(FileNotFoundError), _folder(root, posixpath.dirname(path)) as folder:
                    _remove(posixpath.basename(path), folder)

    def unpack(self, archive: tarfile.TarFile) -> None:
        """Unpack at `/` an archive that we made: files, folders and links, owners and times kept, parents made. What a
        member replaces is removed first, except folders by folders. After NotHere a part may have been unpacked."""
        folders: list[tarfile.TarInfo] = []
        with self._root() as root:
            for member in archive:
                name = inside(member.name)
                if name is None:
                    raise ValueError(f"an archive holds {member.name!r}, which leads out of it")
                if name == ".":
                    continue
                with _folder(root, posixpath.dirname(name), make=True) as folder:
                    _place(archive, member, posixpath.basename(name), folder, root)
                if member.isdir():
                    folders.append(member)
            for member in reversed(folders):  # what was put into them changed their times
                with _folder(root, inside(member.name) or "") as folder:
                    os.utime(f"/proc/self/fd/{folder}", (member.mtime, member.mtime))

    @contextlib.contextmanager
    def _root(self) -> Iterator[int]:
        """A descriptor of the container's `/`. What the engine should be asked about becomes NotHere."""
        try:
            if not self._init:
                raise NotHere("the container is not this machine's")
            root = os.open(f"/proc/{self._init}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if not self._is_ours(self._init):  # asked after: the number may have become another process's
                    raise NotHere("the container does not run")
                if not Path(f"/proc/{self._init}/ns/user").samefile("/proc/self/ns/user"):
                    raise NotHere("the container's users have other numbers here")
                yield root
            finally:
                os.close(root)
        except FileNotFoundError:
            if not self._is_ours(self._init):
                raise NotHere("the container does not run") from None
            raise
        except OSError as error:
            raise NotHere(str(error)) from error


@contextlib.contextmanager
def _folder(root: int, path: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `root`. OSError when a part of the path is a link or a file."""
    folder = os.dup(root)
    try:
        for name in filter(None, path.split("/")):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=folder)
            below = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, folder: int, root: int) -> None:
    mode = stat.S_IMODE(member.mode)
    if member.isdir():
        _make_folder(name, folder)
        made = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fchown(made, member.uid, member.gid)
            os.fchmod(made, mode)
        finally:
            os.close(made)
        return
    _remove(name, folder)
    if member.issym():
        os.symlink(member.linkname, name, dir_fd=folder)
        os.chown(name, member.uid, member.gid, dir_fd=folder, follow_symlinks=False)
    elif member.islnk():
        with _folder(root, posixpath.dirname(member.linkname)) as first:
            os.link(
                posixpath.basename(member.linkname), name, src_dir_fd=first, dst_dir_fd=folder, follow_symlinks=False
            )
    elif member.isreg():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
            shutil.copyfileobj(archive.extractfile(member), file, 1 << 20)  # type: ignore[type-var]
            file.flush()
            os.fchown(file.fileno(), member.uid, member.gid)
            os.fchmod(file.fileno(), mode)
            os.utime(file.fileno(), (member.mtime, member.mtime))


def _make_folder(name: str, folder: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        try:
            shutil.rmtree(name, dir_fd=folder)
        except RecursionError as error:
            raise NotHere("a folder too deep for us") from error


def _exactly(file: int, size: int) -> bytes:
    """At most `size` bytes: a file that grows meanwhile, or one of /proc that never ends, is cut."""
    parts: list[bytes] = []
    while size and (part := os.read(file, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
