"""Alternative solver: raw text goes into staging tables, everything else is SQL."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping

TABLES = """
CREATE TABLE dim_customer (customer_id TEXT PRIMARY KEY, name TEXT, email TEXT, segment TEXT, city TEXT, region TEXT, signup_date TEXT);
CREATE TABLE dim_product (product_id TEXT PRIMARY KEY, name TEXT, category TEXT, list_price_cents INTEGER);
CREATE TABLE dim_store (store_id TEXT PRIMARY KEY, name TEXT, region TEXT);
CREATE TABLE dim_date (date TEXT PRIMARY KEY, month TEXT, quarter INTEGER, iso_weekday INTEGER);
CREATE TABLE fact_sales (transaction_id TEXT PRIMARY KEY, date TEXT REFERENCES dim_date(date),
 customer_id TEXT REFERENCES dim_customer(customer_id), product_id TEXT REFERENCES dim_product(product_id),
 store_id TEXT REFERENCES dim_store(store_id), channel TEXT, quantity INTEGER, unit_price_cents INTEGER,
 discount_percent INTEGER, net_cents INTEGER);
CREATE TABLE fact_returns (return_id TEXT PRIMARY KEY, transaction_id TEXT REFERENCES fact_sales(transaction_id),
 date TEXT REFERENCES dim_date(date), quantity INTEGER, refund_cents INTEGER);
CREATE TABLE agg_month_region_category (month TEXT, region TEXT, category TEXT, sales INTEGER, units INTEGER, net_cents INTEGER,
 refund_cents INTEGER, PRIMARY KEY (month, region, category));
CREATE TEMP TABLE alias (kind TEXT, variant TEXT, label TEXT, PRIMARY KEY (kind, variant));
CREATE TEMP TABLE raw (path TEXT, line INTEGER, transaction_id TEXT, sold_on TEXT, customer_id TEXT, product_id TEXT, store_id TEXT,
 channel TEXT, quantity TEXT, unit_price TEXT, discount_percent TEXT, journal INTEGER);
CREATE TEMP TABLE raw_return (return_id TEXT, transaction_id TEXT, returned_on TEXT, quantity TEXT);
CREATE TEMP TABLE part (path TEXT PRIMARY KEY, month TEXT);
"""
COLUMNS = "transaction_id sold_on customer_id product_id store_id channel quantity unit_price discount_percent".split()
# Duplicates rank by line; the journal's sales come after those of their partition.
RANKED = """
CREATE TEMP TABLE ranked AS
SELECT raw.*, part.month, iso(sold_on) AS date, ROW_NUMBER() OVER (PARTITION BY raw.path, transaction_id ORDER BY journal, line) AS place,
 EXISTS (SELECT 1 FROM dim_customer c WHERE c.customer_id = raw.customer_id)
  AND EXISTS (SELECT 1 FROM dim_product p WHERE p.product_id = raw.product_id)
  AND EXISTS (SELECT 1 FROM dim_store s WHERE s.store_id = raw.store_id) AS joined
FROM raw JOIN part USING (path)
"""
SALES = """
INSERT INTO fact_sales
SELECT transaction_id, date, customer_id, product_id, store_id, coalesce(a.label, channel), quantity, pence(unit_price), discount_percent,
 (2 * quantity * pence(unit_price) * (100 - discount_percent) + 100) / 200
FROM ranked LEFT JOIN alias a ON a.kind = 'channel' AND a.variant = channel WHERE place = 1 AND joined ORDER BY transaction_id
"""
RETURNS = """
INSERT INTO fact_returns
SELECT return_id, r.transaction_id, iso(returned_on), CAST(r.quantity AS INTEGER),
 (2 * f.net_cents * CAST(r.quantity AS INTEGER) + f.quantity) / (2 * f.quantity)
FROM raw_return r JOIN fact_sales f USING (transaction_id)
"""
DATES = """
INSERT INTO dim_date
SELECT date, substr(date, 1, 7), (CAST(substr(date, 6, 2) AS INTEGER) + 2) / 3, (CAST(strftime('%w', date) AS INTEGER) + 6) % 7 + 1
FROM (SELECT date FROM fact_sales UNION SELECT date FROM fact_returns) ORDER BY date
"""
AGGREGATE = """
INSERT INTO agg_month_region_category
SELECT substr(f.date, 1, 7), s.region, p.category, count(*), sum(f.quantity), sum(f.net_cents), coalesce(sum(r.refund), 0)
FROM fact_sales f JOIN dim_store s USING (store_id) JOIN dim_product p USING (product_id)
LEFT JOIN (SELECT transaction_id, sum(refund_cents) AS refund FROM fact_returns GROUP BY 1) r USING (transaction_id) GROUP BY 1, 2, 3
"""
QUALITY = """
SELECT substr(path, 7), sum(journal = 0), sum(journal = 0 AND joined AND place > 1), sum(journal = 0 AND NOT joined),
 sum(journal = 1 AND place = 1), sum(place = 1 AND joined) FROM ranked GROUP BY path ORDER BY path
