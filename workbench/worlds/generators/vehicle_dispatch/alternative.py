"""Alternative solver: permutations of small sets, then branch and bound with a share of every order's cheapest route as bound."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

SHARE = 12  # divides by 1, 2, 3 and 4 orders


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    fleet = json.loads(tree["input/fleet.json"])
    known = {word: kind for kind, words in fleet["actions"].items() for word in [kind, *words]}
    changes: dict[str, list[tuple]] = {}
    for text in tree["input/amendments.jsonl"].decode().splitlines():
        change = json.loads(text)
        changes.setdefault(change["order_id"], []).append((change["seq"], known[change["action"]], change))
    cancelled = {i for i, made in changes.items() if any(kind == "cancel" for _, kind, _ in made)}
    legs_text, orders_text, plan_text = (
        ["depot,from,to,minutes"],
        [],
        ["depot,route,position,order_id,arrival,start,departure"],
    )
    certificate, dearest, slack = {}, {}, {}
    for name, depot in sorted(fleet["depots"].items()):
        raw = _cells(tree[f"input/orders/{name}.csv"])
        legs = _legs(_cells(tree[f"input/trips/{name}.csv"]), {depot["location"], *(row[1] for row in raw)})
        orders = _orders(raw, changes, cancelled)
        legs_text += [f"{name},{a},{b},{legs[a][b]}" for a in sorted(legs) for b in sorted(legs[a])]
        orders_text += [f"{i},{name},{o[0]},{o[1]},{_hhmm(o[2])},{_hhmm(o[3])},{o[4]}" for i, o in orders.items()]
        best = _routes(depot, legs, orders)
        cost, routes = _search(best, frozenset(orders), depot["vehicles"])
        driven = 0
        for number, route in enumerate(routes, 1):
            minutes, times = _timetable(depot, legs, [orders[i] for i in route])
            driven += minutes
            for position, (order, moments) in enumerate(zip(route, times, strict=True), 1):
                plan_text.append(",".join([name, str(number), str(position), order, *map(_hhmm, moments)]))
        without = {i: _search(best, frozenset(orders) - {i}, depot["vehicles"])[0] for i in orders}
        certificate[name] = {"cost": cost, "routes": len(routes), "driving_minutes": driven, "without": without}
        saving, order = min((without[i] - cost, i) for i in orders)
        dearest[name] = {"order_id": order, "saving": -saving}
        slack[name] = len(routes) * depot["capacity_kg"] - sum(o[1] for o in orders.values())
    summary = {
        "day": fleet["day"],
        "total_cost": sum(c["cost"] for c in certificate.values()),
        "cancelled": sorted(cancelled),
        "amended": sorted(set(changes) - cancelled),
        "dearest": dearest,
        "slack_kg": slack,
    }
    head = "order_id,depot,location,weight_kg,open,close,service_min"
    return {
        "output/staging/legs.csv": _join(legs_text),
        "output/staging/orders.csv": _join([head, *sorted(orders_text)]),
        "output/plan.csv": _join(plan_text),
        "output/certificate.json": json.dumps(certificate).encode(),
        "output/summary.json": json.dumps(summary).encode(),
    }


def _cells(data: bytes) -> list[list[str]]:
    return [line.replace(";", ",").split(",") for line in data.decode().splitlines()[1:]]


def _at(text: str) -> int:
    return 60 * int(text[0:2]) + int(text[3:5])


def _hhmm(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours:02}:{rest:02}"


def _legs(rows: list[list[str]], places: set[str]) -> dict[str, dict[str, int]]:
    seen, times = set(), {}
    for trip, a, b, departed, arrived in rows:
        if trip not in seen and {a, b} <= places:
            seen.add(trip)
            seconds = 60 * (_at(arrived) - _at(departed)) + int(arrived[6:]) - int(departed[6:])
            times.setdefault(a, {}).setdefault(b, []).append(seconds)
    middle = {a: {b: sorted(v)[(len(v) - 1) // 2] for b, v in to.items()} for a, to in times.items()}
    return {a: {b: v // 60 + (v % 60 > 0) for b, v in to.items()} for a, to in middle.items()}


def _orders(rows: list[list[str]], changes: dict[str, list[tuple]], cancelled: set[str]) -> dict[str, tuple]:
    """id -> (location, weight, open, close, service), in order of id."""
    out = {}
    for order, place, weight, opens, closes, service in sorted(rows):
        if order in cancelled:
            continue
        number, _, unit = weight.partition(" ")
        kilograms, window = int(number) // (1000 if unit == "g" else 1), (_at(opens), _at(closes))
        for _, kind, change in sorted(changes.get(order, []), key=lambda made: made[0]):
            if kind == "window":
                window = (_at(change["open"]), _at(change["close"]))
            else:
                kilograms = change["weight_kg"]
        out[order] = (place, kilograms, *window, int(service))
    return out


def _timetable(depot: dict[str, Any], legs: dict, stops: list[tuple]) -> tuple[int, list[tuple[int, int, int]]] | None:
    begin, end = map(_at, depot["shift"])
    here, now, driven, times = depot["location"], begin, 0, []
    for place, _, opens, closes, service in stops:
        arrival = now + legs[here][place]
        if arrival > closes:
            return None
        driven += legs[here][place]
        start = arrival if arrival > opens else opens
        here, now = place, start + service
        times.append((arrival, start, now))
    back = legs[here][depot["location"]]
    return (driven + back, times) if now + back <= end else None


def _routes(
    depot: dict[str, Any], legs: dict, orders: dict[str, tuple]
) -> dict[frozenset[str], tuple[int, tuple[str, ...]]]:
    best = {}
    for size in (1, 2, 3, 4):
        for group in itertools.combinations(orders, size):
            if sum(orders[i][1] for i in group) > depot["capacity_kg"]:
                continue
            for sequence in itertools.permutations(group):  # in order of ids, so that the first of equal cost stays
                driven = _timetable(depot, legs, [orders[i] for i in sequence])
                if driven is None:
                    continue
                cost = depot["vehicle_cents"] + driven[0] * depot["minute_cents"]
                key = frozenset(group)
                if key not in best or cost < best[key][0]:
                    best[key] = (cost, sequence)
    return best


def _search(best: dict, wanted: frozenset[str], vehicles: int) -> tuple[int, list[tuple[str, ...]]]:
    """The cheapest cover by depth-first branch and bound; equal costs are followed for the tie rule."""
    usable = sorted(
        ((cost, route, group) for group, (cost, route) in best.items() if group <= wanted), key=lambda r: r[:2]
    )
    holding = {i: [r for r in usable if i in r[2]] for i in wanted}
    share = {i: min(SHARE // len(r[2]) * r[0] for r in holding[i]) for i in wanted}
    found: tuple[int, list] | None = None

    def branch(left: frozenset[str], spent: int, taken: list[tuple[str, ...]]) -> None:
        nonlocal found
        if not left:
            candidate = (spent, sorted(taken))
            found = candidate if found is None else min(found, candidate)
            return
        if len(taken) == vehicles or (found and SHARE * (found[0] - spent) < sum(share[i] for i in left)):
            return
        pivot = min(left, key=lambda i: (len(holding[i]), i))
        for cost, route, group in holding[pivot]:
            if group <= left:
                branch(left - group, spent + cost, [*taken, route])

    branch(wanted, 0, [])
    if found is None:
        raise ValueError("no plan serves all orders")
    return found


def _join(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
