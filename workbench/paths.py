"""Where things lie. A checkout keeps its folders side by side; an installed wheel carries notebooks and tasks inside.

Only absolute paths, computed once; nothing here is relative to a current folder but RESULTS of an installed wheel,
which has no checkout to write into. `$WORKBENCH_RESULTS` moves the results of either.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None

NOTEBOOKS = CHECKOUT / "notebooks" if CHECKOUT else PACKAGE / "notebooks"
DATA = CHECKOUT / "data" if CHECKOUT else PACKAGE / "data"
TASKS = DATA / "tasks"


def results() -> Path:
    """The folder of run folders: $WORKBENCH_RESULTS, else `results/` of the checkout or of the current folder."""
    return Path(os.environ.get("WORKBENCH_RESULTS") or (CHECKOUT or Path.cwd()) / "results").resolve()