"""


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def _iso(value: str) -> str:
    found = re.fullmatch(r"(\d\d)[./](\d\d)[./](\d{4})", value)
    return "-".join(reversed(found.groups())) if found else value


def _pence(value: str) -> int:
    return int(re.sub(r"\D", "", value))


def _cells(line: str, sign: str) -> list[str]:
    """One line of a delimited file, quotes honoured."""
    found = re.findall(rf'(?:^|{re.escape(sign)})(?:"((?:[^"]|"")*)"|([^{re.escape(sign)}]*))', line)
    return [(quoted.replace('""', '"') or plain).strip() for quoted, plain in found]


def _rows(data: bytes, columns: list[str], heading: Mapping[str, str]) -> list[list[str]]:
    """The rows of a file in the order of `columns`."""
    text = _text(data)
    if text[0] == "[":
        return [[row[name] for name in columns] for row in json.loads(text)]
    head, *lines = text.splitlines()
    sign = next(s for s in "\t;|," if s in head)
    names = [heading.get(name, name) for name in _cells(head, sign)]
    order = [names.index(name) for name in columns]
    return [[cells[i] for i in order] for cells in (_cells(line, sign) for line in lines if line)]


def _catalogue(connection: sqlite3.Connection, tree: Mapping[str, bytes]) -> None:
    fill = {
        "dim_customer": ("customers.csv", "customer_id name email segment city region signup_date"),
        "dim_product": ("products.tsv", "product_id name category list_price"),
        "dim_store": ("stores.json", "store_id name region"),
    }
    for table, (name, columns) in fill.items():
        rows = _rows(tree[f"input/catalog/{name}"], columns.split(), {})
        slots = ", ".join("pence(?)" if "price" in name else "?" for name in columns.split())
        connection.executemany(f"INSERT INTO {table} VALUES ({slots})", rows)


def _tidy(connection: sqlite3.Connection, table: str, kind: str) -> int:
    """Canonical labels; how many had to change."""
    lookup = f"(SELECT label FROM alias WHERE kind = '{kind}' AND variant = {table}.{kind})"
    return connection.execute(f"UPDATE {table} SET {kind} = {lookup} WHERE {lookup} IS NOT NULL").rowcount


def _load(connection: sqlite3.Connection, tree: Mapping[str, bytes], headings: Mapping[str, str]) -> None:
    listed = {"input/" + entry["path"]: entry["month"] for entry in json.loads(_text(tree["input/manifest.json"]))}
    connection.executemany("INSERT INTO part VALUES (?, ?)", listed.items())
    slots = ",".join("?" * 12)
    for path in listed:
        rows = _rows(tree[path], COLUMNS, headings)
        connection.executemany(f"INSERT INTO raw VALUES ({slots})", [(path, i, *row, 0) for i, row in enumerate(rows)])
    where = {month: path for path, month in listed.items()}
    for i, line in enumerate(_text(tree["input/journal/till_journal.jsonl"]).splitlines()):
        row = json.loads(line)
        connection.execute(
            f"INSERT INTO raw VALUES ({slots})", (where[row["sold_on"][:7]], i, *(row[c] for c in COLUMNS), 1)
        )
    returns = _rows(tree["input/returns.csv"], ["return_id", "transaction_id", "returned_on", "quantity"], {})
    connection.executemany("INSERT INTO raw_return VALUES (?, ?, ?, ?)", returns)


def _summary(connection: sqlite3.Connection) -> dict:
    one = lambda query: connection.execute(query).fetchone()[0]  # noqa: E731
    months = "SELECT month, sum(sales), sum(net_cents), sum(refund_cents) FROM agg_month_region_category GROUP BY month ORDER BY month"
    top = "SELECT customer_id, sum(net_cents) FROM fact_sales GROUP BY customer_id ORDER BY 2 DESC, 1 LIMIT 5"
    out = {name + "s": one(f"SELECT count(*) FROM dim_{name}") for name in ("customer", "product", "store")}
    out |= {"sales": one("SELECT count(*) FROM fact_sales"), "units": one("SELECT sum(quantity) FROM fact_sales")}
    out |= {
        "net_cents": one("SELECT sum(net_cents) FROM fact_sales"),
        "refund_cents": one("SELECT coalesce(sum(refund_cents), 0) FROM fact_returns"),
    }
    out["months"] = [
        dict(zip(("month", "sales", "net_cents", "refund_cents"), row, strict=True))
        for row in connection.execute(months)
    ]
    out["top_customers"] = [{"customer_id": who, "net_cents": net} for who, net in connection.execute(top)]
    return out


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The complete outputs."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("iso", 1, _iso, deterministic=True)
    connection.create_function("pence", 1, _pence, deterministic=True)
    connection.executescript(TABLES)
    aliases = json.loads(_text(tree["input/catalog/aliases.json"]))
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO alias VALUES (?, ?, ?)",
        [(k, v, label) for k, g in aliases["labels"].items() for label, vs in g.items() for v in vs],
    )
    _catalogue(connection, tree)
    changed = {
        "segment": _tidy(connection, "dim_customer", "segment"),
        "category": _tidy(connection, "dim_product", "category"),
    }
    _load(connection, tree, {v: name for name, variants in aliases["headings"].items() for v in variants})
    connection.execute(RANKED)
    changed["channel"] = connection.execute(
        "SELECT count(*) FROM ranked JOIN alias ON kind = 'channel' AND variant = channel WHERE place = 1 AND joined"
    ).fetchone()[0]
    for statement in (SALES, RETURNS, DATES, AGGREGATE):
        connection.execute(statement)
    names = ("path", "rows_read", "duplicates_removed", "orphans_rejected", "recovered_from_journal", "rows_loaded")
    partitions = [dict(zip(names, row, strict=True)) for row in connection.execute(QUALITY)]
    current = {row[0] for row in connection.execute("SELECT path FROM part")}
    old = [path[6:] for path in sorted(tree) if path.startswith("input/sales/") and path not in current]
    summary = _summary(connection)
    connection.execute("COMMIT")
    quality = {"partitions": partitions, "labels_normalized": changed, "superseded_ignored": old}
    return {
        "output/warehouse.sqlite": connection.serialize(),
        "output/quality_report.json": json.dumps(quality).encode(),
        "output/summary.json": json.dumps(summary).encode(),
    }
