"""Strict verifier, at zero tolerance: leaf by leaf and cell by cell; a component is 1 or 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

COMPONENTS = {"staging": 2, "statements": 4, "evidence": 3, "exceptions": 3}


def _table(truth: Mapping[str, Any], tree: Mapping[str, bytes], name: str, path: str) -> bool:
    found = hostile.table_file(tree, path)
    return found is not None and found[0] == truth["headers"][name] and found[1] == truth[name]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    staging = [
        _table(truth, tree, "facts", "output/staging/structured_facts.csv"),
        _table(truth, tree, "rows", "output/staging/filing_rows.csv"),
    ]
    return {
        "staging": float(all(staging)),
        "statements": float(
            hostile.same(truth["statements"], hostile.json_file(tree, "output/financial_statements.json"))
        ),
        "evidence": float(_table(truth, tree, "evidence", "output/evidence.csv")),
        "exceptions": float(hostile.same(truth["exceptions"], hostile.json_file(tree, "output/exceptions.json"))),
    }
