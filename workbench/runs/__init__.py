"""How a run is kept: run folder, append-only journal, papermill runner, progress.

Here belongs what any room may use to write down what it did; nothing here knows tasks or models.
No other room is imported.
"""

from __future__ import annotations

from workbench.runs.folder import Run, RunError, find_run, list_runs, new_run, open_run
from workbench.runs.journal import Journal, RunLocked, read_journal
from workbench.runs.profiles import Profile, load_profile
from workbench.runs.progress import Progress, progress, say

__all__ = [
    "Journal", "Profile", "Progress", "Run", "RunError", "RunLocked", "find_run", "list_runs", "load_profile", "new_run",
    "open_run", "progress", "read_journal", "say",
]  # fmt: skip
