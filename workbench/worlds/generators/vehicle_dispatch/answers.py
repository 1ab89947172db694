"""The sealed answer key: a memoised search over the sets of orders that are still to be served."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import replace
from typing import Any

MOST = 4  # orders of one route


def clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def leg_minutes(depot: Any) -> dict[tuple[str, str], int]:
    times = defaultdict(list)
    for _, a, b, departed, arrived in depot.trips:
        times[a, b].append(arrived - departed)
    return {leg: -(-sorted(seconds)[len(seconds) // 2] // 60) for leg, seconds in times.items()}


def in_force(depot: Any, amendments: Any) -> list[Any]:
    """The depot's orders after all amendments, by id."""
    orders = {order.order_id: order for order in depot.orders}
    for _, order_id, action, one, two in sorted(amendments):
        if order_id not in orders:
            continue
        if action == "cancel":
            del orders[order_id]
        elif action == "window":
            orders[order_id] = replace(orders[order_id], open=one, close=two)
        else:
            orders[order_id] = replace(orders[order_id], weight=one)
    return [orders[order_id] for order_id in sorted(orders)]


def drive(depot: Any, legs: dict, route: tuple[Any, ...]) -> tuple[int, list[tuple[int, int, int]]] | None:
    """(minutes of driving, (arrival, start, departure) per order), None when the route breaks a rule."""
    if sum(order.weight for order in route) > depot.capacity:
        return None
    at, now, driven, times = depot.location, depot.start, 0, []
    for order in route:
        driven += legs[at, order.location]
        arrival = now + legs[at, order.location]
        start = max(arrival, order.open)
        if start > order.close:
            return None
        at, now = order.location, start + order.service
        times.append((arrival, start, now))
    driven += legs[at, depot.location]
    return None if now + legs[at, depot.location] > depot.end else (driven, times)


def routes(depot: Any, orders: list[Any]) -> dict[frozenset[str], tuple[int, tuple[str, ...]]]:
    """Best (cost, sequence of ids) for every set of orders that one route can serve."""
    legs, best = leg_minutes(depot), {}
    by_id = {order.order_id: order for order in orders}
    stack = [(order_id,) for order_id in by_id]
    while stack:
        ids = stack.pop()
        driven = drive(depot, legs, tuple(by_id[i] for i in ids))
        if driven:
            found = (depot.vehicle_cents + depot.minute_cents * driven[0], ids)
            best[frozenset(ids)] = min(found, best.get(frozenset(ids), found))
        if len(ids) < MOST:
            stack += [(*ids, i) for i in by_id if i not in ids]
    return best


def cheapest(depot: Any, orders: list[Any]) -> Any:
    """A function (ids) -> (cost, sorted routes) of the best plan for these orders, None when there is none."""
    known = routes(depot, orders)

    @functools.cache
    def solve(ids: frozenset[str], vehicles: int) -> tuple[int, tuple[tuple[str, ...], ...]] | None:
        if not ids:
            return (0, ())
        best, first = None, min(ids)
        for group, (cost, route) in known.items() if vehicles else ():
            if first in group and group <= ids and (rest := solve(ids - group, vehicles - 1)):
                found = (cost + rest[0], tuple(sorted((route, *rest[1]))))
                best = found if best is None else min(best, found)
        return best

    return lambda ids: solve(frozenset(ids), depot.vehicles)


def feasible(depot: Any, orders: list[Any]) -> bool:
    """Whether there is a plan for all orders, and for all but any one of them."""
    solve, ids = cheapest(depot, orders), [order.order_id for order in orders]
    return all(solve([i for i in ids if i != left]) for left in ("", *ids))


def truth(world: Any) -> dict[str, Any]:
    legs_rows, order_rows, plan_rows, certificate, dearest, slack = [], [], [], {}, {}, {}
    for depot in world.depots:
        legs, orders = leg_minutes(depot), in_force(depot, world.amendments)
        legs_rows += [[depot.name, a, b, str(legs[a, b])] for a, b in sorted(legs)]
        order_rows += [
            [o.order_id, depot.name, o.location, str(o.weight), clock(o.open), clock(o.close), str(o.service)]
            for o in orders
        ]
        ids, solve = [order.order_id for order in orders], cheapest(depot, orders)
        cost, found = solve(ids)
        by_id = {order.order_id: order for order in orders}
        driving = 0
        for number, route in enumerate(found, 1):
            minutes, times = drive(depot, legs, tuple(by_id[i] for i in route))
            driving += minutes
            plan_rows += [
                [depot.name, str(number), str(at), i, *map(clock, t)]
                for at, (i, t) in enumerate(zip(route, times, strict=True), 1)
            ]
        without = {i: solve([j for j in ids if j != i])[0] for i in ids}
        certificate[depot.name] = {"cost": cost, "routes": len(found), "driving_minutes": driving, "without": without}
        first = min(ids, key=lambda i: (without[i], i))
        dearest[depot.name] = {"order_id": first, "saving": cost - without[first]}
        slack[depot.name] = depot.capacity * len(found) - sum(order.weight for order in orders)
    cancelled = {row[1] for row in world.amendments if row[2] == "cancel"}
    summary = {
        "day": world.day,
        "total_cost": sum(entry["cost"] for entry in certificate.values()),
        "cancelled": sorted(cancelled),
        "amended": sorted({row[1] for row in world.amendments} - cancelled),
        "dearest": dearest,
        "slack_kg": slack,
    }
    return {
        "legs": legs_rows,
        "orders": sorted(order_rows),
        "plan": plan_rows,
        "certificate": certificate,
        "summary": summary,
    }
