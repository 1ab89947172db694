"""The system calls that a sandbox may not make, as a classic-BPF program written by hand.

A refused call returns EPERM, so that programs which probe for a feature go on without it; `clone3` returns ENOSYS,
since its flags lie in memory that a filter cannot read and the C library then falls back to `clone`. `ptrace` is allowed:
tasks use gdb and strace, and a sandbox only sees its own processes.
"""

from __future__ import annotations

import ctypes
import os
import struct

from linux import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Name: number on x86-64, on arm64 (None: that architecture has no such call).
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "clock_adjtime": (305, 266), "clock_settime": (227, 112), "create_module": (174, None),
    "delete_module": (176, 106), "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_kernel_syms": (177, None),
    "get_mempolicy": (239, 236), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None),
    "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "mbind": (237, 235), "migrate_pages": (256, 238), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "perf_event_open": (298, 241), "pivot_root": (155, 41),
    "query_module": (178, None), "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142),
    "request_key": (249, 218), "set_mempolicy": (238, 237), "setns": (308, 268), "settimeofday": (164, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "sysfs": (139, None), "syslog": (103, 116),
    "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}  # fmt: skip
# With one user only these cannot succeed, and installers insist that they do: they report success and change nothing.
_PRETENDED: dict[str, tuple[int | None, int | None]] = {
    "chown": (92, None), "fchown": (93, 55), "fchownat": (260, 54), "lchown": (94, None), "setfsgid": (123, 152),
    "setfsuid": (122, 151), "setgid": (106, 144), "setgroups": (116, 159), "setregid": (114, 143),
    "setresgid": (119, 149), "setresuid": (117, 147), "setreuid": (113, 145), "setuid": (105, 146),
}  # fmt: skip
_CLONE, _CLONE3, _IOCTL = (56, 220), (435, 435), (16, 29)
_NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW*
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put characters into somebody else's terminal
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def program(machine: str | None = None, *, one_user: bool = False) -> bytes:
    """The filter for `machine` (default: this one), as `struct sock_filter[]`; b"" for an unknown architecture."""
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    refuse = _op(_RETURN, _ERRNO | _EPERM)
    code = [_op(_LOAD, 4), _op(_EQUAL, _ARCHITECTURES[machine], 1, 0), _op(_RETURN, _KILL), _op(_LOAD, 0)]
    if machine == "x86_64":
        code += [_op(_AT_LEAST, _X32, 0, 1), _op(_RETURN, _ERRNO | _ENOSYS)]
    code += [_op(_EQUAL, _CLONE3[column], 0, 1), _op(_RETURN, _ERRNO | _ENOSYS)]
    for numbers in _REFUSED.values():
        if numbers[column] is not None:
            code += [_op(_EQUAL, numbers[column], 0, 1), refuse]
    for numbers in _PRETENDED.values() if one_user else ():
        if numbers[column] is not None:
            code += [_op(_EQUAL, numbers[column], 0, 1), _op(_RETURN, _ERRNO)]
    # The low half of the first (clone) and of the second (ioctl) argument, on a little-endian machine.
    code += [_op(_EQUAL, _CLONE[column], 0, 3), _op(_LOAD, 16), _op(_ANY_BIT, _NAMESPACE_FLAGS, 0, 1), refuse]
    code += [_op(_LOAD, 0), _op(_EQUAL, _IOCTL[column], 0, 4), _op(_LOAD, 24)]
    code += [_op(_EQUAL, _TERMINAL_INPUT[0], 1, 0), _op(_EQUAL, _TERMINAL_INPUT[1], 0, 1), refuse]
    return b"".join([*code, _op(_RETURN, _ALLOW)])


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _loadable(code: bytes) -> tuple[_Program, object]:
    buffer = ctypes.create_string_buffer(code, len(code))
    return _Program(len(code) // 8, ctypes.addressof(buffer)), buffer


_FILTERS = {one_user: _loadable(program(one_user=one_user)) for one_user in (False, True)}


def install(*, one_user: bool) -> None:
    """No new privileges, and the filter, for this process and all that it starts."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if _FILTERS[one_user][0].length:
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(_FILTERS[one_user][0]))
