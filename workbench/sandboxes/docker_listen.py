"""A listening socket in a container's own network, for the host to serve. Only as root on the engine's own machine.

A program that may enter a network cannot leave it again, so a child does: it enters, listens, and hands the socket over.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

from workbench.sandboxes import SandboxError

# Descriptors: 1st argument the network, 2nd a socket to us. The kernel's fresh loopback is down: 0x8914 sets its flags (up, running).
_CHILD = """
import fcntl, os, socket, struct, sys
network, link, port = map(int, sys.argv[1:])
os.setns(network, 0x40000000)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
listening = socket.create_server(("127.0.0.1", port), backlog=128)
socket.send_fds(socket.socket(fileno=link), [b"L"], [listening.fileno()])
"""
_SECONDS = 20.0


def listen_in(pid: int, is_ours: Callable[[int], bool], port: int = 0) -> socket.socket:
    """A socket that listens on 127.0.0.1 (0: any free port) in the network of process `pid`. is_ours: whether that pid is
    still the one that is meant. Raises SandboxError."""
    try:
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"the sandbox's network cannot be entered: {error}") from error
    ours, theirs = socket.socketpair()
    try:
        if not is_ours(pid):  # asked after: the number may have become another process's
            raise SandboxError("the sandbox is gone")
        command = [sys.executable, "-I", "-S", "-c", _CHILD, str(network), str(theirs.fileno()), str(port)]
        done = subprocess.run(command, pass_fds=[network, theirs.fileno()], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=_SECONDS, check=False)  # fmt: skip
        if done.returncode != 0:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise SandboxError(f"no socket in the sandbox's network: {' '.join(last)}")
        (fd,) = socket.recv_fds(ours, 1, 1)[1]
        return socket.socket(fileno=fd)
    except subprocess.TimeoutExpired:
        raise SandboxError("no socket in the sandbox's network: it took too long") from None
    finally:
        os.close(network)
        ours.close()
        theirs.close()
