"""Disk held by open files that have no name any more: no walk over the folders finds them."""

from __future__ import annotations

import os
import stat


def size(proc: int, names: list[str]) -> int:
    """Bytes on disk. proc: an open /proc of the sandbox; names: its processes. Threads may hold files of their own."""
    memory, found = _memory(proc), {}
    for pid in names:
        for thread in _names(proc, f"{pid}/task"):
            for number in _names(proc, f"{pid}/task/{thread}/fd"):
                try:
                    info = os.stat(f"{pid}/task/{thread}/fd/{number}", dir_fd=proc)
                except OSError:  # it has just ended
                    continue
                if not info.st_nlink and stat.S_ISREG(info.st_mode) and info.st_dev not in memory:
                    found[info.st_dev, info.st_ino] = info.st_blocks * 512
    return sum(found.values())


def _memory(proc: int) -> set[int]:
    """Device numbers of file systems in memory, which counts there: the kernel's own (memfd), /dev and /dev/shm."""
    fd = os.memfd_create("device")
    try:
        devices = {os.fstat(fd).st_dev}
    finally:
        os.close(fd)
    for path in ("1/root/dev", "1/root/dev/shm"):
        try:
            devices.add(os.stat(path, dir_fd=proc).st_dev)
        except OSError:
            continue
    return devices


def _names(proc: int, path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    except OSError:
        return []
    try:
        return os.listdir(fd)  # noqa: PTH208
    except OSError:
        return []
    finally:
        os.close(fd)
