"""`workbench task new`."""

from __future__ import annotations

import argparse
import shlex

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line


def new(arguments: argparse.Namespace) -> int:
    """Make a task folder; it validates as it is."""
    from workbench.tasks.scaffold import scaffold

    try:
        task = scaffold(arguments.path, arguments.name, multi_step=arguments.multi_step)
    except (FileExistsError, NotADirectoryError, PermissionError, ValueError) as error:
        raise UsageError(str(error)) from None
    files = sorted(p.relative_to(task.path).as_posix() for p in task.path.rglob("*") if p.is_file())
    if arguments.json:
        json_line({"task": str(task.path), "name": task.name, "files": files})
    else:
        print(
            f"{task.path}: {', '.join(files)}\nNext: edit them, then: workbench validate {shlex.quote(str(task.path))}"
        )
    return 0
