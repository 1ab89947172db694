"""A day of deliveries: depots, orders with time windows, the road network as recorded trips, late amendments.

Small enough per depot for an exact optimum, which the tie rules make unique; all quantities are whole minutes, kilograms and cents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.vehicle_dispatch import answers, harm, words

SPEC = Spec(
    name="vehicle_dispatch",
    revision=1,
    domain="9.4",
    title="Dispatch vehicles exactly, with marginal costs",
    summary="Estimate leg times, apply amendments, and find every depot's cheapest routes under windows, capacity and fleet size.",
    outputs=(
        Output("output/staging/legs.csv", "csv", "Travel time of every leg", words.LEGS),
        Output("output/staging/orders.csv", "csv", "Orders in force", words.ORDERS),
        Output("output/plan.csv", "csv", "Routes with times", words.PLAN),
        Output(
            "output/certificate.json",
            "json",
            "Optimal costs, with and without each order",
            {
                "<depot>": {
                    "cost": "integer",
                    "routes": "integer",
                    "driving_minutes": "integer",
                    "without": {"<order_id>": "integer"},
                }
            },
        ),
        Output(
            "output/summary.json",
            "json",
            "The day in figures",
            {
                "day": "date",
                "total_cost": "integer",
                "cancelled": ["string"],
                "amended": ["string"],
                "dearest": {"<depot>": {"order_id": "string", "saving": "integer"}},
                "slack_kg": {"<depot>": "integer"},
            },
        ),
    ),
    curriculum_layer="mastery",
    workflow_stages=("estimate", "amend", "optimise", "certify", "summarise"),
    artifact_roles=("records", "policy", "log", "reference-table"),
    relation_types=("foreign-key", "precedence", "temporal", "capacity"),
    source_kind="logistics",
)


@dataclass(frozen=True)
class Order:
    order_id: str
    location: str
    weight: int
    open: int  # minutes after midnight
    close: int
    service: int


@dataclass(frozen=True)
class Depot:
    name: str
    location: str
    vehicles: int
    capacity: int
    start: int
    end: int
    vehicle_cents: int
    minute_cents: int
    orders: tuple[Order, ...]  # as exported
    trips: tuple[tuple[str, str, str, int, int], ...]  # id, from, to, departed, arrived: seconds after midnight


@dataclass(frozen=True)
class World:
    day: str
    depots: tuple[Depot, ...]
    amendments: tuple[tuple[int, str, str, int, int], ...]  # seq, order, action, two values (0 when unused)


# tier -> (depots, orders as exported, trips of a leg)
SIZES = {"unit": (5, 6, 5), "small": (8, 7, 7), "full": (12, 8, 11)}


def make(draw: Draw, tier: str) -> World:
    count, orders, trips = SIZES[tier]
    names = sorted(draw.fork("names").sample(words.TOWNS, count))
    depots, amendments = [], []
    for name in names:
        for attempt in range(60):
            one = draw.fork(name, attempt)
            depot = _depot(one, name, orders, trips)
            changes = _changes(one.fork("changes"), depot)
            if answers.feasible(depot, answers.in_force(depot, changes)):
                break
        else:
            raise WorldError(f"no feasible depot {name} in 60 attempts")
        depots.append(depot)
        amendments += changes
    day = f"2025-{draw.integer(1, 12):02d}-{draw.integer(1, 28):02d}"
    shuffled = draw.fork("seq").shuffled(amendments)
    return World(day, tuple(depots), tuple((seq, *row[1:]) for seq, row in enumerate(shuffled, 101)))


def _depot(draw: Draw, name: str, orders: int, trips: int) -> Depot:
    start, end = 60 * draw.integer(6, 8), 60 * draw.integer(15, 17)
    capacity = 10 * draw.integer(60, 90)
    places = {f"{name[:2].upper()}{draw.integer(100, 999)}" for _ in range(4 * orders)}
    codes = draw.sample(sorted(places), orders + 1)
    made = []
    for code in codes[1:]:
        opens = draw.integer(start // 15 + 2, end // 15 - 16) * 15
        window = (opens, min(opens + 15 * draw.integer(6, 20), end - 75))
        made.append(
            Order(
                f"{name[:2].upper()}-{draw.hexadecimal(7)}", code, draw.integer(60, 260), *window, draw.integer(5, 25)
            )
        )
    made.sort(key=lambda order: order.order_id)
    grid = {code: (draw.integer(0, 45), draw.integer(0, 45)) for code in codes}
    legs = []
    for a in codes:
        for b in codes:
            if a != b:
                base = 60 * (8 + (abs(grid[a][0] - grid[b][0]) + abs(grid[a][1] - grid[b][1])) // 2) + draw.integer(
                    0, 240
                )
                legs += _trips(draw, a, b, base, trips)
    rows = tuple((f"T{draw.hexadecimal(12)}", *leg) for leg in draw.shuffled(legs))
    costs = (100 * draw.integer(20, 60), draw.integer(35, 80))
    return Depot(name, codes[0], (orders + 1) // 2, capacity, start, end, *costs, tuple(made), rows)


def _trips(draw: Draw, a: str, b: str, base: int, count: int) -> list[tuple[str, str, int, int]]:
    """Mostly a little around the base, now and then a jam."""
    out = []
    for _ in range(count):
        departed = draw.integer(6 * 3600, 18 * 3600)
        out.append((a, b, departed, departed + base + draw.integer(-90, 90) + (900 if draw.integer(0, 9) == 0 else 0)))
    return out


def _changes(draw: Draw, depot: Depot) -> list[tuple[int, str, str, int, int]]:
    """One cancellation, one new window and one or two new weights per depot."""
    chosen = draw.sample(depot.orders, 4)
    shift = 15 * draw.integer(1, 4)
    moved = chosen[1]
    rows = [
        (0, chosen[0].order_id, "cancel", 0, 0),
        (0, moved.order_id, "window", max(depot.start, moved.open - shift), moved.close - shift),
        (0, chosen[2].order_id, "weight", draw.integer(40, 300), 0),
    ]
    return [*rows, (0, chosen[3].order_id, "weight", draw.integer(40, 300), 0)] if draw.chance(0.5) else rows


def check(world: World) -> None:
    ids = [order.order_id for depot in world.depots for order in depot.orders]
    trips = [trip[0] for depot in world.depots for trip in depot.trips]
    if len(set(ids)) != len(ids) or len(set(trips)) != len(trips):
        raise WorldError("order and trip ids must be unique")
    for depot in world.depots:
        if not answers.feasible(depot, answers.in_force(depot, world.amendments)):
            raise WorldError(f"depot {depot.name} has no feasible plan")


def workflow(world: World) -> Workflow:
    trips = sum(len(depot.trips) for depot in world.depots)
    orders = sum(len(depot.orders) for depot in world.depots)
    return Workflow(
        (
            Stage("estimate", "estimate", trips),
            Stage("amend", "amend", orders + len(world.amendments)),
            Stage("optimise", "optimise", sum(len(d.orders) ** 3 for d in world.depots), ("estimate", "amend")),
            Stage("certify", "certify", orders, ("optimise",)),
            Stage("summarise", "summarise", len(world.depots), ("certify",)),
        )
    )


def render(world: World) -> dict[str, bytes]:
    fleet: dict[str, Any] = {"day": world.day, "depots": {}, "actions": words_of_actions()}
    tree = {}
    for d in world.depots:
        fleet["depots"][d.name] = {
            "location": d.location,
            "vehicles": d.vehicles,
            "capacity_kg": d.capacity,
            "shift": [answers.clock(d.start), answers.clock(d.end)],
            "vehicle_cents": d.vehicle_cents,
            "minute_cents": d.minute_cents,
        }
        rows = [
            [o.order_id, o.location, o.weight, answers.clock(o.open), answers.clock(o.close), o.service]
            for o in d.orders
        ]
        tree[f"input/orders/{d.name}.csv"] = csv_table.table(
            ["order_id", "location", "weight", "open", "close", "service_min"], rows
        )
        rows = [[i, a, b, _seconds(x), _seconds(y)] for i, a, b, x, y in d.trips]
        tree[f"input/trips/{d.name}.csv"] = csv_table.table(["trip_id", "from", "to", "departed", "arrived"], rows)
    tree["input/fleet.json"] = (json.dumps(fleet, indent=1) + "\n").encode()
    lines = []
    for seq, order, action, one, two in world.amendments:
        extra = {"open": answers.clock(one), "close": answers.clock(two)} if action == "window" else {}
        extra = {"weight_kg": one} if action == "weight" else extra
        lines.append(json.dumps({"seq": seq, "order_id": order, "action": action, **extra}) + "\n")
    tree["input/amendments.jsonl"] = "".join(lines).encode()
    return tree


def words_of_actions() -> dict[str, list[str]]:
    return {"cancel": ["CANCELLED", "void"], "window": ["re-time", "slot"], "weight": ["re-weigh", "mass"]}


def recover(tree: dict[str, bytes]) -> World:
    fleet, depots = json.loads(tree["input/fleet.json"]), []
    for name, d in fleet["depots"].items():
        orders = tuple(
            Order(r[0], r[1], int(r[2]), _minutes(r[3]), _minutes(r[4]), int(r[5]))
            for r in csv_table.rows(tree[f"input/orders/{name}.csv"])
        )
        trips = tuple(
            (r[0], r[1], r[2], *(60 * _minutes(t[:5]) + int(t[6:]) for t in r[3:]))
            for r in csv_table.rows(tree[f"input/trips/{name}.csv"])
        )
        shift = [_minutes(text) for text in d["shift"]]
        values = (d["location"], d["vehicles"], d["capacity_kg"], *shift, d["vehicle_cents"], d["minute_cents"])
        depots.append(Depot(name, *values, orders, trips))
    changes = []
    for line in map(json.loads, tree["input/amendments.jsonl"].splitlines()):
        values = (_minutes(line["open"]), _minutes(line["close"])) if "open" in line else (line.get("weight_kg", 0), 0)
        changes.append((line["seq"], line["order_id"], line["action"], *values))
    return World(fleet["day"], tuple(depots), tuple(changes))


def _seconds(value: int) -> str:
    return f"{answers.clock(value // 60)}:{value % 60:02d}"


def _minutes(text: str) -> int:
    return 60 * int(text[:2]) + int(text[3:5])


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.day)
