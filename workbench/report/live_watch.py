"""Whether a run is alive and how long it will take, found without touching its locks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.runs.folder import Run

OVER = ("done", "failed", "interrupted", "killed")
_LEFT = re.compile(r"(\d+:\d\d(?::\d\d)?) left")
_LOG_TAIL = 4096  # bytes of the progress log that are read


def state_of(run: Run) -> dict[str, Any]:
    """As Run.state(), but by looking at the kernel's list of locks: trying a lock, even for a moment, could refuse it to the
    process that wants to write just then. Where there is no such list (not Linux), "alive" is None."""
    try:
        status = json.loads((run.folder / "status.json").read_text())
    except (OSError, ValueError):
        status = {"state": "interactive", "exit_code": None, "message": ""}
    alive = _held([run.folder / name for name in ("journal.lock", "runner.lock")])
    if status["state"] == "running" and alive is False:
        status["state"] = "killed"
    return {**status, "alive": alive}


def _held(paths: list[Path]) -> bool | None:
    try:
        listed = Path("/proc/locks").read_text()
    except OSError:
        return None
    # Device major:minor:inode. Layered file systems name another device there than stat does, so the inode decides.
    held = {word.rpartition(":")[2] for line in listed.splitlines() for word in line.split() if word.count(":") == 2}
    return any(_inode(path) in held for path in paths)


def _inode(path: Path) -> str:
    try:
        return str(path.stat().st_ino)
    except OSError:
        return ""


def time_left(run: Run, round: Mapping[str, Any], updates: int, begun: float, now: float) -> str:
    """Words for how long it will take, and what that counts; "" when nothing says so.

    By updates when the run's parameters say how many there will be, else by the answers that the round still waits for, else
    what the last line of its own progress says."""
    parameters = run.params.get("parameters") or {}
    planned = next((p for name in ("updates", "steps") if isinstance(p := parameters.get(name), int) and p > 0), 0)
    if planned and updates:
        return _words(updates, planned, now - begun, "updates")
    assigned, answered, since = (round.get(k) or 0 for k in ("assigned", "answered", "time"))
    if assigned and answered and since and answered < assigned:
        return _words(answered, assigned, now - since, f"answers of round {round.get('round')}")
    found = _LEFT.findall(_log_tail(run.folder / "progress.log"))
    return f"{found[-1]} (its own progress)" if found else ""


def _words(done: int, of: int, seconds: float, what: str) -> str:
    return f"{clock(seconds / done * max(0, of - done))} ({done} of {of} {what})"


def clock(seconds: float) -> str:
    seconds = max(0, int(seconds))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def _log_tail(path: Path) -> str:
    """The last line of it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_TAIL))
            return file.read(_LOG_TAIL).decode(errors="replace").rstrip("\n").rpartition("\n")[2]
    except OSError:
        return ""
