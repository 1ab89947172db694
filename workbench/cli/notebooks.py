"""`workbench run` and `workbench resume`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table
from workbench.runs.folder import Run, RunError
from workbench.runs.journal import RunLocked
from workbench.runs.notebooks import NotebookError, latest_unfinished, resolve_notebook, resume_run, run_notebook
from workbench.runs.parameters import ParameterError, read_parameters

if TYPE_CHECKING:
    from workbench.runs.batch import Batch


def main(arguments: argparse.Namespace) -> int:
    """Run a notebook, or a grid of them; `--parameters` only lists what it takes."""
    if arguments.show_parameters:
        return _parameters(arguments)
    _once("-p", [name for name, _ in arguments.parameters], "it takes one value: --grid takes several")
    _once("--grid", [name for name, *_ in arguments.grid], "give all of its values at once")
    parameters = dict(arguments.parameters)
    if arguments.grid:
        return _grid(arguments, parameters)
    if arguments.again or arguments.jobs:
        raise UsageError("--jobs and --again belong to --grid: a single run is always a new one")
    return _play(arguments, lambda started: run_notebook(arguments.notebook, parameters, started=started))


def _once(option: str, names: list[str], advice: str) -> None:
    if twice := {n for n in names if names.count(n) > 1}:
        raise UsageError(f"{option} {', '.join(sorted(twice))} is given more than once; {advice}")


def _grid(arguments: argparse.Namespace, parameters: dict[str, str]) -> int:
    from workbench.runs.batch import new_batch
    from workbench.runs.batch_claims import done_by_other_code

    grid = {name: values for name, *values in arguments.grid}
    with _usage():
        batch = new_batch(arguments.notebook, grid, parameters, again=arguments.again)
        if (other := done_by_other_code(batch.notebook.stem, batch.points)) and not arguments.again:
            message(f"{other} of {len(batch.points)} done by another state of the code: done anew")
        return _work(arguments, batch)


def _work(arguments: argparse.Namespace, batch: Batch) -> int:
    from workbench.runs.batch import work

    print(f"batch {batch.id}: {len(batch.points)} runs, record {batch.path}", file=sys.stderr, flush=True)
    work(batch, arguments.jobs)
    if arguments.json:
        for row in batch.rows:
            json_line({"batch": batch.id, "notebook": batch.notebook.stem, **row})
        json_line({"batch": batch.id, "record": str(batch.path), **batch.counts(), "exit_code": batch.exit_code})
    else:
        print(batch.summary())
    if batch.exit_code:
        message(f"`workbench resume {batch.id}` goes on with what is not done")
    return batch.exit_code


def resume(arguments: argparse.Namespace) -> int:
    """Go on with a batch, with one run, or with the latest run that is not finished."""
    if arguments.run.startswith("batch-") or arguments.run.endswith(".jsonl"):
        from workbench.runs.batch import open_batch

        with _usage():
            return _work(arguments, open_batch(arguments.run))
    if arguments.jobs:
        raise UsageError("--jobs belongs to a batch: resume batch-…")
    spec = arguments.run
    if spec == "latest":
        run, passed = latest_unfinished()
        for other in passed if run else passed[:1]:
            state = "is being written" if other.state()["alive"] else "is finished"
            message(f"{other.folder} {state}, so it is left as it is")
        if run is None and passed:
            return _nothing(arguments, passed[0])
        spec = run.folder if run else spec
    return _play(arguments, lambda started: resume_run(spec, started=started))


def _nothing(arguments: argparse.Namespace, newest: Run) -> int:
    """No run is waiting; that is no failure."""
    if arguments.json:
        json_line({"notebook": newest.notebook, "run": str(newest.folder), **_state(newest), "exit_code": 0})
    else:
        print("nothing to go on with: every run is finished (name one to run its notebook again on its journal)")
    return 0


def _play(arguments: argparse.Namespace, play: Callable[[Callable[[Run], None]], int]) -> int:
    begun: list[Run] = []

    def started(run: Run) -> None:
        begun.append(run)
        print(f"run folder: {run.folder}", file=sys.stderr, flush=True)

    with _usage():
        code = play(started)
    run = begun[0]
    if arguments.json:
        json_line({"notebook": run.notebook, "run": str(run.folder), **_state(run), "exit_code": code})
    elif code == 0:
        print(f"done: {run.folder}")
    return code


@contextmanager
def _usage() -> Iterator[None]:
    """What was asked for wrongly, as the command line says it."""
    try:
        yield
    except (ParameterError, NotebookError, RunError, RunLocked) as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        raise UsageError(f"running notebooks needs the notebook extra ({error}): make env") from None


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


def _state(run: Run) -> dict[str, object]:
    state = run.state()
    return {"state": state["state"], "message": state["message"]}
