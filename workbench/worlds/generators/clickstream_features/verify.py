"""Strict verifier: every file exactly right, in the declared order; a component is 1 or 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

COMPONENTS = {"events": 3, "plan_history": 2, "sessions": 3, "features": 3, "audit": 2}
FILES = {"events": "output/staging/events.csv", "plans": "output/plan_history.csv", "features": "output/features.csv"}


def _table(truth: Mapping[str, Any], tree: Mapping[str, bytes], name: str) -> float:
    found = hostile.table_file(tree, FILES[name])
    return float(found is not None and found[0] == truth["columns"][name] and found[1] == truth[name])


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {
        "events": _table(truth, tree, "events"),
        "plan_history": _table(truth, tree, "plans"),
        "sessions": float(hostile.same(truth["sessions"], hostile.jsonl_file(tree, "output/sessions.jsonl"))),
        "features": _table(truth, tree, "features"),
        "audit": float(hostile.same(truth["audit"], hostile.json_file(tree, "output/audit.json"))),
    }
