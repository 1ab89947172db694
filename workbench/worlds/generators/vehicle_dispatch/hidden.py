"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

from workbench.worlds.generators.vehicle_dispatch import reference
from workbench.worlds.generators.vehicle_dispatch import world as model

LEGS, ORDERS, PLAN = "output/staging/legs.csv", "output/staging/orders.csv", "output/plan.csv"
CERTIFICATE, SUMMARY = "output/certificate.json", "output/summary.json"


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    certificate, summary = json.loads(tree[CERTIFICATE]), json.loads(tree[SUMMARY])
    depot = min(certificate)
    order = min(certificate[depot]["without"])
    certificate[depot]["without"][order] += 1
    summary["slack_kg"][depot] += 1
    return {
        "legs": tree | {LEGS: tree[LEGS][:-2] + b"99\n"},
        "orders": tree | {ORDERS: tree[ORDERS].rsplit(b"\n", 2)[0] + b"\n"},
        "plan": tree | {PLAN: tree[PLAN].replace(b",1,1,", b",1,2,", 1)},
        "certificate": tree | {CERTIFICATE: json.dumps(certificate).encode()},
        "summary": tree | {SUMMARY: json.dumps(summary).encode()},
    }


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    turned = {
        path: json.dumps(dict(reversed(json.loads(tree[path]).items()))).encode() for path in (CERTIFICATE, SUMMARY)
    }
    quoted = {}
    for path in (LEGS, ORDERS, PLAN):
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(csv.reader(io.StringIO(tree[path].decode())))
        quoted[path] = b"\xef\xbb\xbf" + text.getvalue().encode()
    return {"turned_keys": tree | turned, "quoted_cells": tree | quoted}


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """New weights overlooked; and leg times rounded up once too often."""
    late = tuple(row for row in world.amendments if row[2] != "weight")
    slow = tuple(replace(d, trips=tuple((*t[:4], t[4] + 60) for t in d.trips)) for d in world.depots)
    return {
        "weights_not_amended": _last(replace(world, amendments=late)),
        "trips_a_minute_longer": _last(replace(world, depots=slow)),
    }


def _last(world: Any) -> dict[str, bytes]:
    return list(reference.solve(model.render(world)))[-1][1]
