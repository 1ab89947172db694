"""The plan of defects."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw

SPELLINGS = {"cancel": ["CANCELLED", "void"], "window": ["re-time", "slot"], "weight": ["re-weigh", "mass"]}


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    """Trips recorded twice, which moves medians, in every world; some of the rest."""
    depots = draw.shuffled(world.depots)
    rows = sorted(draw.sample(range(len(depots[0].trips)), len(depots[0].trips) // 6))
    certain = Defect("duplicate_records", _trips(depots[0]), {"rows": rows}, "trips were uploaded twice")
    some = [
        _strange_trips(depots[1], draw),
        _grams(depots[2], draw),
        Defect(
            "category_drift", "input/amendments.jsonl", {"column": "action", "mapping": SPELLINGS}, "three spellings"
        ),
        Defect("delimiter_drift", _trips(draw.choice(depots)), {"to": ";"}, "a table with semicolons"),
        _old_orders(depots[-1], draw),
    ]
    chosen = draw.shuffled(some)[: draw.integer(1, 4)]
    return (certain, *sorted(chosen, key=lambda defect: defect.kind in ("delimiter_drift", "stale_copy")))


def _trips(depot: Any) -> str:
    return f"input/trips/{depot.name}.csv"


def _strange_trips(depot: Any, draw: Draw) -> Defect:
    """From and to a place that no order has."""
    records = []
    for trip, a, b, _, _ in draw.sample(depot.trips, 6):
        ends = {"from": a, "to": "XX000"} if draw.chance(0.5) else {"from": "XX000", "to": b}
        records.append({"trip_id": trip[::-1], **ends, "departed": "08:00:00", "arrived": "08:20:00"})
    return Defect("orphan_records", _trips(depot), {"records": records}, "trips to a place without an order")


def _grams(depot: Any, draw: Draw) -> Defect:
    rows = sorted(draw.sample(range(len(depot.orders)), len(depot.orders) // 2))
    params = {"column": "weight", "factor": "1000", "suffix": " g", "rows": rows}
    return Defect("unit_drift", f"input/orders/{depot.name}.csv", params, "weights in grams")


def _old_orders(depot: Any, draw: Draw) -> Defect:
    path = f"input/orders/{depot.name}.csv"
    edits = [[row, "weight", order.weight + 37] for row, order in enumerate(depot.orders)]
    return Defect("stale_copy", path, {"copy": path.replace(".csv", ".bak.csv"), "edits": edits}, "an older export")
