"""Reference solver: routes grown order by order, then dynamic programming over bit masks of orders."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

MOST = 4  # orders of one route


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    fleet = json.loads(tree["input/fleet.json"])
    depots, out = fleet["depots"], {}
    exported = {name: _table(tree[f"input/orders/{name}.csv"]) for name in depots}
    legs = {name: _legs(_table(tree[f"input/trips/{name}.csv"]), depots[name], exported[name]) for name in depots}
    rows = [[name, a, b, legs[name][a, b]] for name in sorted(depots) for a, b in sorted(legs[name])]
    out["output/staging/legs.csv"] = _write("depot,from,to,minutes", rows)
    yield "estimate", dict(out)
    changes = sorted(map(json.loads, tree["input/amendments.jsonl"].splitlines()), key=lambda c: c["seq"])
    orders, cancelled, amended = _amend(exported, changes, fleet["actions"])
    rows = [
        [o["id"], o["depot"], o["location"], o["weight"], _text(o["open"]), _text(o["close"]), o["service"]]
        for o in orders.values()
    ]
    header = "order_id,depot,location,weight_kg,open,close,service_min"
    out["output/staging/orders.csv"] = _write(header, sorted(rows))
    yield "amend", dict(out)
    plans, rows = {}, []
    for name in sorted(depots):
        own = sorted((o for o in orders.values() if o["depot"] == name), key=lambda o: o["id"])
        plans[name] = Planner(depots[name], legs[name], own)
        rows += [[name, *row] for row in plans[name].rows()]
    out["output/plan.csv"] = _write("depot,route,position,order_id,arrival,start,departure", rows)
    yield "optimise", dict(out)
    certificate = {name: plan.certificate() for name, plan in plans.items()}
    out["output/certificate.json"] = _json(certificate)
    yield "certify", dict(out)
    dearest, slack = {}, {}
    for name, plan in plans.items():
        cost, without = certificate[name]["cost"], certificate[name]["without"]
        order = max(sorted(without), key=lambda i: cost - without[i])
        dearest[name] = {"order_id": order, "saving": cost - without[order]}
        slack[name] = depots[name]["capacity_kg"] * certificate[name]["routes"] - sum(o["weight"] for o in plan.orders)
    summary = {
        "day": fleet["day"],
        "total_cost": sum(entry["cost"] for entry in certificate.values()),
        "cancelled": sorted(cancelled),
        "amended": sorted(amended - cancelled),
        "dearest": dearest,
        "slack_kg": slack,
    }
    out["output/summary.json"] = _json(summary)
    yield "summarise", dict(out)


def _table(data: bytes) -> list[dict[str, str]]:
    text = data.decode()
    delimiter = ";" if ";" in text.split("\n", 1)[0] else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def _legs(
    trips: list[dict[str, str]], depot: dict[str, Any], orders: list[dict[str, str]]
) -> dict[tuple[str, str], int]:
    places = {depot["location"], *(order["location"] for order in orders)}
    times = defaultdict(list)
    for trip in {trip["trip_id"]: trip for trip in trips}.values():
        if trip["from"] in places and trip["to"] in places:
            times[trip["from"], trip["to"]].append(_clock(trip["arrived"]) - _clock(trip["departed"]))
    return {leg: (median(seconds) + 59) // 60 for leg, seconds in times.items()}


def _clock(text: str) -> int:
    """Seconds of HH:MM:SS, minutes of HH:MM."""
    value = 0
    for part in text.split(":"):
        value = 60 * value + int(part)
    return value


def _text(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _amend(
    exported: dict[str, list], changes: list[dict], actions: dict[str, list[str]]
) -> tuple[dict[str, dict], set[str], set[str]]:
    meaning = {word: action for action, spelled in actions.items() for word in (action, *spelled)}
    orders, cancelled, amended = {}, set(), set()
    for name, rows in exported.items():
        for row in rows:
            kilograms = int(row["weight"][:-1].strip()) // 1000 if row["weight"].endswith("g") else int(row["weight"])
            orders[row["order_id"]] = {
                "id": row["order_id"],
                "depot": name,
                "location": row["location"],
                "weight": kilograms,
                "open": _clock(row["open"]),
                "close": _clock(row["close"]),
                "service": int(row["service_min"]),
            }
    for change in changes:
        action, order = meaning[change["action"]], change["order_id"]
        if action == "cancel":
            orders.pop(order)
            cancelled.add(order)
        elif order in orders:
            amended.add(order)
            new = (
                {"weight": change["weight_kg"]}
                if action == "weight"
                else {k: _clock(change[k]) for k in ("open", "close")}
            )
            orders[order].update(new)
    return orders, cancelled, amended


class Planner:
    """The exact optimum of one depot, and of every subset of its orders."""

    def __init__(self, depot: dict[str, Any], legs: dict[tuple[str, str], int], orders: list[dict[str, Any]]):
        self.depot, self.legs, self.orders = depot, legs, orders
        self.start, self.end = map(_clock, depot["shift"])
        self.routes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._grow((), 0, 0, depot["location"], self.start, 0)
        self.best = self._cover()

    def _grow(self, route: tuple[int, ...], mask: int, load: int, at: str, now: int, driven: int) -> None:
        """Record the route if it gets home in time, then try every longer one."""
        home = self.legs[at, self.depot["location"]] if route else 0
        if route and now + home <= self.end:
            found = (self.depot["vehicle_cents"] + self.depot["minute_cents"] * (driven + home), route)
            if mask not in self.routes or found < self.routes[mask]:
                self.routes[mask] = found
        if len(route) == MOST:
            return
        for n, order in enumerate(self.orders):
            if mask >> n & 1 or load + order["weight"] > self.depot["capacity_kg"]:
                continue
            leg = self.legs[at, order["location"]]
            start = max(now + leg, order["open"])
            if start <= order["close"]:
                weight = load + order["weight"]
                self._grow(
                    (*route, n), mask | 1 << n, weight, order["location"], start + order["service"], driven + leg
                )

    def _cover(self) -> list[tuple[int, tuple[tuple[int, ...], ...]] | None]:
        """mask -> (cost, sorted routes), with at most the depot's vehicles."""
        size = 1 << len(self.orders)
        layer: list = [None] * size
        layer[0] = (0, ())
        result = list(layer)
        by_first = defaultdict(list)
        for mask, (cost, route) in self.routes.items():
            by_first[mask & -mask].append((mask, cost, route))
        for _ in range(self.depot["vehicles"]):
            following: list = [None] * size
            for done in range(1, size):
                for mask, cost, route in by_first[done & -done]:
                    if mask & done == mask and (rest := layer[done ^ mask]):
                        found = (cost + rest[0], tuple(sorted((*rest[1], route))))
                        if following[done] is None or found < following[done]:
                            following[done] = found
            for mask, found in enumerate(following):
                if found and (result[mask] is None or found < result[mask]):
                    result[mask] = found
            layer = following
        return result

    def rows(self) -> Iterator[list[Any]]:
        for number, route in enumerate(self.best[-1][1], 1):
            at, now = self.depot["location"], self.start
            for position, n in enumerate(route, 1):
                order = self.orders[n]
                arrival = now + self.legs[at, order["location"]]
                begin = max(arrival, order["open"])
                at, now = order["location"], begin + order["service"]
                yield [number, position, order["id"], *map(_text, (arrival, begin, now))]

    def certificate(self) -> dict[str, Any]:
        cost, routes = self.best[-1]
        fixed = len(routes) * self.depot["vehicle_cents"]
        whole = len(self.best) - 1
        return {
            "cost": cost,
            "routes": len(routes),
            "driving_minutes": (cost - fixed) // self.depot["minute_cents"],
            "without": {order["id"]: self.best[whole ^ 1 << n][0] for n, order in enumerate(self.orders)},
        }


def _write(header: str, rows: list[list[Any]]) -> bytes:
    return ("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n").encode()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
