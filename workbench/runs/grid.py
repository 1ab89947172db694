"""Grids: every combination of the values that some parameters of a notebook are given."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.runs.digest import code_digest, facts
from workbench.runs.notebooks import full_parameters
from workbench.runs.parameters import ParameterError

MOST_RUNS = 10_000


@dataclass(frozen=True)
class Point:
    """One run of a grid. varied: the grid's own values; parameters: all of them; facts: see `digest.facts`."""

    varied: dict[str, Any]
    parameters: dict[str, Any]
    facts: dict[str, str]

    @property
    def key(self) -> str:
        return self.facts["key"]

    @property
    def label(self) -> str:
        return label(self.varied)


def label(varied: Mapping[str, Any]) -> str:
    """`model=a seed=0`."""
    return " ".join(f"{name}={value}" for name, value in varied.items()) or "run"


def points(
    notebook: Path, grid: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any] | None = None, cwd: str = ""
) -> list[Point]:
    """Every run of a grid, the last name varying fastest. All values are checked before anything is started.

    ParameterError: an unknown name or a wrong value, a name with no values or given twice, the same run twice.
    """
    parameters, cwd = dict(parameters or {}), cwd or str(Path.cwd())
    _check(grid, parameters)
    code = code_digest(notebook)
    found: dict[str, Point] = {}
    for values in itertools.product(*grid.values()):
        varied = dict(zip(grid, values, strict=True))
        full = full_parameters(notebook, {**parameters, **varied})
        point = Point({name: full[name] for name in grid}, full, facts(notebook, full, code, cwd))
        if point.key in found:
            raise ParameterError(f"the grid has {point.label} twice: give each value once")
        found[point.key] = point
    return list(found.values())


def _check(grid: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any]) -> None:
    size = 1
    for name, values in grid.items():
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise ParameterError(f"the grid's {name} must be a list of values, not {values!r}")
        if not values:
            raise ParameterError(f"the grid's {name} has no values")
        size *= len(values)
    if both := sorted(grid.keys() & parameters.keys()):
        raise ParameterError(f"{', '.join(both)} is given as one value and as a grid: give it once")
    if size > MOST_RUNS:
        raise ParameterError(f"the grid has {size} runs, more than {MOST_RUNS}: split it")
