"""Strict verifier: each file exactly right; a component is 1 or 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

COMPONENTS = {"hunks": 3, "patches": 2, "tree": 4, "report": 1}


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    table = hostile.table_file(tree, "output/patches.csv")
    return {
        "hunks": float(hostile.same(truth["hunks"], hostile.jsonl_file(tree, "output/hunks.jsonl"))),
        "patches": float(table is not None and table[0] == truth["header"] and table[1] == truth["patches"]),
        "tree": float(hostile.same(truth["tree"], hostile.json_file(tree, "output/tree.json"))),
        "report": float(hostile.same(truth["report"], hostile.json_file(tree, "output/report.json"))),
    }
