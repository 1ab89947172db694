"""Kernel folders of runners that were killed: found by a lock that died with its holder."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from workbench.runs.journal import is_locked

PREFIX = "workbench-kernel-"


def sweep() -> list[str]:
    """Remove kernel folders of this user's dead runners, never of a living one; one line for each."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = folder / "lock"
        try:
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            # an empty lock, or none yet: another runner is just making this folder
            dead = mine and lock.stat().st_size > 0 and not is_locked(lock)
        except FileNotFoundError:
            continue
        if not dead:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(f"kernel folder {folder}")
    return removed
