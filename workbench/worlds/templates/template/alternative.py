"""Alternative solver: SQL over an in-memory database."""

from __future__ import annotations

import json
import re
import sqlite3

QUERY = """
SELECT items.sku, coalesce(sum(CASE kind WHEN 'in' THEN quantity ELSE -quantity END), 0) AS n,
       coalesce(sum(CASE kind WHEN 'in' THEN quantity ELSE -quantity END), 0) * cost
FROM items LEFT JOIN moves ON moves.sku = items.sku GROUP BY items.sku ORDER BY items.sku
"""


def _lines(data: bytes) -> list[list[str]]:
    return [line.split(",") for line in data.decode().splitlines()[1:]]


def _text(header: str, rows: list[tuple]) -> bytes:
    return "".join(f"{line}\n" for line in [header, *(",".join(map(str, row)) for row in rows)]).encode()


def solve(tree: dict[str, bytes]) -> dict[str, bytes]:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE items (sku TEXT PRIMARY KEY, name TEXT, cost INTEGER)")
    base.execute("CREATE TABLE moves (id TEXT PRIMARY KEY, day TEXT, sku TEXT, kind TEXT, quantity INTEGER)")
    base.executemany("INSERT INTO items VALUES (?, ?, ?)", _lines(tree["input/items.csv"]))
    for path, data in tree.items():
        if re.fullmatch(r"input/movements-\d{4}-\d\d\.csv", path):
            base.executemany("INSERT OR IGNORE INTO moves VALUES (?, ?, ?, ?, ?)", _lines(data))
    base.execute("UPDATE moves SET kind = CASE WHEN lower(kind) IN ('in', 'received') THEN 'in' ELSE 'out' END")
    base.execute(
        "UPDATE moves SET day = substr(day, 7, 4) || '-' || substr(day, 4, 2) || '-' || substr(day, 1, 2) "
        "WHERE day LIKE '__/__/____'"
    )
    moves = base.execute("SELECT * FROM moves ORDER BY id").fetchall()
    stock = base.execute(QUERY).fetchall()
    base.close()
    top = sorted(stock, key=lambda row: row[0])
    summary = {
        "most_valuable_sku": max(top, key=lambda row: row[2])[0],
        "movements": len(moves),
        "total_value_cents": sum(row[2] for row in stock),
    }
    return {
        "output/movements.csv": _text("movement_id,day,sku,kind,quantity", moves),
        "output/stock.csv": _text("sku,quantity,value_cents", stock),
        "output/summary.json": json.dumps(summary).encode(),
    }
