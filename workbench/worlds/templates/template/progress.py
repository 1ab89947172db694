"""Progress: how much of the ledger, the stock and the summary stands, one built on the other."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from typing import Any

NODES = (
    ("ledger", 4, ()),
    ("ledger-order", 1, ("ledger",)),
    ("stock", 3, ("ledger",)),
    ("summary", 2, ("stock",)),
)
FLOOR = 0.6
FILES = {
    "ledger": ("output/movements.csv", "movement_id,day,sku,kind,quantity"),
    "stock": ("output/stock.csv", "sku,quantity,value_cents"),
}


def _records(tree: Mapping[str, bytes], name: str) -> list[tuple[str, ...]]:
    """The rows under the right header, else none."""
    path, header = FILES[name]
    try:
        rows = list(csv.reader(tree.get(path, b"").decode("utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error):
        return []
    return [tuple(row) for row in rows[1:]] if rows and ",".join(rows[0]) == header else []


def _overlap(want: list[tuple[str, ...]], got: list[tuple[str, ...]]) -> float:
    """F1 of two sets of records; repeated ones are wrong. One month copied as it is reaches 0.5: below FLOOR nothing is earned."""
    both = 2 * len(set(want) & set(got)) / (len(want) + len(got))
    return both if both >= FLOOR else 0.0


def _members(tree: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        found = json.loads(tree.get("output/summary.json", b"").decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    ledger = [tuple(map(str, row)) for row in truth["movements"]]
    stock = [tuple(map(str, row)) for row in truth["stock"]]
    wrote, counted, told = _records(tree, "ledger"), _records(tree, "stock"), _members(tree)
    facts = truth["summary"]
    right = sum(type(told.get(key)) is type(value) and told[key] == value for key, value in facts.items())
    return {
        "ledger": _overlap(ledger, wrote),
        "ledger-order": float(wrote == ledger),
        "stock": _overlap(stock, counted) * (1.0 if counted == sorted(counted) else 0.9),
        "summary": right / max(len(facts), len(told)),
    }
