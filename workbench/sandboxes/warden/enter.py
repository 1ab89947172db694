"""From the host's namespaces into the warden's own: of users, of processes, of mounts.

The warden is the first process of its own process namespace: when it is killed the kernel kills all that it started,
and it can fork into a sandbox's process namespace and come back (which takes power over both).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

import wire
from linux import (
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    attach_tree,
    mount,
    prctl,
)

STATE = "/sys/state"  # where the warden sees the host's state folder, whatever it is called outside
SYSTEM = "/sys/usr"  # the host's /usr, with the owners shown as they are outside where the file system can


def enter(link: socket.socket) -> None:
    """Follow the host's first message: {map: "self" | "host" | "joined", state: path}. Fds: a user namespace to join."""
    message, fds = wire.receive(link) or ({}, [])
    if not message:
        raise ConnectionResetError("the host went away")
    if message["map"] == "joined":
        os.setns(fds[0], CLONE_NEWUSER)
    else:
        uid, gid = os.getuid(), os.getgid()
        os.unshare(CLONE_NEWUSER)
        if message["map"] == "self":
            _map_only(uid, gid)
    wire.close(fds)
    wire.send(link, {"unshared": True}, [])
    mapped = wire.receive(link)
    if mapped is None:
        raise ConnectionResetError("the host went away")
    trees = mapped[1]
    _become_root()
    os.unshare(CLONE_NEWPID)
    _leave_parent()
    os.unshare(CLONE_NEWNS)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    _mount_state(message["state"], trees)
    wire.close(trees)
    # Read-only in some containers; the system call filter refuses new namespaces anyway.
    with contextlib.suppress(OSError):
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    wire.send(link, {"ready": True}, [])


def _map_only(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def _become_root() -> None:
    os.setresgid(0, 0, 0)
    with contextlib.suppress(PermissionError):  # an ordinary user's map forbids it
        os.setgroups([])
    os.setresuid(0, 0, 0)
    prctl(PR_SET_DUMPABLE, 1)  # or /proc/self would belong to the host's root


def _leave_parent() -> None:
    """Go on as a child, which is within the new process namespace; the parent only waits, and dies with it or it with him."""
    child = os.fork()
    if child:
        os.closerange(3, 4096)
        os.waitpid(child, 0)
        os._exit(0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _mount_state(state: str, trees: list[int]) -> None:
    """Root sends detached mounts of its folders (they need not be reachable for others); a user's are bound by path."""
    origin = os.open(state, os.O_PATH) if not trees else None
    mount("tmpfs", "/sys", "tmpfs", options="mode=755,size=1m")  # nobody keeps data there, and nothing here needs it
    for folder in (STATE, SYSTEM):
        Path(folder).mkdir()
    if trees:
        for tree, target in zip(trees, (STATE, SYSTEM), strict=False):
            attach_tree(tree, target)
    if origin is not None:
        mount(f"/proc/self/fd/{origin}", STATE, flags=MS_BIND | MS_REC)
        os.close(origin)
    if len(trees) < 2:
        mount("/usr", SYSTEM, flags=MS_BIND | MS_REC)
