"""Progress contract: which versions were judged rightly, how much of the lock stands, what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("exclusions", 14, ()),
    ("exclusion_reasons", 8, ("exclusions",)),
    ("candidates", 12, ()),
    ("locked_versions", 30, ("candidates",)),
    ("lock_details", 10, ("locked_versions",)),
    ("install_order", 6, ("locked_versions",)),
    ("change_rows", 10, ("locked_versions",)),
    ("change_reasons", 10, ("change_rows", "exclusion_reasons")),
)


def _f1(expected: list, got: list) -> float:
    """1 only for equal lists; less than that for the same facts in another order."""
    if expected == got:
        return 1.0
    hits = len({*map(str, expected)} & {*map(str, got)})
    return min(2 * hits / (len(expected) + len(got)), 0.99)


def _own(expected: list[tuple], got: list[tuple]) -> float:
    """As _f1, but nothing at all for fewer than a third: names and versions are short, some agree by chance."""
    value = _f1(expected, got)
    return value if value >= 1 / 3 else 0.0


def _text(value: Any) -> str | None:
    """A text, or a flat list of texts; None for anything else, which is never right."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return repr(value)
    return None


def _fields(rows: Any, names: tuple[str, ...]) -> list[tuple]:
    if not isinstance(rows, list):
        return []
    return [tuple(_text(row.get(n)) for n in names) for row in rows if isinstance(row, dict)]


def _usable(value: Any) -> list[tuple]:
    if not isinstance(value, dict):
        return []
    return [(name, _text(versions)) for name, versions in sorted(value.items())]


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    excluded = hostile.jsonl_file(tree, "output/excluded.jsonl") or []
    lock = hostile.json_file(tree, "output/lock.json")
    lock = lock if isinstance(lock, dict) else {}
    wanted = truth["lock"]
    packages = _own(
        _fields(wanted["packages"], ("name", "version")), _fields(lock.get("packages"), ("name", "version"))
    )
    order = wanted["install_order"]
    theirs = lock.get("install_order")
    placed = (
        sum(a == b for a, b in zip(order, theirs, strict=False)) / max(len(order), len(theirs))
        if isinstance(theirs, list)
        else 0.0
    )
    heads = ("python", "platform")
    details = _f1(
        _fields(wanted["packages"], ("name", "sha256", "dependencies", "required_by")),
        _fields(lock.get("packages"), ("name", "sha256", "dependencies", "required_by")),
    )
    # Whatever else the lock says must be right too, else it isn't the lock.
    if details == 1 and not (
        all(lock.get(h) == wanted[h] for h in heads)
        and hostile.same(wanted["packages"], lock.get("packages"))
        and lock.keys() == wanted.keys()
    ):
        details = 0.9
    found = hostile.table_file(tree, "output/changes.csv")
    rows = found[1] if found is not None and found[0] == truth["header"] else []
    return {
        "exclusions": _own(_fields(truth["excluded"], ("name", "version")), _fields(excluded, ("name", "version"))),
        "exclusion_reasons": 1.0
        if hostile.same(truth["excluded"], excluded)
        else min(
            _f1(
                _fields(truth["excluded"], ("name", "version", "reasons")),
                _fields(excluded, ("name", "version", "reasons")),
            ),
            0.99,
        ),
        "candidates": _own(_usable(truth["candidates"]), _usable(hostile.json_file(tree, "output/candidates.json"))),
        "locked_versions": packages,
        "lock_details": details,
        "install_order": placed,
        "change_rows": _own([tuple(r[:4]) for r in truth["changes"]], [tuple(r[:4]) for r in rows]),
        "change_reasons": _f1(truth["changes"], rows),
    }
