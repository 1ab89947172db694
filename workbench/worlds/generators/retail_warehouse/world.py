"""A retailer's six months of trade, as its warehouse should hold it (rebuilt from the description of Tev Fig. 3 and appendix B).

The world is the clean star schema: customers, products, stores, sales, returns. It's rendered as the files that an operations
team would hand over: catalogue extracts, one partition of sales a month in three wire formats, a returns register, the tills' journal
of each month's last days, and a manifest. Scale follows Tev A.4: 30 customers and 48 sales a month up to 480 and 960.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.worlds import Defect, Prompt, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.retail_warehouse import contract
from workbench.worlds.generators.retail_warehouse.contract import SPEC
from workbench.worlds.generators.retail_warehouse.words import ADJECTIVES, CITIES, FIRST, HEADINGS, LABELS, LAST, NOUNS

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]

SIZES = {
    "unit": (30, 48, 12, 4),
    "small": (120, 220, 24, 6),
    "full": (480, 960, 60, 10),
}  # customers, sales a month, products, stores
SALE = (
    "transaction_id",
    "sold_on",
    "customer_id",
    "product_id",
    "store_id",
    "channel",
    "quantity",
    "unit_price",
    "discount_percent",
)
JOURNAL_FROM = 24  # the journal holds each month's sales from this day on


@dataclass(frozen=True)
class World:
    """Rows in the order of their files. Money in cents, dates ISO. sales: SALE's fields. suffixes: month -> wire format."""

    months: tuple[str, ...]
    suffixes: tuple[str, ...]
    customers: tuple[tuple[str, ...], ...]
    products: tuple[tuple[str, str, str, int], ...]
    stores: tuple[tuple[str, str, str], ...]
    sales: tuple[tuple[str, str, str, str, str, str, int, int, int], ...]
    returns: tuple[tuple[str, str, str, int], ...]


def make(draw: Draw, tier: str) -> World:
    people, monthly, goods, shops = SIZES[tier]
    year, start = draw.integer(2019, 2025), draw.integer(1, 12)
    months = tuple(f"{year + (start + i - 1) // 12}-{(start + i - 1) % 12 + 1:02d}" for i in range(6))
    regions = tuple(draw.sample(("north", "south", "east", "west", "coast", "inland"), 4))
    mark, names = draw.hexadecimal(5).upper(), draw.fork("names")
    customers = []
    for i in range(people):
        first, last = names.choice(FIRST), names.choice(LAST)
        signed = f"{year - names.integer(1, 6)}-{names.integer(1, 12):02d}-{names.integer(1, 28):02d}"
        mail = f"{first}.{last}{i}@{names.choice(CITIES)}.example".lower()
        customers.append(
            (
                f"C{mark}{i + 1:04d}",
                f"{first} {last}",
                mail,
                names.choice(list(LABELS["segment"])),
                names.choice(CITIES),
                names.choice(regions),
                signed,
            )
        )
    products = []
    for i in range(goods):
        kind = list(LABELS["category"])[i % 5]
        label = f"{names.choice(ADJECTIVES)} {names.choice(NOUNS[kind])} {names.integer(10, 99)}"
        products.append((f"P{mark}{i + 1:03d}", label, kind, names.integer(199, 249_900)))
    stores = tuple(
        (
            f"S{mark}{i + 1:02d}",
            f"{names.choice(CITIES)} {names.choice(('Arcade', 'Market', 'Centre'))}",
            regions[i % 4],
        )
        for i in range(shops)
    )
    sales = [
        row for month in months for row in _month(draw.fork(month), month, monthly, mark, customers, products, stores)
    ]
    suffixes = tuple(draw.shuffled(("csv", "tsv", "json", "csv", "tsv", "csv")))
    return World(
        months,
        suffixes,
        tuple(customers),
        tuple(products),
        stores,
        tuple(sales),
        _returns(draw.fork("returns"), sales, months[-1]),
    )


