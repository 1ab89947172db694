"""What dead host processes left: found by the pid and start time in the name of their folder, removed whole.

A host's wardens end by themselves when it dies and take mounts and processes with them (both live in namespaces of
their own); what can remain is folders, control groups, and a warden that was itself stopped.
"""

# ruff: noqa: PTH208
from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

from workbench.runs.temporary import start_time
from workbench.sandboxes.cgroups import remove_group
from workbench.sandboxes.layers import Host, here
from workbench.sandboxes.warden import trees

_YOUNG = 60.0  # seconds: a folder without its record may be one that is being made
_ENDING = 10.0


def clean(host: Host) -> list[str]:
    """Remove everything of dead hosts that used the same state folder; one line for each thing removed."""
    removed: list[str] = []
    for folder in sorted((host.state / "hosts").iterdir()):
        if folder != host.folder and _dead(folder):
            removed += _remove(folder)
    return removed


def _record(folder: Path) -> dict | None:
    try:
        return json.loads((folder / "host.json").read_text())
    except (OSError, ValueError):
        return None


def _dead(folder: Path) -> bool:
    pid, _, started = folder.name.partition("-")
    if not pid.isdigit():
        return False
    record = _record(folder)
    try:
        young = time.time() - folder.stat().st_mtime < _YOUNG
    except FileNotFoundError:
        return False
    if record is None:
        return not young and start_time(int(pid)) != started
    boot, namespace = here()
    if record.get("boot") != boot:
        return True
    return record.get("pids") == namespace and start_time(int(pid)) != started


def _remove(folder: Path) -> list[str]:
    removed = [f"process {pid} (warden of dead host {folder.name})" for pid in _end_wardens(folder.name)]
    for group in map(Path, (_record(folder) or {}).get("cgroups", [])):
        if group.name == f"workbench-{folder.name}":  # never another host's, whatever the record says
            removed += _remove_groups(group)
    boxes = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    with contextlib.suppress(FileNotFoundError):  # another process cleans at the same time
        trees.remove(str(folder))
    return [*removed, *(f"folder {folder / name}" for name in boxes), f"folder {folder}"]


def _end_wardens(name: str) -> list[int]:
    """Kill the wardens of this host, and wait until they are gone."""
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_warden(pid, name)]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + _ENDING
    while any(_is_warden(pid, name) for pid in found) and time.monotonic() < until:
        time.sleep(0.005)
    return found


def _is_warden(pid: int, name: str) -> bool:
    """By the whole command line of `slots.Slot`: somebody who looks for a host by its name carries the name too."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        ours = len(words) == 6 and words[1:3] == [b"-I", b"-S"] and words[3].endswith(b"/warden")
        return ours and words[5] == name.encode() and Path(f"/proc/{pid}").stat().st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def _remove_groups(group: Path) -> list[str]:
    if not group.is_dir():
        return []
    for folder in [path for path in group.iterdir() if path.is_dir()]:
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        remove_group(folder)
    return [f"control group {group}"] if remove_group(group) else []
