"""The latent world: a depot's items and its movements over three months. Everything else follows from it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from workbench.worlds import Defect, Draw, Output, Prompt, Spec, Stage, Tree, Workflow, WorldError
from workbench.worlds.formats import csv_table

SPEC = Spec(
    name="template",
    revision=1,
    domain="9.2",
    title="Depot stock count",
    summary="Rebuild a depot's movement ledger from damaged monthly files, then its stock and its value.",
    outputs=(
        Output(
            "output/movements.csv",
            "csv",
            "the cleaned ledger, ordered by `movement_id`; days as YYYY-MM-DD, kind `in` or `out`",
            {"movement_id": "string", "day": "date", "sku": "string", "kind": "string", "quantity": "integer"},
        ),
        Output(
            "output/stock.csv",
            "csv",
            "one line for each item of the item list, ordered by `sku`",
            {"sku": "string", "quantity": "integer", "value_cents": "integer"},
        ),
        Output(
            "output/summary.json",
            "json",
            "totals",
            {"movements": "integer", "total_value_cents": "integer", "most_valuable_sku": "string"},
        ),
    ),
    curriculum_layer="foundation",
    workflow_stages=("profile", "normalize", "aggregate", "report"),
    tools=("python3",),
    artifact_roles=("records", "reference-table"),
    relation_types=("foreign-key", "partition"),
    source_kind="warehouse operations",
)

SIZES = {"unit": (12, 30), "small": (40, 120), "full": (120, 400)}  # items, movements a month
MONTHS = ("2024-01", "2024-02", "2024-03")
NOUNS = ("bolt", "valve", "bearing", "gasket", "bracket", "hinge", "spring", "washer")
ADJECTIVES = ("steel", "brass", "nylon", "zinc", "copper", "carbon")


@dataclass(frozen=True)
class Item:
    sku: str
    name: str
    unit_cost_cents: int


@dataclass(frozen=True)
class Movement:
    movement_id: str
    day: str
    sku: str
    kind: str
    quantity: int


@dataclass(frozen=True)
class World:
    """items ordered by sku; movements by id, and by month with it."""

    items: tuple[Item, ...]
    movements: tuple[Movement, ...]


def make(draw: Draw, tier: str) -> World:
    items, per_month = SIZES[tier]
    names = draw.fork("names")
    numbers = sorted(draw.fork("skus").sample(range(1000, 9999), items))
    stock = [
        Item(f"SKU-{n}", f"{names.choice(ADJECTIVES)} {names.choice(NOUNS)}", names.integer(15, 90000)) for n in numbers
    ]
    moves, ledger = draw.fork("moves"), []
    ids = sorted(draw.fork("ids").sample(range(10000, 99999), per_month * len(MONTHS)))
    days = [f"{month}-{day:02d}" for month in MONTHS for day in sorted(moves.integer(1, 28) for _ in range(per_month))]
    for number, day in zip(ids, days, strict=True):
        kind = moves.weighted(("in", "out"), (3, 1))
        ledger.append(Movement(f"M{number}", day, moves.choice(stock).sku, kind, moves.integer(2, 60)))
    return World(tuple(stock), tuple(ledger))


def check(world: World) -> None:
    """Unique ids, known items, positive quantities."""
    known = {item.sku for item in world.items}
    if len({m.movement_id for m in world.movements}) != len(world.movements):
        raise WorldError("two movements share an id")
    if any(m.sku not in known or m.quantity <= 0 for m in world.movements):
        raise WorldError("a movement of an unknown item, or of nothing")


def workflow(world: World) -> Workflow:
    size = len(world.movements)
    return Workflow(
        (
            Stage("read-ledgers", "profile", size),
            Stage("clean-movements", "normalize", size, ("read-ledgers",)),
            Stage("count-stock", "aggregate", len(world.items), ("clean-movements",)),
            Stage("summarise", "report", 3, ("count-stock",)),
        )
    )


def render(world: World) -> Tree:
    tree = {
        "input/items.csv": csv_table.table(
            ("sku", "name", "unit_cost_cents"), [(i.sku, i.name, i.unit_cost_cents) for i in world.items]
        )
    }
    for month in MONTHS:
        rows = [(m.movement_id, m.day, m.sku, m.kind, m.quantity) for m in world.movements if m.day.startswith(month)]
        tree[f"input/movements-{month}.csv"] = csv_table.table(("movement_id", "day", "sku", "kind", "quantity"), rows)
    return tree


def _rows(tree: Tree, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tree[path].decode(), newline="")))


def recover(tree: Tree) -> World:
    items = tuple(Item(r["sku"], r["name"], int(r["unit_cost_cents"])) for r in _rows(tree, "input/items.csv"))
    moves = [
        Movement(r["movement_id"], r["day"], r["sku"], r["kind"], int(r["quantity"]))
        for month in MONTHS
        for r in _rows(tree, f"input/movements-{month}.csv")
    ]
    return World(items, tuple(moves))


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    """One damage a month, of one to three kinds."""
    sizes = {month: sum(m.day.startswith(month) for m in world.movements) for month in MONTHS}
    months = draw.shuffled(MONTHS)
    path = "input/movements-{}.csv".format
    some = {month: sorted(draw.sample(range(size), size // 4)) for month, size in sizes.items()}
    defects = [
        Defect("duplicate_records", path(months[0]), {"rows": some[months[0]]}, "a file was exported twice in part"),
        Defect(
            "date_format_drift",
            path(months[1]),
            {"column": "day", "from": "%Y-%m-%d", "to": "%d/%m/%Y"},
            "another clerk's dates",
        ),
        Defect(
            "category_drift",
            path(months[2]),
            {
                "column": "kind",
                "mapping": {"in": ["IN", "received"], "out": ["OUT", "issued"]},
                "rows": some[months[2]],
            },
            "an older word list",
        ),
    ]
    return tuple(draw.sample(defects, draw.integer(1, len(defects))))


def _stock(world: World) -> list[list]:
    count = {item.sku: 0 for item in world.items}
    for move in world.movements:
        count[move.sku] += move.quantity if move.kind == "in" else -move.quantity
    return [[item.sku, count[item.sku], count[item.sku] * item.unit_cost_cents] for item in world.items]


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    """What the graders compare with."""
    stock = _stock(world)
    best = max(stock, key=lambda row: row[2])  # the first of equals, which is the smallest sku
    return {
        "movements": [[m.movement_id, m.day, m.sku, m.kind, m.quantity] for m in world.movements],
        "stock": stock,
        "summary": {
            "movements": len(world.movements),
            "total_value_cents": sum(row[2] for row in stock),
            "most_valuable_sku": best[0],
        },
    }


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal=(
            "The depot keeps one movement file a month. They were kept by different clerks and one may have been exported twice. "
            "Rebuild the ledger, count the stock, and value it."
        ),
        inputs={
            "input/items.csv": "the item list, with the unit cost in cents; it is right",
            "input/movements-*.csv": "the movements of a month: `in` adds to the stock of an item, `out` takes from it",
        },
        requirements=(
            "Read every movement file. A day is written YYYY-MM-DD or DD/MM/YYYY; write YYYY-MM-DD.",
            "Of lines that share a `movement_id`, keep one: they are the same movement.",
            "Write the kind as `in` (also found as `IN`, `received`) or `out` (also `OUT`, `issued`).",
            "The stock of an item is what came in less what went out, over all months; it may be negative. Items without "
            "movements have 0.",
            "The value of an item is its stock times its unit cost, in cents. `most_valuable_sku` has the greatest value; of "
            "equals the smallest `sku`.",
        ),
        authority=("The item list decides which items there are.",),
    )
