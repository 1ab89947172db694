"""Files across the border: tar archives made for an engine, and careful reading of archives that come from a sandbox.

A tar from a sandbox is hostile. What is unpacked here are plain files and folders below one target; links, devices,
pipes and sockets are left out, absolute names and `..` are refused, and sizes are checked before bytes are read.
"""

from __future__ import annotations

import io
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path


class _Chunks(io.RawIOBase):
    """A readable file over an iterator of byte chunks; nothing is kept."""

    def __init__(self, chunks: Iterable[bytes]):
        self._chunks, self._rest = iter(chunks), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def open_stream(chunks: Iterable[bytes]) -> tarfile.TarFile:
    """A tar as it arrives. Raises tarfile.TarError when the bytes are no tar."""
    return tarfile.open(fileobj=io.BufferedReader(_Chunks(chunks), 1 << 16), mode="r|")


def inside(name: str) -> str | None:
    """A member's name as a clean relative path, or None when it points out of the archive."""
    clean = posixpath.normpath(name)
    if name.startswith("/") or clean == ".." or clean.startswith("../") or "\0" in name:
        return None
    return clean


def unpack(chunks: Iterable[bytes], target: Path, *, max_bytes: int, what: str) -> None:
    """Unpack an archive of one file or folder so that its root becomes `target` itself.

    Raises ValueError when the root is neither file nor folder, or more than `max_bytes` bytes would be written.
    """
    left = max_bytes
    with open_stream(chunks) as tar:
        root = tar.next()
        if root is None or not (root.isfile() or root.isdir()):
            raise ValueError(f"{what} is a link, a device, a pipe or a socket, and is not copied out of a sandbox")
        top = root.name.rstrip("/")
        for member in _members(root, tar):
            relative = inside(posixpath.relpath(member.name, top))
            if relative is None or not (member.isfile() or member.isdir()):
                continue
            left -= member.size if member.isfile() else 0
            if left < 0:
                raise ValueError(f"{what} holds more than {max_bytes:,} bytes; ask for a part of it or raise max_bytes")
            _place(tar, member, target if relative == "." else target / relative)


def _members(first: tarfile.TarInfo, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    yield first
    while (member := tar.next()) is not None:
        tar.members.clear()  # a streamed tar remembers every header otherwise: a million empty files is a real attack
        yield member


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write one file or make one folder. Nothing of ours follows a link: the tree below the target is all our own."""
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod((member.mode & 0o777) | 0o700)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    source = tar.extractfile(member)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as out:
        while source is not None and (block := source.read(1 << 20)):
            out.write(block)
        os.fchmod(out.fileno(), (member.mode & 0o777) | 0o600)


def read_single(chunks: Iterable[bytes], *, max_bytes: int, what: str) -> bytes:
    """The bytes of an archive's only member, a regular file. ValueError for anything else, or more bytes."""
    with open_stream(chunks) as tar:
        member = tar.next()
        if member is None or not member.isfile():
            raise ValueError(f"{what} is not a regular file")
        if member.size > max_bytes:
            raise ValueError(f"{what} has {member.size:,} bytes, more than {max_bytes:,}")
        source = tar.extractfile(member)
        return source.read() if source else b""


def add_bytes(tar: tarfile.TarFile, name: str, data: bytes, *, mode: int, uid: int = 0, gid: int = 0) -> None:
    member = tarfile.TarInfo(name.lstrip("/"))
    member.size, member.mode, member.uid, member.gid = len(data), mode, uid, gid
    tar.addfile(member, io.BytesIO(data))


def add_tree(tar: tarfile.TarFile, source: Path, name: str, *, uid: int = 0, gid: int = 0) -> None:
    """Add a file, or a folder's contents, as `name` (the folder itself too, unless name is "").

    Links are added as links. Sockets, pipes and devices raise ValueError: nothing could be copied of them.
    Times are left out, so that equal trees give equal archives.
    """
    name = name.strip("/")
    info = source.lstat()
    if stat.S_ISDIR(info.st_mode):
        if name:
            _add_header(tar, name, tarfile.DIRTYPE, info.st_mode, uid, gid)
        for child in sorted(source.iterdir()):
            add_tree(tar, child, posixpath.join(name, child.name), uid=uid, gid=gid)
    elif stat.S_ISLNK(info.st_mode):
        _add_header(tar, name, tarfile.SYMTYPE, 0o777, uid, gid, link=os.readlink(source))  # noqa: PTH115 (keeps the text)
    elif stat.S_ISREG(info.st_mode):
        add_bytes(tar, name, source.read_bytes(), mode=stat.S_IMODE(info.st_mode), uid=uid, gid=gid)
    else:
        raise ValueError(f"{source} is a device, a pipe or a socket and cannot be copied into a sandbox")


def _add_header(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, uid: int, gid: int, link: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.uid, member.gid, member.linkname = kind, stat.S_IMODE(mode), uid, gid, link
    tar.addfile(member)


def pack(source: Path, name: str, *, uid: int = 0, gid: int = 0) -> bytes:
    """One archive of a host file or folder, to be unpacked at `/`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        add_tree(tar, source, name, uid=uid, gid=gid)
    return buffer.getvalue()


def pack_bytes(name: str, data: bytes, *, mode: int, uid: int = 0, gid: int = 0) -> bytes:
    """One archive of one file, to be unpacked at `/`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        add_bytes(tar, name, data, mode=mode, uid=uid, gid=gid)
    return buffer.getvalue()
