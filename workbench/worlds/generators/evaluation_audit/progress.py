"""Progress: runs known, judged, their predictions counted and scored, models ranked, claims explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("registry", 1, ()),
    ("status", 2, ("registry",)),
    ("predictions", 2, ("registry",)),
    ("metrics", 5, ("predictions",)),
    ("leaderboard", 4, ("metrics", "status")),
    ("parity", 4, ("leaderboard",)),
    ("report", 2, ("parity",)),
)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    runs = _cells(tree, "output/staging/runs.csv", "run_id model task seed status predictions")
    metrics = _cells(
        tree, "output/staging/run_metrics.csv", "run_id items missing invalid correct accuracy macro_f1 ece"
    )
    parity = _cells(tree, "output/parity.csv", "model task claimed recomputed difference verdict cause")
    return {
        "registry": _agree(truth["runs"], runs, (0, 1, 2, 3)),
        "status": _agree(truth["runs"], runs, (0, 4)),
        "predictions": _agree(truth["runs"], runs, (0, 5)),
        "metrics": _agree(truth["metrics"], metrics, tuple(range(8))),
        "leaderboard": leaves.overlap(
            truth["leaderboard"], hostile.json_file(tree, "output/leaderboard.json"), ("model",)
        ),
        "parity": _agree(truth["parity"], parity, tuple(range(7))),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), (), ("str",)),
    }


def _cells(tree: Mapping[str, bytes], path: str, names: str) -> list[list[str]]:
    """Rows with cells in the contract's order; none under any other header."""
    found, wanted = hostile.table_file(tree, path), names.split()
    if found is None or sorted(found[0]) != sorted(wanted):
        return []
    places = [found[0].index(name) for name in wanted]
    return [[row[place] for place in places] for row in found[1]]


def _agree(ours: list[list[str]], theirs: list[list[str]], columns: tuple[int, ...]) -> float:
    """F1 over the named columns, 1 only for the same rows in the same order."""
    mine, yours = ([tuple(row[c] for c in columns) for row in rows] for rows in (ours, theirs))
    if mine == yours:
        return 1.0
    return min(0.99, 2 * len(set(mine) & set(yours)) / (len(mine) + len(yours)))
