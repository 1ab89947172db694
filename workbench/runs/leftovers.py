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
        if folder.is_symlink() or folder.stat().st_uid != os.getuid() or not lock.exists() or is_locked(lock):
            continue  # without a lock it is a folder that another runner is just making
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(f"kernel folder {folder}")
    return removed
