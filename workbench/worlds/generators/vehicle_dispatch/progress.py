"""Progress: legs timed, orders brought up to date, routes chosen, timed, and certified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("leg_times", 3, ()),
    ("orders", 2, ()),
    ("routes", 3, ("leg_times", "orders")),
    ("times", 2, ("routes",)),
    ("optima", 2, ("routes",)),
    ("certificate", 3, ("optima",)),
    ("summary", 1, ("times", "certificate")),
)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    plan = _columns(
        tree, "output/plan.csv", ("depot", "route", "position", "order_id", "arrival", "start", "departure")
    )
    orders = ("order_id", "depot", "location", "weight_kg", "open", "close", "service_min")
    certificate = hostile.json_file(tree, "output/certificate.json")
    return {
        "leg_times": _match(
            truth["legs"], _columns(tree, "output/staging/legs.csv", ("depot", "from", "to", "minutes")), 4
        ),
        "orders": _match(truth["orders"], _columns(tree, "output/staging/orders.csv", orders), 7),
        "routes": _match(truth["plan"], plan, 4),
        "times": _match(truth["plan"], plan, 7),
        "optima": _optima(truth["certificate"], certificate),
        "certificate": 1.0
        if hostile.same(truth["certificate"], certificate)
        else _marginals(truth["certificate"], certificate),
        "summary": leaves.overlap(truth["summary"], hostile.json_file(tree, "output/summary.json"), (), ("str",)),
    }


def _columns(tree: Mapping[str, bytes], path: str, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = hostile.table_file(tree, path)
    if found is None or set(found[0]) != set(names) or len(found[0]) != len(names):
        return []
    places = [found[0].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in found[1]]


def _match(ours: list[list[str]], theirs: list[tuple[str, ...]], width: int) -> float:
    """F1 over the first `width` cells of a row; the order of rows counts for the last hundredth."""
    mine, yours = [tuple(row[:width]) for row in ours], [row[:width] for row in theirs]
    if mine == yours:
        return 1.0
    return min(0.99, 2 * len(set(mine) & set(yours)) / (len(mine) + len(yours)))


def _optima(expected: Mapping[str, Any], got: Any) -> float:
    right = 0
    for depot, entry in expected.items():
        cell = got.get(depot) if isinstance(got, dict) else None
        if isinstance(cell, dict):
            right += all(hostile.same(entry[k], cell.get(k)) for k in ("cost", "routes", "driving_minutes"))
    return right / len(expected)


def _marginals(expected: Mapping[str, Any], got: Any) -> float:
    right = total = 0
    for depot, entry in expected.items():
        cell = got.get(depot) if isinstance(got, dict) else None
        without = cell.get("without") if isinstance(cell, dict) else None
        total += len(entry["without"])
        if isinstance(without, dict):
            right += sum(hostile.same(cost, without.get(order)) for order, cost in entry["without"].items())
    return min(0.99, right / total)
