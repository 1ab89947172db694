"""The system calls that a sandbox may not make, as a classic-BPF program written by hand.

A refused call returns EPERM, so that programs which probe for a feature go on without it; `clone3` returns ENOSYS,
since its flags lie in memory that a filter cannot read and the C library then falls back to `clone`. `ptrace` is allowed:
tasks use gdb and strace, and a sandbox only sees its own processes.
"""

from __future__ import annotations

import ctypes
import os
import struct

from calls import ARCHITECTURES, PRETENDED, REFUSED
from linux import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

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
    if machine not in ARCHITECTURES:
        return b""
    column = list(ARCHITECTURES).index(machine)
    refuse = _op(_RETURN, _ERRNO | _EPERM)
    code = [_op(_LOAD, 4), _op(_EQUAL, ARCHITECTURES[machine], 1, 0), _op(_RETURN, _KILL), _op(_LOAD, 0)]
    if machine == "x86_64":
        code += [_op(_AT_LEAST, _X32, 0, 1), _op(_RETURN, _ERRNO | _ENOSYS)]
    code += [_op(_EQUAL, _CLONE3[column], 0, 1), _op(_RETURN, _ERRNO | _ENOSYS)]
    for numbers in REFUSED.values():
        if numbers[column] is not None:
            code += [_op(_EQUAL, numbers[column], 0, 1), refuse]
    for numbers in PRETENDED.values() if one_user else ():
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
