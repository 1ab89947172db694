"""Disk and memory held by files that no walk over the folders finds: open ones without a name, and those in memory."""

from __future__ import annotations

import os
import stat


def size(proc: int, names: list[str]) -> tuple[int, int]:
    """(bytes on disk, bytes in memory). proc: an open /proc of the sandbox; names: its processes, whose threads may hold
    files of their own."""
    memory, found = _memory(proc), {}
    for pid in names:
        for thread in _names(proc, f"{pid}/task"):
            for number in _names(proc, f"{pid}/task/{thread}/fd"):
                try:
                    info = os.stat(f"{pid}/task/{thread}/fd/{number}", dir_fd=proc)
                except OSError:  # it has just ended
                    continue
                if not info.st_nlink and stat.S_ISREG(info.st_mode):
                    found[info.st_dev, info.st_ino] = info.st_blocks * 512
    held = sum(used for (device, _), used in found.items() if device in memory)
    return sum(found.values()) - held, held + _shared(proc)


def _shared(proc: int) -> int:
    """Bytes used in /dev/shm."""
    try:
        fd = os.open("1/root/dev/shm", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    except OSError:
        return 0
    try:
        info = os.statvfs(fd)
        return (info.f_blocks - info.f_bfree) * info.f_frsize
    finally:
        os.close(fd)


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
