"""Strict grader: five outputs against the key that the world gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"runs": 2, "run_metrics": 3, "leaderboard": 3, "parity": 3, "report": 1}
RUNS = ["run_id", "model", "task", "seed", "status", "predictions"]
METRICS = ["run_id", "items", "missing", "invalid", "correct", "accuracy", "macro_f1", "ece"]
PARITY = ["model", "task", "claimed", "recomputed", "difference", "verdict", "cause"]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {
        "runs": _table(truth["runs"], RUNS, hostile.table_file(tree, "output/staging/runs.csv")),
        "run_metrics": _table(truth["metrics"], METRICS, hostile.table_file(tree, "output/staging/run_metrics.csv")),
        "leaderboard": _board(truth["leaderboard"], hostile.json_file(tree, "output/leaderboard.json")),
        "parity": _table(truth["parity"], PARITY, hostile.table_file(tree, "output/parity.csv")),
        "report": _report(truth["report"], hostile.json_file(tree, "output/report.json")),
    }


def _table(expected: list[list[str]], columns: list[str], found: Any) -> float:
    return records.share([dict(zip(columns, row, strict=True)) for row in expected], records.table(found, columns), 0.5)


def _board(expected: Mapping[str, Any], got: Any) -> float:
    """Share of (model, task) cells that are right; all only when ranks and scores are right too."""
    if hostile.same(expected, got):
        return 1.0
    models = got.get("models") if isinstance(got, dict) else None
    if not isinstance(models, list):
        return 0.0
    cells = {(m["model"], task): cell for m in expected["models"] for task, cell in m["by_task"].items()}
    right = 0
    for model in models[: len(expected["models"])]:
        by_task = model.get("by_task") if isinstance(model, dict) else None
        for task, cell in by_task.items() if isinstance(by_task, dict) else ():
            name = model.get("model")
            right += isinstance(name, str) and (name, task) in cells and hostile.same(cells[name, task], cell)
    part = right / len(cells)
    return min(part, 0.9) if part >= 0.5 else 0.0


def _report(expected: Mapping[str, Any], got: Any) -> float:
    """Nothing unless the benchmark and the list of wrong claims are right."""
    if not isinstance(got, dict) or any(got.get(key) != expected[key] for key in ("benchmark", "mismatches")):
        return 0.0
    return records.share(expected, got, 0.5)
