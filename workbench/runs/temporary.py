"""Temporary folders that say whose they are, so that what a killed process left behind can be told from what is in use."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"workbench-[a-z-]+-(\d+)\.(\d+)\.([0-9a-f]+)\.(\d+)-\w+")


def prefix(kind: str) -> str:
    """The beginning of a temporary folder's name, for `tempfile`: its kind ("call") and the process that makes it."""
    return f"workbench-{kind}-{_owner(os.getpid())}-"


def sweep_temporary() -> list[str]:
    """Remove temporary folders of this user's processes that are dead; one line for each.

    Only those of this boot and this process namespace: of any other nobody here can tell whether its process lives.
    """
    removed, here = [], _place()
    for folder in Path(tempfile.gettempdir()).glob("workbench-*"):
        found = _NAME.fullmatch(folder.name)
        if found is None or found.group(3, 4) != here or start_time(int(found[1])) == found[2]:
            continue
        try:
            mine = folder.lstat().st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
        except FileNotFoundError:
            continue
        if mine:
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(f"temporary folder {folder}")
    return removed


@functools.lru_cache(maxsize=4)
def _owner(pid: int) -> str:
    """pid.start.boot.namespace: a pid alone is given out again, and means something only in its own namespace."""
    return ".".join((str(pid), start_time(pid) or "0", *_place()))


def start_time(pid: int) -> str | None:
    """When process `pid` started (clock ticks since boot), which tells it from a later one of the same number. None when there is none: also of
    one that has ended and that its parent has not asked after (a zombie), which owns nothing any more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return None


def _place() -> tuple[str, str]:
    """(this boot, this process namespace), short; nothing is ever swept on a system without /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        return boot, "".join(c for c in str(Path("/proc/self/ns/pid").readlink()) if c.isdigit())
    except OSError:
        return "0", "0"
