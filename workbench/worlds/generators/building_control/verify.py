"""Strict grader: nine artifacts, cell by cell, against the run of the procedure on the tool oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {
    "inputs": 1,
    "baseline": 2,
    "excitation": 2,
    "model": 3,
    "energy_saving": 3,
    "demand_response": 3,
    "log": 2,
    "metrics": 2,
    "summary": 1,
}
TRACE = ["step", "zone_mc", "level", "outdoor_mc", "elec_w"]
METRICS = "run cooling_wh elec_wh cost_microdollars peak_load_w peak_period_wh discomfort_mc switches rmse_mc".split()


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    out = {
        "inputs": _cells(
            truth["inputs"], ["step", "outdoor_mc", "solar_w", "gain_w"], tree, "output/staging/inputs.csv"
        ),
        "baseline": _cells(truth["baseline"], TRACE, tree, "output/baseline_trace.csv"),
        "excitation": _cells(truth["excitation"], TRACE, tree, "output/excitation_trace.csv"),
        "metrics": _cells(truth["metrics"], METRICS, tree, "output/metrics.csv"),
    }
    for name in ("energy_saving", "demand_response"):
        out[name] = _cells(truth[name], [*TRACE, "predicted_next_mc"], tree, f"output/{name}_trace.csv")
    for name, path in (("model", "model"), ("log", "controller_log"), ("summary", "summary")):
        out[name] = _leaves(truth[name], hostile.json_file(tree, f"output/{path}.json"))
    return {name: out[name] for name in COMPONENTS}


def _cells(expected: list[list[str]], columns: list[str], tree: Mapping[str, bytes], path: str) -> float:
    """Share of equal rows in their place; nothing below half of them."""
    rows = records.table(hostile.table_file(tree, path), columns)
    if rows is None or len(rows) != len(expected):
        return 0.0
    right = sum([row[c] for c in columns] == wanted for row, wanted in zip(rows, expected, strict=True))
    return right / len(expected) if 2 * right >= len(expected) else 0.0


def _leaves(expected: Mapping[str, Any], got: Any) -> float:
    """Share of right entries: nothing below half; numbers of another seed agree in a few."""
    anchor = "saving_microdollars"  # of a summary, whose names of runs are guessed easily
    if not isinstance(got, dict) or not hostile.same(expected.get(anchor), got.get(anchor)):
        return 0.0
    return records.share(expected, got, 0.5)
