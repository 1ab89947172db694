"""What `validate` and `calibrate` share: which tasks, which back end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.parser import UsageError

if TYPE_CHECKING:
    from workbench.sandboxes import Backend

MARKS = ("task.toml", "instruction.md", "solution", "tests", "environment", "steps")


def expand(arguments: list[str]) -> list[Path]:
    """Task folders in the order given, each once: a folder that holds tasks stands for all of them, by name.

    What is no task comes back as it is, so that it gets a verdict (and a reason) of its own. UsageError when nothing
    that was named exists.
    """
    named = [Path(a) for a in arguments]
    if not any(path.exists() for path in named):
        raise UsageError(f"there is no {' and no '.join(map(str, named))}: give a task's folder, or a folder of tasks")
    found: list[Path] = []
    for path in named:
        inside = (
            []
            if looks_like_task(path) or not path.is_dir()
            else sorted(p for p in path.iterdir() if looks_like_task(p))
        )
        found += inside or [path]
    return list(dict.fromkeys(found))


def looks_like_task(path: Path) -> bool:
    """A folder with a task.toml, or with two of the other things that make a task (then its task.toml is missing)."""
    if path.name.startswith(".") or not path.is_dir():
        return False
    there = [mark for mark in MARKS if (path / mark).exists()]
    return "task.toml" in there or len(there) >= 2


def open_backend(name: str) -> Backend | str:
    """The back end, or the reason why this machine cannot have it. UsageError for a name that means nothing."""
    from workbench.sandboxes import get_backend

    try:
        return get_backend(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except Exception as error:  # no engine, no namespaces, no package: the message is the back end's
        return f"the back end {name} cannot be used here: {error} (see: workbench check)"


def jobs(asked: int | None) -> int:
    """How many side by side: as asked, else one for each core, at least two."""
    return asked or max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2)
