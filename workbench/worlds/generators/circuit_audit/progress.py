"""Progress of the circuit audit, a node per stage of its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("structure", 2, ()),
    ("budgets", 3, ("structure",)),
    ("equivalence", 4, ()),
    ("outcomes", 2, ()),
    ("probabilities", 2, ("outcomes",)),
    ("verdicts", 3, ("structure",)),
    ("report", 2, ("verdicts",)),
)
STRUCTURE = ("qubits", "source_depth", "routed_depth", "one_qubit", "two_qubit", "violations")


def _columns(expected: list[dict[str, str]], table: Any, columns: tuple[str, ...]) -> float:
    """Share of right cells in these columns, over the larger number of rows; 0 unless a circuit is named rightly."""
    if table is None or "circuit" not in table[0]:
        return 0.0
    rows = [dict(zip(table[0], row, strict=True)) for row in table[1]]
    own = {r["circuit"]: r for r in expected}
    taken = {r["circuit"]: r for r in rows}
    right = sum(taken[name].get(c) == own[name][c] for name in own.keys() & taken.keys() for c in columns)
    share = right / (len(columns) * max(len(expected), len(rows)))
    tidy = [r["circuit"] for r in rows] == [r["circuit"] for r in expected] and sorted(table[0]) == sorted(expected[0])
    return share if tidy else min(share, 0.95)


def _outcomes(expected: list[dict[str, Any]], found: Any) -> float:
    """F1 over (circuit, outcome)."""
    rows = found.get("circuits") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        return 0.0
    ours = {(r["circuit"], bits) for r in expected for bits in r["probabilities"]}
    theirs = {
        (str(r.get("circuit")), b)
        for r in rows
        if isinstance(r, dict) and isinstance(r.get("probabilities"), dict)
        for b in r["probabilities"]
    }
    right = len(ours & theirs)
    return 2 * right / (len(ours) + len(theirs)) if right else 0.0


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    metrics = hostile.table_file(tree, "output/staging/metrics.csv")
    distributions = hostile.json_file(tree, "output/distributions.json")
    verdicts = hostile.json_file(tree, "output/verdicts.json")
    return {
        "structure": _columns(truth["metrics"], metrics, STRUCTURE),
        "budgets": _columns(truth["metrics"], metrics, ("error_ppm",)),
        "equivalence": _columns(
            truth["equivalence"], hostile.table_file(tree, "output/equivalence.csv"), ("initial", "final", "equivalent")
        ),
        "outcomes": _outcomes(truth["distributions"], distributions),
        "probabilities": leaves.overlap({"circuits": truth["distributions"]}, distributions, ("circuit",), ("str",)),
        "verdicts": leaves.overlap({"verdicts": truth["verdicts"]}, verdicts, ("circuit",)),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
