"""Reference solver: one pass over plain dictionaries, in the order of the workflow."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from workbench.worlds.formats import sqlite_file

FIELDS = (
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
SCHEMA = """
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
"""


def decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def records(data: bytes) -> list[dict[str, str]]:
    """Rows of a table whose delimiter is the commonest in its header, or of a JSON array."""
    source = decode(data)
    if source.lstrip().startswith("["):
        return json.loads(source)
    header = source.split("\n", 1)[0]
    delimiter = max(",\t;|", key=header.count)
    rows = [
        [cell.strip() for cell in row]
        for row in csv.reader(io.StringIO(source, newline=""), delimiter=delimiter)
        if row
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def day(text: str) -> str:
    """ISO, or day first with slashes or dots."""
    for sign in "/.":
        if sign in text:
            d, m, y = text.split(sign)
            return f"{y}-{int(m):02d}-{int(d):02d}"
    return text


def cents(text: str) -> int:
    whole, part = text.lstrip("$ ").replace(",", "").split(".")
    return int(whole) * 100 + int(part)


def half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


class Canon:
    """Labels and headings to their canonical spelling; counts the labels it had to change."""

    def __init__(self, aliases: dict):
        self.labels = {
            kind: {a: label for label, names in group.items() for a in names}
            for kind, group in aliases["labels"].items()
        }
        self.headings = {a: heading for heading, names in aliases["headings"].items() for a in names}
        self.changed = {"segment": 0, "category": 0, "channel": 0}

    def label(self, kind: str, value: str) -> str:
        found = self.labels[kind].get(value, value)
        self.changed[kind] += found != value
        return found


def _sale(row: dict[str, str], canon: Canon) -> tuple:
    quantity, price, discount = int(row["quantity"]), cents(row["unit_price"]), int(row["discount_percent"])
    net = half_up(quantity * price * (100 - discount), 100)
    channel = canon.label("channel", row["channel"])
    return (
        row["transaction_id"],
        day(row["sold_on"]),
        row["customer_id"],
        row["product_id"],
        row["store_id"],
        channel,
        quantity,
        price,
        discount,
        net,
    )


def _partition(
    rows: list[dict[str, str]], journal: list[dict[str, str]], known: dict[str, set[str]], canon: Canon
) -> tuple[list[tuple], dict[str, int]]:
    seen: dict[str, tuple] = {}
    count = dict.fromkeys(("duplicates_removed", "orphans_rejected", "recovered_from_journal"), 0)
    for raw in rows:
        row = {canon.headings.get(k, k): v for k, v in raw.items()}
        if row["transaction_id"] in seen:
            count["duplicates_removed"] += 1
        elif any(row[column] not in ids for column, ids in known.items()):
            count["orphans_rejected"] += 1
        else:
            seen[row["transaction_id"]] = _sale(row, canon)
    for row in journal:
        if row["transaction_id"] not in seen:
            seen[row["transaction_id"]] = _sale(row, canon)
            count["recovered_from_journal"] += 1
    return sorted(seen.values()), {"rows_read": len(rows), **count, "rows_loaded": len(seen)}


def _dimensions(tree: Mapping[str, bytes], canon: Canon) -> dict[str, list[tuple]]:
    customers = [
        (
            r["customer_id"],
            r["name"],
            r["email"],
            canon.label("segment", r["segment"]),
            r["city"],
            r["region"],
            day(r["signup_date"]),
        )
        for r in records(tree["input/catalog/customers.csv"])
    ]
    products = [
        (r["product_id"], r["name"], canon.label("category", r["category"]), cents(r["list_price"]))
        for r in records(tree["input/catalog/products.tsv"])
    ]
    stores = [(r["store_id"], r["name"], r["region"]) for r in records(tree["input/catalog/stores.json"])]
    return {"dim_customer": customers, "dim_product": products, "dim_store": stores}


def _dates(days: set[str]) -> list[tuple]:
    out = []
    for text in sorted(days):
        date = datetime.date.fromisoformat(text)
        out.append((text, text[:7], (date.month + 2) // 3, date.isoweekday()))
    return out


def _aggregate(tables: dict[str, list[tuple]]) -> list[tuple]:
    region, category = {r[0]: r[2] for r in tables["dim_store"]}, {r[0]: r[2] for r in tables["dim_product"]}
    refunds: dict[str, int] = defaultdict(int)
    for row in tables["fact_returns"]:
        refunds[row[1]] += row[4]
    sums: dict[tuple, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in tables["fact_sales"]:
        cell = sums[row[1][:7], region[row[4]], category[row[3]]]
        for i, value in enumerate((1, row[6], row[9], refunds[row[0]])):
            cell[i] += value
    return [(*key, *values) for key, values in sorted(sums.items())]


def _summary(tables: dict[str, list[tuple]]) -> dict:
    sales, returns, agg = tables["fact_sales"], tables["fact_returns"], tables["agg_month_region_category"]
    months: dict[str, list[int]] = {}
    for month, _, _, n, _, net, refund in agg:
        cell = months.setdefault(month, [0, 0, 0])
        cell[:] = [cell[0] + n, cell[1] + net, cell[2] + refund]
    spent: dict[str, int] = defaultdict(int)
    for row in sales:
        spent[row[2]] += row[9]
    top = sorted(spent.items(), key=lambda item: (-item[1], item[0]))[:5]
    return {
        "customers": len(tables["dim_customer"]), "products": len(tables["dim_product"]), "stores": len(tables["dim_store"]), "sales": len(sales),
        "units": sum(r[6] for r in sales), "net_cents": sum(r[9] for r in sales), "refund_cents": sum(r[4] for r in returns),
        "months": [{"month": m, "sales": c[0], "net_cents": c[1], "refund_cents": c[2]} for m, c in sorted(months.items())],
        "top_customers": [{"customer_id": c, "net_cents": n} for c, n in top],
    }  # fmt: skip


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The outputs after every stage: the warehouse fills table by table, the sidecars come last."""
    manifest = json.loads(decode(tree["input/manifest.json"]))
    canon = Canon(json.loads(decode(tree["input/catalog/aliases.json"])))
    journal = [
        json.loads(line) for line in decode(tree["input/journal/till_journal.jsonl"]).splitlines() if line.strip()
    ]
    tables: dict[str, list[tuple]] = {}

    def state() -> dict[str, bytes]:
        return {"output/warehouse.sqlite": sqlite_file.write(SCHEMA, tables)}

    yield "profile-sources", state()
    tables |= _dimensions(tree, canon)
    yield "normalize-dimensions", state()
    known = {f"{name}_id": {row[0] for row in tables[f"dim_{name}"]} for name in ("customer", "product", "store")}
    sales, partitions = [], []
    for entry in sorted(manifest, key=lambda e: e["path"]):
        lost = [row for row in journal if row["sold_on"][:7] == entry["month"]]
        rows, counts = _partition(records(tree["input/" + entry["path"]]), lost, known, canon)
        sales += rows
        partitions.append({"path": entry["path"], **counts})
    tables["fact_sales"] = sorted(sales)
    yield "reconcile-sales", state()
    sold = {row[0]: row for row in sales}
    tables["fact_returns"] = [
        (r["return_id"], r["transaction_id"], day(r["returned_on"]), int(r["quantity"]), half_up(sold[r["transaction_id"]][9] * int(r["quantity"]), sold[r["transaction_id"]][6]))
        for r in records(tree["input/returns.csv"])
    ]  # fmt: skip
    tables["dim_date"] = _dates({row[1] for row in sales} | {row[2] for row in tables["fact_returns"]})
    yield "load-facts", state()
    tables["agg_month_region_category"] = _aggregate(tables)
    yield "aggregate-validate", state()
    quality = {
        "partitions": partitions, "labels_normalized": canon.changed,
        "superseded_ignored": sorted({p.removeprefix("input/") for p in tree if p.startswith("input/sales/")} - {e["path"] for e in manifest}),
    }  # fmt: skip
    done = {
        "output/quality_report.json": json.dumps(quality, indent=1).encode(),
        "output/summary.json": json.dumps(_summary(tables), indent=1).encode(),
    }
    yield "package-sidecars", state() | done
