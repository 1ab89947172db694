"""The words of the world and the public contract."""

from __future__ import annotations

from workbench.worlds import Prompt

TOWNS = "Aldmoor Birchley Carrow Dunmere Eastwick Fenholt Garside Hexley Inverloch Jarrowby Kelder Lowick Marden Norbury".split()
LEGS = {"depot": "string", "from": "string", "to": "string", "minutes": "integer"}
ORDERS = {
    "order_id": "string",
    "depot": "string",
    "location": "string",
    "weight_kg": "integer",
    "open": "string",
    "close": "string",
    "service_min": "integer",
}
PLAN = {"depot": "string", "route": "integer", "position": "integer", "order_id": "string"} | dict.fromkeys(
    ("arrival", "start", "departure"), "string"
)


def prompt(day: str) -> Prompt:
    return Prompt(
        goal=f"Plan the deliveries of {day} for every depot at least cost, exactly, and certify the plan by what each order costs. Travel times have to be "
        "estimated from recorded trips, and orders were amended after they were exported.",
        inputs={
            "input/fleet.json": "per depot: its location code, vehicles, capacity in kg, shift, cost in cents of a vehicle and of a minute's driving",
            "input/orders/<depot>.csv": "orders as exported: id, location, weight, window, service minutes",
            "input/trips/<depot>.csv": "recorded trips between locations, HH:MM:SS",
            "input/amendments.jsonl": "changes in order of `seq`: cancel, window, weight; `actions` in fleet.json lists other spellings",
        },
        requirements=(
            "Trips: a trip id that stands twice counts once; trips with a location that neither the depot nor one of its exported orders has are left out. "
            "A leg's time is the median duration of its trips (an odd number), rounded up to whole minutes. legs.csv holds every leg between different "
            "locations, sorted by depot, from, to.",
            "Orders: weights are kilograms unless a g (grams) follows; apply the amendments by rising seq; cancelled orders are gone. orders.csv "
            "sorted by order_id, times HH:MM.",
            "A route leaves its depot's location at the start of the shift, serves one to four orders, waits where it comes before a window opens, starts each service "
            "within [open, close], and is back by the end of the shift; its weights sum to at most the capacity. No depot uses more routes than it "
            "has vehicles; every order is served once.",
            "Cost of a plan: vehicle_cents per route plus minute_cents per minute of driving (not waiting, not service). Take the cheapest plan of each depot. Ties: "
            "first, for any set of orders served by one route, the cheapest sequence, and among these the one whose list of order ids comes first; then, "
            "among cheapest plans, the one whose list of routes, sorted by their lists of order ids, comes first.",
            "plan.csv: routes of a depot numbered from 1 in that order, position from 1; arrival, start and departure (after service) as HH:MM; "
            "sorted by depot, route, position.",
            "certificate.json: per depot cost, routes, driving_minutes, and `without`: for every order the least cost of the depot if that order alone did not exist.",
            "summary.json: day; total_cost; cancelled and amended (window or weight of an order that stays) order ids, sorted; dearest: per depot the order whose absence saves "
            "most (the first id on a tie) and the saving in cents; slack_kg: per depot capacity times routes minus weights.",
        ),
        authority=(
            "An amendment overrides the export, a later one an earlier one. Files whose name ends in .bak.csv are out of date.",
            "A table may have semicolons for separators.",
        ),
    )
