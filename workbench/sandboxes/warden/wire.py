"""Messages between host and warden: one JSON object with file descriptors, over a SOCK_SEQPACKET socket pair.

A text longer than a packet travels in an anonymous file. Used by both ends; standard library only.
"""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH123
from __future__ import annotations

import json
import os
import socket

MAX_FDS = 200  # the kernel passes at most 253 with one message
_PACKET = 64 * 1024


def send(link: socket.socket, message: dict, fds: list[int]) -> None:
    data = json.dumps(message).encode("utf-8", "surrogatepass")
    if len(data) <= _PACKET:
        socket.send_fds(link, [b"=" + data], fds)
        return
    store = os.memfd_create("message", os.MFD_CLOEXEC)
    try:
        with open(os.dup(store), "wb") as file:
            file.write(data)
        socket.send_fds(link, [b"+"], [store, *fds])
    finally:
        os.close(store)


def receive(link: socket.socket) -> tuple[dict, list[int]] | None:
    """The next message and its descriptors (close them), or None when the other end is gone."""
    try:
        data, fds, _, _ = socket.recv_fds(link, _PACKET + 1, MAX_FDS + 8)
    except ConnectionError:
        return None
    if not data:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)
    if data[:1] == b"+":
        store = fds.pop(0)
        with os.fdopen(store, "rb") as file:
            file.seek(0)
            data = b"=" + file.read()
    return json.loads(data[1:].decode("utf-8", "surrogatepass")), list(fds)


def close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
