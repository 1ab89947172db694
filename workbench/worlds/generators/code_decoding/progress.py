"""Progress of the decoding: codes understood, decoders built, shots read, outcomes judged, rates counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("codes", 2, ()),
    ("decoders", 4, ()),
    ("syndromes", 2, ()),
    ("outcomes", 4, ("syndromes", "decoders")),
    ("rates", 3, ("syndromes",)),
    ("report", 2, ("rates",)),
)


def _tuples(rows: list[dict[str, str]], columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(row[c] for c in columns) for row in rows]


def _f1(expected: list[dict[str, str]], table: Any, columns: tuple[str, ...]) -> float:
    """F1 over rows cut to the columns; exactly 1 only for equal rows in equal order under the whole header."""
    if table is None or not set(columns) <= set(table[0]):
        return 0.0
    ours, theirs = _tuples(expected, columns), _tuples([dict(zip(table[0], r, strict=True)) for r in table[1]], columns)
    if ours == theirs and sorted(table[0]) == sorted(expected[0]):
        return 1.0
    right = len(set(ours) & set(theirs))
    return min(2 * right / (len(ours) + len(theirs)), 0.98)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    decoders, shots = (hostile.table_file(tree, f"output/{path}.csv") for path in ("staging/decoders", "shots"))
    return {
        "codes": leaves.overlap({"codes": truth["codes"]}, hostile.json_file(tree, "output/codes.json"), ("code",)),
        "decoders": _f1(truth["tables"], decoders, tuple(truth["tables"][0])),
        "syndromes": _f1(truth["shots"], shots, ("experiment", "shot", "syndrome")),
        "outcomes": _f1(truth["shots"], shots, tuple(truth["shots"][0])),
        "rates": leaves.overlap(
            {"experiments": truth["rates"]}, hostile.json_file(tree, "output/rates.json"), ("experiment",)
        ),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
