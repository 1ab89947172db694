"""The system calls that Python's standard library does not wrap. Standard library only: the warden runs isolated.

Every function raises OSError with the call's name; numbers of the newer calls are equal on x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2

_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV, _MOUNT_ATTR_IDMAP = 1, 2, 4, 0x00100000
_NR_OPEN_TREE, _NR_MOVE_MOUNT, _NR_MOUNT_SETATTR = 428, 429, 442

# What root may do inside: Docker's default set without those that reach into the kernel's network, device or audit code.
KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)  # chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind
LAST_CAPABILITY = int(Path("/proc/sys/kernel/cap_last_cap").read_text())

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _MountAttr(ctypes.Structure):
    _fields_ = [
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("prop", ctypes.c_uint64),
        ("fd", ctypes.c_uint64),
    ]


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()),
        f"mount {source} on {target}",
    )


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _check(_libc.umount2(target.encode(), flags), f"umount {target}")


def prctl(option: int, value: int = 0, pointer: object = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)), f"prctl {option}")


def clone_tree(path: str, *, recursive: bool = False) -> int:
    """A detached copy of the mount at `path` (nothing is attached anywhere); returns its file descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | (_AT_RECURSIVE if recursive else 0)
    return _check(_libc.syscall(_NR_OPEN_TREE, -100, path.encode(), flags), f"open_tree {path}")


def protect_tree(tree: int, *, read_only: bool = True, user_namespace: int | None = None) -> None:
    """nosuid, nodev, read-only; with `user_namespace` also shows each owner as that namespace's user of the same number."""
    bits = _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV | (_MOUNT_ATTR_RDONLY if read_only else 0)
    if user_namespace is not None:
        bits |= _MOUNT_ATTR_IDMAP
    attr = _MountAttr(bits, 0, 0, user_namespace or 0)
    call = _libc.syscall(_NR_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(attr), ctypes.c_size_t(32))
    _check(call, "mount_setattr")


def attach_tree(tree: int, target: str) -> None:
    call = _libc.syscall(_NR_MOVE_MOUNT, tree, b"", -100, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
    _check(call, f"move_mount to {target}")


def drop_capabilities(keep: tuple[int, ...] = KEPT_CAPABILITIES) -> None:
    """Shrink the bounding set: the next execve by root gets `keep`, by anyone else nothing."""
    for number in range(LAST_CAPABILITY + 1):
        if number not in keep:
            prctl(PR_CAPBSET_DROP, number)
