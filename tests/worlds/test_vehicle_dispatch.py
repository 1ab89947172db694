"""A depot with two orders, planned by hand."""

from __future__ import annotations

import json

import pytest

from workbench.worlds.generators.vehicle_dispatch import alternative, reference

# Out and back to A: 10 + 10, to B: 20 + 20; A to B 15, B to A 40. One route over A and B drives 10 + 15 + 20 = 45 minutes.
LEGS = {("D", "A"): 10, ("A", "D"): 10, ("D", "B"): 20, ("B", "D"): 20, ("A", "B"): 15, ("B", "A"): 40}


@pytest.fixture
def tree() -> dict[str, bytes]:
    depot = {
        "location": "D",
        "vehicles": 2,
        "capacity_kg": 100,
        "shift": ["08:00", "16:00"],
        "vehicle_cents": 1000,
        "minute_cents": 10,
    }
    trips, number = ["trip_id,from,to,departed,arrived"], 0
    for (a, b), minutes in LEGS.items():
        for arrived in (
            f"{minutes - 1:02d}:59",
            f"{minutes - 1:02d}:30",
            "59:59",
        ):  # the middle one rounds up to `minutes`
            number += 1
            trips.append(f"t{number},{a},{b},09:00:00,09:{arrived}")
    trips += [trips[3]] * 2  # a jam uploaded three times still counts once
    return {
        "input/fleet.json": json.dumps(
            {"day": "2025-01-02", "depots": {"X": depot}, "actions": {"cancel": ["void"], "window": [], "weight": []}}
        ).encode(),
        "input/orders/X.csv": b"order_id,location,weight,open,close,service_min\no1,A,60000 g,08:30,09:00,5\no2,B,90,08:00,16:00,5\no3,A,1,08:00,09:00,5\n",
        "input/trips/X.csv": "\n".join(trips).encode(),
        "input/amendments.jsonl": b'{"seq": 2, "order_id": "o3", "action": "void"}\n{"seq": 1, "order_id": "o2", "action": "weight", "weight_kg": 40}\n',
    }


def test_both_solvers_plan_the_route_found_by_hand(tree):
    for out in (list(reference.solve(tree))[-1][1], alternative.solve(tree)):
        # waits for A's window from 08:10 to 08:30, serves 5 minutes, 15 minutes to B, home at 09:15
        assert out["output/plan.csv"].decode().splitlines()[1:] == [
            "X,1,1,o1,08:10,08:30,08:35",
            "X,1,2,o2,08:50,08:50,08:55",
        ]
        certificate = json.loads(out["output/certificate.json"])["X"]
        assert certificate == {"cost": 1450, "routes": 1, "driving_minutes": 45, "without": {"o1": 1400, "o2": 1200}}
        summary = json.loads(out["output/summary.json"])
        assert (summary["cancelled"], summary["amended"], summary["slack_kg"]) == (["o3"], ["o2"], {"X": 0})
        assert summary["dearest"] == {"X": {"order_id": "o2", "saving": 250}}


def test_a_depot_too_heavy_for_one_route_uses_two(tree):
    tree["input/amendments.jsonl"] = tree["input/amendments.jsonl"].replace(b"40", b"41")
    for out in (list(reference.solve(tree))[-1][1], alternative.solve(tree)):
        assert json.loads(out["output/certificate.json"])["X"]["cost"] == 2000 + 10 * (20 + 40)
