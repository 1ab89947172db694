"""Look into a run: its pool, what the proposer was asked for, what the proposer keeps.

    from workbench.report import explore
    explore.pool("latest")
    explore.assignments("latest")
    explore.harness("path/of/the/store")     # or a run whose folder holds one

Each is a widget that a mouse and a keyboard can use, and static HTML where there is no front end. Everything shown may come from
a sandbox; it is shown as text.
"""

from __future__ import annotations

from pathlib import Path

from workbench.report.assignment_view import AssignmentView
from workbench.report.harness_versions import HarnessVersions
from workbench.report.pool_browser import PoolBrowser
from workbench.runs.folder import Run


def pool(run: Run | str) -> PoolBrowser:
    """Filter, sort and open environments: verdict, files, tests, attempts, lineage. RunError when there is no such run."""
    return PoolBrowser(run)


def assignments(run: Run | str) -> AssignmentView:
    """Each assignment with its parent, pass rate, failures and the answer. RunError when there is no such run."""
    return AssignmentView(run)


def harness(store: Run | str | Path) -> HarnessVersions:
    """Versions of a proposer's memory/ and tools/, with differences. FileNotFoundError when there is no store."""
    return HarnessVersions(store)


__all__ = ["assignments", "harness", "pool"]
