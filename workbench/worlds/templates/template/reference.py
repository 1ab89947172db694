"""Reference solver: plain dictionaries, one stage after the other."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping

KINDS = {"in": "in", "IN": "in", "received": "in", "out": "out", "OUT": "out", "issued": "out"}


def _read(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def _write(header: list[str], rows: list[list]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().encode()


def _day(text: str) -> str:
    if "/" in text:
        day, month, year = text.split("/")
        return f"{year}-{month}-{day}"
    return text


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    raw = [row for path in sorted(tree) if path.startswith("input/movements-") for row in _read(tree[path])]
    yield "read-ledgers", dict(out)

    ledger = {
        row["movement_id"]: [row["movement_id"], _day(row["day"]), row["sku"], KINDS[row["kind"]], int(row["quantity"])]
        for row in raw
    }
    header = ["movement_id", "day", "sku", "kind", "quantity"]
    out["output/movements.csv"] = _write(header, [ledger[key] for key in sorted(ledger)])
    yield "clean-movements", dict(out)

    costs = {row["sku"]: int(row["unit_cost_cents"]) for row in _read(tree["input/items.csv"])}
    count = dict.fromkeys(sorted(costs), 0)
    for _, _, sku, kind, quantity in ledger.values():
        count[sku] += quantity if kind == "in" else -quantity
    stock = [[sku, number, number * costs[sku]] for sku, number in count.items()]
    out["output/stock.csv"] = _write(["sku", "quantity", "value_cents"], stock)
    yield "count-stock", dict(out)

    best = min(stock, key=lambda row: (-row[2], row[0]))
    summary = {
        "movements": len(ledger),
        "total_value_cents": sum(row[2] for row in stock),
        "most_valuable_sku": best[0],
    }
    out["output/summary.json"] = json.dumps(summary, indent=1).encode()
    yield "summarise", dict(out)
