"""Strict grader: the plan is recomputed from the sealed legs and orders, then held against the unique optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"legs": 2, "orders": 1, "plan": 4, "certificate": 3, "summary": 1}
LEGS = ["depot", "from", "to", "minutes"]
ORDERS = ["order_id", "depot", "location", "weight_kg", "open", "close", "service_min"]
PLAN = ["depot", "route", "position", "order_id", "arrival", "start", "departure"]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {
        "legs": _rows(truth["legs"], LEGS, hostile.table_file(tree, "output/staging/legs.csv"), 0.6),
        "orders": _rows(truth["orders"], ORDERS, hostile.table_file(tree, "output/staging/orders.csv"), 0.4),
        "plan": _rows(truth["plan"], PLAN, hostile.table_file(tree, "output/plan.csv"), 0.4),
        "certificate": _certificate(truth["certificate"], hostile.json_file(tree, "output/certificate.json")),
        "summary": _summary(truth["summary"], hostile.json_file(tree, "output/summary.json")),
    }


def _rows(expected: list[list[str]], columns: list[str], found: Any, floor: float) -> float:
    wanted = [dict(zip(columns, row, strict=True)) for row in expected]
    return records.share(wanted, records.table(found, columns), floor)


def _certificate(expected: Mapping[str, Any], got: Any) -> float:
    """Depots whose optimum and every marginal cost are right."""
    return records.share(expected, got, 0.2)


def _summary(expected: Mapping[str, Any], got: Any) -> float:
    """Nothing unless the total and the cancelled orders are right."""
    if not isinstance(got, dict) or not all(hostile.same(expected[k], got.get(k)) for k in ("total_cost", "cancelled")):
        return 0.0
    return records.share(expected, got, 0.5)
