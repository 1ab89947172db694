"""The bytes between a proposer's sandbox and the host: one request and one answer a connection. The other end is hostile.

A message is `wbt1`, the length of a JSON object in four bytes (big-endian), the object, and then the bytes of the files
that its `files` lists as [path, mode, size]. Everything is bounded before it is read; nothing is unpickled; paths are
checked and made anew below a folder of the host's own. Standard library only on both ends.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"wbt1"
_CHUNK = 256 << 10
_HUGE = 1 << 60


@dataclass(frozen=True)
class WireLimits:
    """head: bytes of the JSON. files, bytes: of a folder sent. seconds: to send a request, and to take an answer."""

    head: int = 1 << 20
    files: int = 2_000
    bytes: int = 32 << 20
    seconds: float = 30.0
    first_byte_seconds: float = 5.0


class BadMessage(ValueError):
    """What came is no request. kind: garbage, oversize, half-open, unsafe-path, too-large, too-many-files, bad-name."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def receive(conn: socket.socket, limits: WireLimits) -> tuple[dict[str, Any], float]:
    """The JSON of a request, and the moment (monotonic) by which its files must have come. BadMessage, OSError."""
    started = time.monotonic()
    deadline = started + limits.seconds
    head = _exactly(conn, 8, started + limits.first_byte_seconds)
    if head[:4] != MAGIC:
        raise BadMessage("garbage", "this is no request of the tools; use the programs in /opt/tools")
    (length,) = struct.unpack(">I", head[4:])
    if length > limits.head:
        raise BadMessage("oversize", f"a request of {length:,} bytes; at most {limits.head:,} are read")
    try:
        request = json.loads(_exactly(conn, length, deadline).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadMessage("garbage", f"the request is not JSON: {str(error)[:200]}") from None
    if not isinstance(request, dict) or not isinstance(request.get("tool"), str):
        raise BadMessage("garbage", "a request is an object with the name of a tool")
    return request, deadline


def _exactly(conn: socket.socket, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        conn.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            block = conn.recv(min(size - len(data), _CHUNK))
        except TimeoutError:
            raise BadMessage("half-open", "the request did not come to its end in time") from None
        if not block:
            raise BadMessage("half-open", "the connection ended in the middle of a request")
        data += block
    return bytes(data)


def receive_files(conn: socket.socket, listed: object, target: Path, limits: WireLimits, deadline: float) -> None:
    """Write the files that a request lists below `target`, which is new. BadMessage names what is wrong with which."""
    wanted = checked_list(listed, limits)
    target.mkdir(parents=True)
    for name, mode, size in wanted:
        path = target / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadMessage("unsafe-path", f"{name!r} cannot be made: {error.strerror}") from None
        with os.fdopen(fd, "wb") as file:
            left = size
            while left:
                block = _exactly(conn, min(left, _CHUNK), deadline)
                file.write(block)
                left -= len(block)
        path.chmod(0o755 if mode & 0o100 else 0o644)


def checked_list(listed: object, limits: WireLimits) -> list[tuple[str, int, int]]:
    """The list of a folder's files, all names safe and all sizes within bounds. BadMessage."""
    if not isinstance(listed, list):
        raise BadMessage("garbage", "files must be a list of [path, mode, size]")
    if len(listed) > limits.files:
        raise BadMessage("too-many-files", f"{len(listed):,} files; at most {limits.files:,} are taken")
    found: list[tuple[str, int, int]] = []
    for item in listed:
        match item:
            case [str(name), int(mode), int(size)] if size >= 0 and not isinstance(size, bool):
                size = min(size, _HUGE)  # a number of thousands of digits cannot be printed
                if why := unsafe_name(name):
                    raise BadMessage(why, f"{name[:200]!r} is no path for a task's file: relative, plain names only")
                found.append((name, mode, size))
            case _:
                raise BadMessage("garbage", "files must be a list of [path, mode, size]")
    if (total := sum(size for _, _, size in found)) > limits.bytes:
        raise BadMessage(
            "too-large", f"{total:,} bytes in all; at most {limits.bytes:,} are taken. Make large data in a RUN step"
        )
    if len({name for name, _, _ in found}) != len(found):
        raise BadMessage("unsafe-path", "a file is listed twice")
    return found


def unsafe_name(name: str) -> str:
    """Why a path from a sandbox is not used ("unsafe-path" or "bad-name"), or ""."""
    parts = name.split("/")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts) or len(parts) > 20:
        return "unsafe-path"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "bad-name"
    odd = len(name) > 400 or any(len(part.encode()) > 200 for part in parts)
    return "bad-name" if odd or "\\" in name or not name.isprintable() else ""


def send(conn: socket.socket, answer: Mapping[str, Any], limits: WireLimits, folder: Path | None = None) -> None:
    """One answer, with the files of `folder` (the host's own) when there is one. OSError when nobody listens."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()) if folder else []
    listed = [[str(p.relative_to(folder)), p.stat().st_mode & 0o777, p.stat().st_size] for p in paths]  # type: ignore[arg-type]
    conn.settimeout(limits.seconds)
    conn.sendall(frame({**answer, "files": listed} if folder else answer))
    for path in paths:
        with path.open("rb") as file:
            conn.sendfile(file)


def frame(message: Mapping[str, Any]) -> bytes:
    data = json.dumps(message).encode()
    return MAGIC + struct.pack(">I", len(data)) + data


def is_gone(conn: socket.socket) -> bool:
    """Whether the other end has closed, without reading anything."""
    conn.settimeout(0)  # with a time limit Python would wait for it
    try:
        return conn.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
