"""Strict verifier: every table, sidecar and constraint must be exactly right; a component is 1 or 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, sqlite_file

COMPONENTS = {"schema": 1, "dimensions": 2, "facts": 4, "aggregates": 2, "quality_report": 2, "summary": 1}


def _rows(table: sqlite_file.Table, columns: Mapping[str, str]) -> Counter[tuple] | None:
    """The rows in the contract's order of columns; None when a column is missing or one is too many."""
    names = list(table.columns)
    if sorted(names) != sorted(columns):
        return None
    order = [names.index(name) for name in columns]
    return Counter(tuple(row[i] for i in order) for row in table.rows)


def _equal(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table], name: str) -> bool:
    if name not in found:
        return False
    got = _rows(found[name], truth["columns"][name])
    expected = Counter(map(tuple, truth["tables"][name]))
    # 1 == 1.0 == True in Python: types are compared too.
    return got == expected and {tuple(map(type, r)) for r in got} <= {tuple(map(type, r)) for r in expected}


def _declared(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table]) -> bool:
    for name, columns in truth["columns"].items():
        table = found.get(name)
        if table is None or dict(table.columns) != columns or sorted(table.key) != sorted(truth["keys"][name]):
            return False
        wanted = sorted((column, target) for column, target in truth["links"].get(name, []))
        if sorted((column, target) for column, target, _ in table.foreign) != wanted:
            return False
    return True


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    """The schema earns nothing while the warehouse holds none of the sales."""
    found = sqlite_file.read(tree.get("output/warehouse.sqlite"), truth["columns"]) or {}
    names = list(truth["columns"])
    right = {name: _equal(truth, found, name) for name in names}
    some = any(right.values())
    return {
        "schema": float(some and _declared(truth, found)),
        "dimensions": float(all(right[n] for n in names if n.startswith("dim_"))),
        "facts": float(all(right[n] for n in names if n.startswith("fact_"))),
        "aggregates": float(all(right[n] for n in names if n.startswith("agg_"))),
        "quality_report": float(hostile.same(truth["quality"], hostile.json_file(tree, "output/quality_report.json"))),
        "summary": float(hostile.same(truth["summary"], hostile.json_file(tree, "output/summary.json"))),
    }