def _month(
    draw: Draw, month: str, count: int, mark: str, customers: list, products: list, stores: tuple
) -> list[tuple]:
    rows = []
    for i, day in enumerate(sorted(draw.integer(1, 28) for _ in range(count))):
        product = draw.choice(products)
        price = max(99, product[3] * draw.integer(90, 105) // 100)
        rows.append((
            f"T{mark}{month.replace('-', '')}{i + 1:05d}", f"{month}-{day:02d}", draw.choice(customers)[0], product[0], draw.choice(stores)[0],
            draw.choice(list(LABELS["channel"])), draw.integer(1, 9), price, draw.choice((0, 0, 0, 5, 10, 15, 25)),
        ))  # fmt: skip
    return rows


def _returns(draw: Draw, sales: list[tuple], last: str) -> tuple[tuple[str, str, str, int], ...]:
    chosen = sorted(draw.sample([row for row in sales if row[1][:7] < last], len(sales) // 14))
    return tuple(
        (f"R{row[0][1:6]}{i + 1:04d}", row[0], f"{last}-{draw.integer(1, 28):02d}", draw.integer(1, row[6]))
        for i, row in enumerate(chosen)
    )


def check(world: World) -> None:
    """Unique identities, valid joins, finite measures."""
    sold = {row[0]: row for row in world.sales}
    known = [{row[0] for row in rows} for rows in (world.customers, world.products, world.stores)]
    if any(
        len(ids) != len(rows)
        for ids, rows in zip([sold, *known], (world.sales, world.customers, world.products, world.stores), strict=True)
    ):
        raise WorldError("an identifier is used twice")
    if any(row[2 + i] not in known[i] for row in world.sales for i in range(3)) or any(
        row[1] not in sold for row in world.returns
    ):
        raise WorldError("a sale or a return points at nothing")
    if any(not (0 < row[3] <= sold[row[1]][6] and sold[row[1]][1] < row[2]) for row in world.returns):
        raise WorldError("a return exceeds its sale or precedes it")


def workflow(world: World) -> Workflow:
    sales = len(world.sales)
    return Workflow((
        Stage("profile-sources", "profile", len(world.months) * len(SALE) + 4),
        Stage("normalize-dimensions", "normalize", len(world.customers) + len(world.products) + len(world.stores), ("profile-sources",)),
        Stage("reconcile-sales", "reconcile", sales + sales // 6, ("profile-sources",)),
        Stage("load-facts", "load", sales + len(world.returns), ("normalize-dimensions", "reconcile-sales")),
        Stage("aggregate-validate", "aggregate", sales, ("load-facts",)),
        Stage("package-sidecars", "report", len(world.months) + 20, ("aggregate-validate",)),
    ))  # fmt: skip


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def printed(row: Sequence) -> list[str]:
    """A sale as the files print it: price in currency units."""
    return [*map(str, row[:7]), money(row[7]), str(row[8])]


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def partition(world: World, index: int) -> str:
    return f"input/sales/{world.months[index]}.{world.suffixes[index]}"


def render(world: World) -> dict[str, bytes]:
    tree = {
        "input/catalog/customers.csv": csv_table.table(
            ("customer_id", "name", "email", "segment", "city", "region", "signup_date"), world.customers
        ),
        "input/catalog/products.tsv": csv_table.table(
            ("product_id", "name", "category", "list_price"),
            [(*row[:3], money(row[3])) for row in world.products],
            "\t",
        ),
        "input/catalog/stores.json": _json(
            [dict(zip(("store_id", "name", "region"), row, strict=True)) for row in world.stores]
        ),
        "input/catalog/aliases.json": _json({"labels": LABELS, "headings": HEADINGS}),
        "input/returns.csv": csv_table.table(("return_id", "transaction_id", "returned_on", "quantity"), world.returns),
        "input/manifest.json": _json(
            [
                {"path": partition(world, i).removeprefix("input/"), "month": month}
                for i, month in enumerate(world.months)
            ]
        ),
    }
    kept = [dict(zip(SALE, printed(row), strict=True)) for row in world.sales if int(row[1][8:]) >= JOURNAL_FROM]
    tree["input/journal/till_journal.jsonl"] = "".join(json.dumps(row) + "\n" for row in kept).encode()
    for i, month in enumerate(world.months):
        rows = [printed(row) for row in world.sales if row[1][:7] == month]
        if world.suffixes[i] == "json":
            tree[partition(world, i)] = _json([dict(zip(SALE, row, strict=True)) for row in rows])
        else:
            tree[partition(world, i)] = csv_table.table(SALE, rows, "\t" if world.suffixes[i] == "tsv" else ",")
    return tree


def cents(text: str) -> int:
    whole, part = text.split(".")
    return int(whole) * 100 + int(part)


def recover(tree: Mapping[str, bytes]) -> World:
    """The world back from its clean files."""
    listed = json.loads(tree["input/manifest.json"])
    sales = []
    for entry in listed:
        data = tree["input/" + entry["path"]]
        kind = entry["path"].rsplit(".", 1)[1]
        rows = (
            [list(row.values()) for row in json.loads(data)]
            if kind == "json"
            else csv_table.rows(data, "\t" if kind == "tsv" else ",")
        )
        sales += [(*row[:6], int(row[6]), cents(row[7]), int(row[8])) for row in rows]
    return World(
        tuple(entry["month"] for entry in listed), tuple(entry["path"].rsplit(".", 1)[1] for entry in listed),
        tuple(map(tuple, csv_table.rows(tree["input/catalog/customers.csv"]))),
        tuple((*row[:3], cents(row[3])) for row in csv_table.rows(tree["input/catalog/products.tsv"], "\t")),
        tuple(tuple(row.values()) for row in json.loads(tree["input/catalog/stores.json"])), tuple(sales),
        tuple((*row[:3], int(row[3])) for row in csv_table.rows(tree["input/returns.csv"])),
    )  # fmt: skip


def _paths(world: World) -> list[str]:
    return [partition(world, i) for i in range(len(world.months))]


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return contract.plan(world, draw, _paths(world))


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    return contract.truth(world, defects, _paths(world))


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return contract.prompt(world, defects)
