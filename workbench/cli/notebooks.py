"""`workbench run`, `resume` and `runs`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, table
from workbench.runs.folder import Run, RunError, list_runs, open_run
from workbench.runs.journal import RunLocked
from workbench.runs.notebooks import NotebookError, resolve_notebook, resume_run, run_notebook
from workbench.runs.parameters import ParameterError, read_parameters


def main(arguments: argparse.Namespace) -> int:
    """Run a notebook; `--parameters` only lists what it takes."""
    if arguments.show_parameters:
        return _parameters(arguments)
    names = [name for name, _ in arguments.parameters]
    if twice := {n for n in names if names.count(n) > 1}:
        raise UsageError(f"-p {', '.join(sorted(twice))} is given more than once; it takes one value")
    return _play(
        arguments, lambda started: run_notebook(arguments.notebook, dict(arguments.parameters), started=started)
    )


def resume(arguments: argparse.Namespace) -> int:
    return _play(arguments, lambda started: resume_run(arguments.run, started=started))


def _play(arguments: argparse.Namespace, play: Callable[[Callable[[Run], None]], int]) -> int:
    begun: list[Run] = []

    def started(run: Run) -> None:
        begun.append(run)
        print(f"run folder: {run.folder}", file=sys.stderr, flush=True)

    try:
        code = play(started)
    except (ParameterError, NotebookError, RunError, RunLocked) as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        raise UsageError(f"running notebooks needs the notebook extra ({error}): make env") from None
    run = begun[0]
    if arguments.json:
        json_line({"notebook": run.notebook, "run": str(run.folder), **_state(run), "exit_code": code})
    elif code == 0:
        print(f"done: {run.folder}")
    return code


def _parameters(arguments: argparse.Namespace) -> int:
    try:
        known = read_parameters(resolve_notebook(arguments.notebook))
    except (ParameterError, NotebookError) as error:
        raise UsageError(str(error)) from None
    if arguments.json:
        for p in known.values():
            json_line({"name": p.name, "type": p.type, "default": p.default, "help": p.help})
    else:
        table((p.name, p.type or "any", repr(p.default), p.help) for p in known.values())
    return 0


def runs(arguments: argparse.Namespace) -> int:
    """Newest first: where, when, which profile, what became of it, how many records."""
    found = [f for f in reversed(list_runs()) if arguments.notebook in (None, f.parent.name)]
    rows = []
    for folder in found:
        run = open_run(folder)
        row = {"run": str(folder), "notebook": run.notebook, "time": run.params["time"], "profile": run.profile}
        rows.append({**row, **_state(run), "records": sum(run.kinds().values())})
    if arguments.json:
        for row in rows:
            json_line(row)
    elif rows:
        when = lambda row: time.strftime("%Y-%m-%d %H:%M", time.localtime(row["time"]))  # noqa: E731
        table((when(r), r["profile"] or "-", r["state"], f"{r['records']} records", r["run"]) for r in rows)
    else:
        of = f" of {arguments.notebook}" if arguments.notebook else ""
        print(f"no runs{of} yet: workbench run {arguments.notebook or '40_flywheel'}", file=sys.stderr)
    return 0


def _state(run: Run) -> dict[str, object]:
    state = run.state()
    return {"state": state["state"], "message": state["message"]}
