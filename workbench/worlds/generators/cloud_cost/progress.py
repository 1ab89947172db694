"""Progress: image read, resources known and decided, savings found and priced, summed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("image", 3, ()),
    ("inventory", 1, ()),
    ("decisions", 4, ("inventory",)),
    ("actions", 2, ("decisions", "image")),
    ("prices", 3, ("actions",)),
    ("recommendations", 1, ("prices",)),
    ("summary", 2, ("prices",)),
)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    decided = _cut(tree, "output/staging/decisions.csv", "resource_id resource_type region decision")
    priced = _cut(
        tree,
        "output/savings_summary.csv",
        "resource_id resource_type name action current_cost projected_cost monthly_savings",
    )
    report = hostile.json_file(tree, "output/optimization_report.json")
    report = report if isinstance(report, dict) and len(report) == 2 else {}
    recommended, summary = report.get("recommendations"), report.get("executive_summary")
    found = hostile.json_file(tree, "output/staging/dashboard_findings.json")
    return {
        "image": _image(truth["findings"], found),
        "inventory": _share(truth["decisions"], decided, 3),
        "decisions": _share(truth["decisions"], decided, 4),
        "actions": _share(truth["savings"], priced, 4),
        "prices": _share(truth["savings"], priced, 7),
        "recommendations": _recommended(truth["report"]["recommendations"], recommended),
        "summary": _summary(truth["report"]["executive_summary"], summary),
    }


def _image(expected: Mapping[str, Any], got: Any) -> float:
    """Credit per finding, for its id first of all."""
    listed = got.get("findings") if isinstance(got, dict) and len(got) == 1 else None
    if hostile.same(expected["findings"], listed):
        return 1.0
    told = (
        {f["resource_id"]: f for f in listed if isinstance(f, dict) and isinstance(f.get("resource_id"), str)}
        if isinstance(listed, list)
        else {}
    )
    parts = [
        0.5 + sum(hostile.same(value, told[f["resource_id"]].get(key)) for key, value in f.items()) / 8
        for f in expected["findings"]
        if f["resource_id"] in told
    ]
    return min(0.99, sum(parts) / max(len(expected["findings"]), len(told)))


def _cut(tree: Mapping[str, bytes], path: str, names: str) -> list[tuple[str, ...]]:
    found, columns = hostile.table_file(tree, path), names.split()
    if found is None or sorted(found[0]) != sorted(columns):
        return []
    order = list(map(found[0].index, columns))
    return [tuple(row[place] for place in order) for row in found[1]]


def _share(ours: list[list[str]], theirs: list[tuple[str, ...]], width: int) -> float:
    mine, yours = [tuple(row[:width]) for row in ours], [row[:width] for row in theirs]
    if mine == yours:
        return 1.0
    return min(0.99, 2 * len(set(mine) & set(yours)) / (len(mine) + len(yours)))


def _recommended(expected: list[dict[str, Any]], got: Any) -> float:
    if hostile.same(expected, got):
        return 1.0
    told = {str(row.get("resource_id")): row for row in got if isinstance(row, dict)} if isinstance(got, list) else {}
    right = sum(hostile.same(row, told.get(row["resource_id"])) for row in expected)
    return min(0.99, 2 * right / (len(expected) + max(len(told), 1)))


def _summary(expected: Mapping[str, Any], got: Any) -> float:
    if hostile.same(expected, got):
        return 1.0
    return (
        min(0.99, sum(hostile.same(v, got.get(k)) for k, v in expected.items()) / len(expected))
        if isinstance(got, dict)
        else 0.0
    )
