"""Runs side by side: the parameters that differ, and the headline numbers of their tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.runs.folder import Run

MOST_ROWS = 100_000  # of one table
NAMES = {"id", "run_id", "seed", "time"}  # columns that name things: their mean says nothing
TRUTHS = {"true": 1.0, "false": 0.0}


def differing_parameters(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Parameters that are not equal in all runs, with each run's value; None where a run has no such parameter."""
    names = dict.fromkeys(name for run in runs for name in run.params["parameters"])
    found = {name: [run.params["parameters"].get(name) for run in runs] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def headline_numbers(run: Run) -> dict[str, float]:
    """Of each CSV in the run's tables/: how many rows, and of each column of numbers (true is 1) the mean.

    A table of one row gives its numbers as they are. Columns that name things (id, seed, time) are left out.
    """
    found: dict[str, float] = {}
    for path in sorted((run.folder / "tables").glob("*.csv")):
        rows = _read(path)
        found[f"{path.stem}: rows"] = len(rows)
        for column in rows[0] if rows else ():
            numbers = _numbers(row[column] for row in rows)
            if numbers and column not in NAMES:
                name = f"{path.stem}: {column}" + (" (mean)" if len(rows) > 1 else "")
                found[name] = math.fsum(numbers) / len(numbers)
    return found


def side_by_side(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Rows `what`, `kind` (parameter, state or number), `values` (one a run, None where it has none), `differs`."""
    rows = [_row(name, "parameter", values) for name, values in differing_parameters(runs).items()]
    rows.append(_row("state", "state", [run.state()["state"] for run in runs]))
    numbers = [headline_numbers(run) for run in runs]
    names = dict.fromkeys(name for of_run in numbers for name in of_run)
    return rows + [_row(name, "number", [of_run.get(name) for of_run in numbers]) for name in names]


def _row(what: str, kind: str, values: list[Any]) -> dict[str, Any]:
    return {"what": what, "kind": kind, "values": values, "differs": any(v != values[0] for v in values)}


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = []
        for row in csv.DictReader(file):
            rows.append({k: v or "" for k, v in row.items() if k})
            if len(rows) == MOST_ROWS:
                break
    return rows


def _numbers(cells: Iterable[str]) -> list[float]:
    """The cells as numbers, empty ones left out; [] when one of them is none."""
    found = []
    for cell in filter(None, cells):
        try:
            number = TRUTHS[cell.lower()] if cell.lower() in TRUTHS else float(cell)
        except ValueError:
            return []
        if not math.isfinite(number):
            continue
        found.append(number)
    return found
