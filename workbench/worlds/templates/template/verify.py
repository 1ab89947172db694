"""Strict verifier: every output is exactly right, or earns nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

COMPONENTS = {"movements": 4, "stock": 4, "summary": 2}


def _table(tree: Mapping[str, bytes], path: str, header: list[str], expected: list[list[Any]]) -> float:
    found = hostile.table_file(tree, path)
    if found is None or found[0] != header:
        return 0.0
    return float(found[1] == [[str(value) for value in row] for row in expected])


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    movements = ["movement_id", "day", "sku", "kind", "quantity"]
    summary = hostile.json_file(tree, "output/summary.json")
    return {
        "movements": _table(tree, "output/movements.csv", movements, truth["movements"]),
        "stock": _table(tree, "output/stock.csv", ["sku", "quantity", "value_cents"], truth["stock"]),
        "summary": float(hostile.same(truth["summary"], summary)),
    }
