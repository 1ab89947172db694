"""Who made a thing, written on it, so that what a dead process left can be told from what a living one uses."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
from pathlib import Path

LABEL = "workbench.owner"


def started(pid: int) -> str:
    """When a process started (opaque text, "" when there is none): a number alone may be another process's by now."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return ""
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip().replace(" ", "_")


@functools.cache
def machine() -> str:
    """This machine since its last start, and our process namespace: pids mean something only within both."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    except OSError:
        return socket.gethostname()


def owner() -> str:
    """This process, for a label."""
    return f"{os.getpid()}|{started(os.getpid())}|{machine()}|{socket.gethostname()}"


def dead(label: str) -> bool:
    """Whether the process that wrote a label has ended. Another machine's things are never called dead; this
    machine's own from before its last start are."""
    pid, start, where, host = [*label.split("|"), "", "", ""][:4]
    if not pid.isdigit():
        return False
    if where == machine():
        return started(int(pid)) != start
    return host == socket.gethostname() and where.partition("/")[0] != machine().partition("/")[0]
