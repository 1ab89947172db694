"""The hidden suite: what each component must notice, what no grade may depend on, and plausible wrong answers."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

from workbench.worlds import Defect, Tree


def _swap(tree: Tree, path: str, old: bytes, new: bytes) -> Tree:
    return {**tree, path: tree[path].replace(old, new, 1)}


def causes(tree: Tree) -> dict[str, Tree]:
    """For every component one mutation of a complete output that it must notice."""
    summary = json.loads(tree["output/summary.json"])
    summary["total_value_cents"] += 1
    lines = tree["output/stock.csv"].splitlines(keepends=True)
    return {
        "movements": _swap(tree, "output/movements.csv", b",in,", b",out,"),
        "stock": {**tree, "output/stock.csv": b"".join(lines[:-1])},
        "summary": {**tree, "output/summary.json": json.dumps(summary).encode()},
    }


def rewrites(tree: Tree) -> dict[str, Tree]:
    """The same meaning in other bytes."""
    quoted = {}
    for path in ("output/movements.csv", "output/stock.csv"):
        out = io.StringIO()
        rows = csv.reader(tree[path].decode().splitlines())
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
        quoted[path] = out.getvalue().encode()
    summary = json.loads(tree["output/summary.json"])
    spaced = json.dumps(dict(reversed(summary.items())), indent=4).encode() + b"\n"
    return {"quoted tables": {**tree, **quoted}, "spaced json": {**tree, "output/summary.json": spaced}}


def _counted(world, moves) -> Tree:
    """The outputs that these movements would give."""
    count = Counter()
    for move in moves:
        count[move.sku] += move.quantity if move.kind == "in" else -move.quantity
    stock = [(item.sku, count[item.sku], count[item.sku] * item.unit_cost_cents) for item in world.items]
    ledger = [(m.movement_id, m.day, m.sku, m.kind, m.quantity) for m in moves]
    total = sum(row[2] for row in stock)
    best = max(stock, key=lambda row: row[2])[0]
    tables = {
        "output/movements.csv": [("movement_id", "day", "sku", "kind", "quantity"), *ledger],
        "output/stock.csv": [("sku", "quantity", "value_cents"), *stock],
    }
    out = {path: "".join(",".join(map(str, row)) + "\n" for row in rows).encode() for path, rows in tables.items()}
    told = {"movements": len(moves), "total_value_cents": total, "most_valuable_sku": best}
    return {**out, "output/summary.json": json.dumps(told).encode()}


def stale(world, defects: tuple[Defect, ...]) -> dict[str, Tree]:
    """Complete outputs that are wrong: a month left out, a month counted twice."""
    last = world.movements[-1].day[:7]
    again = [m for m in world.movements if m.day.startswith(last)]
    return {
        "last month left out": _counted(world, [m for m in world.movements if not m.day.startswith(last)]),
        "last month twice": _counted(world, sorted([*world.movements, *again], key=lambda m: m.movement_id)),
    }
