"""Strict verifier: each of the four files exactly right; a component is 1 or 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

COMPONENTS = {"excluded": 2, "candidates": 1, "versions": 3, "lock": 2, "changes": 2}


def _versions(lock: Any) -> list[tuple[Any, Any]] | None:
    """The (name, version) pairs of a lock, None when it hasn't the form."""
    packages = lock.get("packages") if isinstance(lock, dict) else None
    if not isinstance(packages, list) or not all(isinstance(p, dict) for p in packages):
        return None
    return [(p.get("name"), p.get("version")) for p in packages]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    lock = hostile.json_file(tree, "output/lock.json")
    changes = hostile.table_file(tree, "output/changes.csv")
    return {
        "excluded": float(hostile.same(truth["excluded"], hostile.jsonl_file(tree, "output/excluded.jsonl"))),
        "candidates": float(hostile.same(truth["candidates"], hostile.json_file(tree, "output/candidates.json"))),
        "versions": float(hostile.same(_versions(truth["lock"]), _versions(lock))),
        "lock": float(hostile.same(truth["lock"], lock)),
        "changes": float(changes is not None and changes[0] == truth["header"] and changes[1] == truth["changes"]),
    }
