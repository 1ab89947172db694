"""Progress of the migration: what runs, where it goes, what it refers to, whether it fits, whether it is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("effective", 3, ()),
    ("placed", 2, ("effective",)),
    ("manifests", 5, ("placed",)),
    ("quotas", 2, ("placed",)),
    ("audit_rows", 4, ("effective",)),
    ("report", 2, ("audit_rows",)),
)


def _rows(expected: list[dict[str, str]], table: Any) -> float:
    """Multiset F1 of rows, columns in any order."""
    if table is None or set(table[0]) != set(expected[0]) or len(table[0]) != len(expected[0]):
        return 0.0
    names = list(expected[0])
    ours = [tuple(r[n] for n in names) for r in expected]
    theirs = [tuple(dict(zip(table[0], row, strict=True))[n] for n in names) for row in table[1]]
    if ours == theirs:
        return 1.0
    right = (Counter(ours) & Counter(theirs)).total()
    return min(2 * right / (len(ours) + len(theirs)), 0.97) if right else 0.0


def _places(items: Any) -> set[tuple[str, str, str]]:
    found = set()
    for item in items if isinstance(items, list) else ():
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(metadata, dict):
            found.add(tuple(str(v) for v in (item.get("kind"), metadata.get("namespace"), metadata.get("name"))))
    return found


def _named(items: Any) -> Any:
    """Manifests by kind and name, so that each leaf is a fact of its own."""
    if not isinstance(items, list):
        return None
    return [{"id": "/".join(map(str, sorted(_places([i])))), "manifest": i} for i in items]


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    found = hostile.json_file(tree, "output/manifests.json")
    items = found.get("items") if isinstance(found, dict) and len(found) == 1 else None
    ours, theirs = _places(truth["manifests"]), _places(items)
    right = len(ours & theirs)
    return {
        "effective": _rows(truth["effective"], hostile.table_file(tree, "output/staging/effective.csv")),
        "placed": 2 * right / (len(ours) + max(len(theirs), len(items))) if right else 0.0,
        "manifests": leaves.overlap(_named(truth["manifests"]), _named(items), ("id", "name")) if right else 0.0,
        "quotas": leaves.overlap(
            {"namespaces": truth["quotas"]}, hostile.json_file(tree, "output/quotas.json"), ("namespace",)
        ),
        "audit_rows": _rows(truth["audit"], hostile.table_file(tree, "output/audit.csv")),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
