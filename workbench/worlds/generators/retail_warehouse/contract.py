"""The public contract of the retail warehouse, its defect plan and its sealed answers."""

from __future__ import annotations

import datetime
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec
from workbench.worlds.draw import Draw
from workbench.worlds.generators.retail_warehouse.words import HEADINGS, LABELS

TABLES = {
    "dim_customer": {"customer_id": "TEXT", "name": "TEXT", "email": "TEXT", "segment": "TEXT", "city": "TEXT", "region": "TEXT", "signup_date": "TEXT"},
    "dim_product": {"product_id": "TEXT", "name": "TEXT", "category": "TEXT", "list_price_cents": "INTEGER"},
    "dim_store": {"store_id": "TEXT", "name": "TEXT", "region": "TEXT"},
    "dim_date": {"date": "TEXT", "month": "TEXT", "quarter": "INTEGER", "iso_weekday": "INTEGER"},
    "fact_sales": {
        "transaction_id": "TEXT", "date": "TEXT", "customer_id": "TEXT", "product_id": "TEXT", "store_id": "TEXT", "channel": "TEXT",
        "quantity": "INTEGER", "unit_price_cents": "INTEGER", "discount_percent": "INTEGER", "net_cents": "INTEGER",
    },
    "fact_returns": {"return_id": "TEXT", "transaction_id": "TEXT", "date": "TEXT", "quantity": "INTEGER", "refund_cents": "INTEGER"},
    "agg_month_region_category": {
        "month": "TEXT", "region": "TEXT", "category": "TEXT", "sales": "INTEGER", "units": "INTEGER", "net_cents": "INTEGER", "refund_cents": "INTEGER",
    },
}  # fmt: skip
KEYS = {
    "dim_customer": ["customer_id"],
    "dim_product": ["product_id"],
    "dim_store": ["store_id"],
    "dim_date": ["date"],
    "fact_sales": ["transaction_id"],
    "fact_returns": ["return_id"],
    "agg_month_region_category": ["month", "region", "category"],
}
LINKS = {
    "fact_sales": [
        ["customer_id", "dim_customer"],
        ["date", "dim_date"],
        ["product_id", "dim_product"],
        ["store_id", "dim_store"],
    ],
    "fact_returns": [["date", "dim_date"], ["transaction_id", "fact_sales"]],
}
PARTITION = {
    "path": "string", "rows_read": "integer", "duplicates_removed": "integer", "orphans_rejected": "integer",
    "recovered_from_journal": "integer", "rows_loaded": "integer",
}  # fmt: skip
SPEC = Spec(
    name="retail_warehouse",
    revision=1,
    domain="9.2",
    title="Retail warehouse recovery",
    summary="Build a clean star-schema SQLite warehouse from six months of messy retail partitions, with two truthful sidecars.",
    outputs=(
        Output("output/warehouse.sqlite", "sqlite", "the star schema; dates YYYY-MM-DD, months YYYY-MM, money in whole cents", TABLES),
        Output(
            "output/quality_report.json", "json", "what was found and repaired; partitions by path, counts of labels rewritten",
            {"partitions": [PARTITION], "labels_normalized": {"segment": "integer", "category": "integer", "channel": "integer"}, "superseded_ignored": ["string"]},
        ),
        Output(
            "output/summary.json", "json", "totals of the loaded warehouse",
            {
                "customers": "integer", "products": "integer", "stores": "integer", "sales": "integer", "units": "integer", "net_cents": "integer",
                "refund_cents": "integer", "months": [{"month": "string", "sales": "integer", "net_cents": "integer", "refund_cents": "integer"}],
                "top_customers": [{"customer_id": "string", "net_cents": "integer"}],
            },
        ),
    ),
    workflow_stages=("profile", "normalize", "reconcile", "load", "aggregate", "report"),
    tools=("python3", "sqlite3"),
    artifact_roles=("records", "reference-table", "journal", "manifest", "dictionary"),
    relation_types=("foreign-key", "partition", "precedence", "synonym"),
    source_kind="retail operations",
)  # fmt: skip


def plan(world: Any, draw: Draw, paths: list[str]) -> tuple[Defect, ...]:
    """Two to seven defects; repeated and lost sales nearly always among them. Only delimited partitions are damaged, JSON ones stay clean."""
    open_paths = [p for p in paths if not p.endswith(".json")]
    month = {p: [r for r in world.sales if r[1][:7] == p.split("/")[-1][:7]] for p in open_paths}

    def some(path: str, share: int, rows: list | None = None) -> list[str]:
        rows = month[path] if rows is None else rows
        return sorted(row[0] for row in draw.sample(rows, max(2, len(rows) // share)))

    spots = {
        name: draw.choice(open_paths)
        for name in ("channel", "date", "price", "lost", "twice", "orphan", "old", "heading", "bytes")
    }
    late = [r for r in month[spots["lost"]] if int(r[1][8:]) >= 24]
    lost = some(spots["lost"], 2, late) if len(late) > 2 else []
    again = sorted(set(some(spots["twice"], 9)) - set(lost))
    defects = {
        "segment": Defect("category_drift", "input/catalog/customers.csv", {"column": "segment", "rows": sorted(draw.sample(range(len(world.customers)), len(world.customers) // 4)), "mapping": {k: list(v) for k, v in LABELS["segment"].items()}}, "segments spelled by several teams"),
        "category": Defect("category_drift", "input/catalog/products.tsv", {"column": "category", "rows": sorted(draw.sample(range(len(world.products)), len(world.products) // 3)), "mapping": {k: list(v) for k, v in LABELS["category"].items()}}, "categories spelled by several teams"),
        "channel": Defect("category_drift", spots["channel"], {"column": "channel", "where": {"transaction_id": some(spots["channel"], 3)}, "mapping": {k: list(v) for k, v in LABELS["channel"].items()}}, "channels spelled by several tills"),
        "blank": Defect("whitespace_noise", "input/catalog/customers.csv", {"column": "email", "rows": sorted(draw.sample(range(len(world.customers)), len(world.customers) // 5)), "after": "  "}, "blanks round addresses"),
        "date": Defect("date_format_drift", spots["date"], {"column": "sold_on", "from": "%Y-%m-%d", "to": draw.choice(("%d/%m/%Y", "%d.%m.%Y")), "where": {"transaction_id": some(spots["date"], 2)}}, "day-first dates"),
        "price": Defect("numeric_format_drift", spots["price"], {"column": "unit_price", "style": "currency"}, "prices written for people"),
        "lost": Defect("missing_records", spots["lost"], {"where": {"transaction_id": lost}}, "sales lost in transfer, still in the journal"),
        "twice": Defect("duplicate_records", spots["twice"], {"where": {"transaction_id": again}, "places": sorted(draw.integer(0, len(month[spots["twice"]]) // 2) for _ in again)}, "sales delivered twice"),
        "orphan": Defect("orphan_records", spots["orphan"], {"records": [_orphan(row, draw) for row in draw.sample(month[spots["orphan"]], 2 + len(month[spots["orphan"]]) // 60)]}, "sales of nobody the catalogue knows"),
        "old": Defect("stale_copy", spots["old"], {"copy": spots["old"].replace("/sales/", "/sales/resend_"), "drop": list(range(1, 6)), "edits": [[0, "quantity", "97"]]}, "an earlier delivery left beside the fresh one"),
        "heading": Defect("schema_drift", spots["heading"], {"rename": {k: draw.choice(v) for k, v in HEADINGS.items()}, "order": draw.shuffled(list(HEADINGS))}, "columns renamed and moved"),
        "bytes": Defect("encoding_drift", spots["bytes"], {"encoding": "utf-16"}) if draw.chance(0.5) else Defect("delimiter_drift", spots["bytes"], {"to": ";"}),
    }  # fmt: skip
    if not lost:
        del defects["lost"]
    first = draw.sample([k for k in ("twice", "lost", "orphan") if k in defects], 2)
    chosen = {*first, *draw.sample([k for k in defects if k not in first], draw.integer(0, 5))}
    return tuple(defect for name, defect in defects.items() if name in chosen)


def _orphan(row: tuple, draw: Draw) -> dict[str, str]:
    fields = [row[0] + "X", *map(str, row[1:7]), f"{row[7] // 100}.{row[7] % 100:02d}", str(row[8])]
    at = draw.integer(2, 4)
    fields[at] = fields[at][:-2] + "ZZ"
    return dict(zip(HEADINGS, fields, strict=True))


def _half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def tables(world: Any) -> dict[str, list[list]]:
    """The rows of every table of the warehouse."""
    sales = [[*row, _half_up(row[6] * row[7] * (100 - row[8]), 100)] for row in world.sales]
    sold, store, product = (
        {row[0]: row for row in sales},
        {r[0]: r for r in world.stores},
        {r[0]: r for r in world.products},
    )
    returns = [[*row, _half_up(sold[row[1]][9] * row[3], sold[row[1]][6])] for row in world.returns]
    cells: dict[tuple[str, str, str], list[int]] = {}
    refunds: dict[str, int] = {}
    for row in returns:
        refunds[row[1]] = refunds.get(row[1], 0) + row[4]
    for row in sales:
        cell = cells.setdefault((row[1][:7], store[row[4]][2], product[row[3]][2]), [0, 0, 0, 0])
        cell[:] = [cell[0] + 1, cell[1] + row[6], cell[2] + row[9], cell[3] + refunds.get(row[0], 0)]
    days = sorted({row[1] for row in sales} | {row[2] for row in returns})
    return {
        "dim_customer": [list(r) for r in world.customers], "dim_product": [list(r) for r in world.products], "dim_store": [list(r) for r in world.stores],
        "dim_date": [[d, d[:7], (int(d[5:7]) + 2) // 3, datetime.date.fromisoformat(d).isoweekday()] for d in days],
        "fact_sales": sales, "fact_returns": returns, "agg_month_region_category": [[*k, *v] for k, v in sorted(cells.items())],
    }  # fmt: skip


def _quality(world: Any, defects: tuple[Defect, ...], paths: list[str]) -> dict[str, Any]:
    found = {(d.kind, d.path): d.params for d in defects}
    lines, lost_ids = [], set()
    for path in sorted(paths):
        lost = found.get(("missing_records", path), {}).get("where", {}).get("transaction_id", [])
        twice = found.get(("duplicate_records", path), {}).get("where", {}).get("transaction_id", [])
        orphans = found.get(("orphan_records", path), {}).get("records", [])
        loaded = sum(row[1][:7] == path.split("/")[-1][:7] for row in world.sales)
        read = loaded - len(lost) + len(twice) + len(orphans)
        lines.append(
            dict(
                zip(
                    PARTITION,
                    (path.removeprefix("input/"), read, len(twice), len(orphans), len(lost), loaded),
                    strict=True,
                )
            )
        )
        lost_ids |= set(lost)
    labels = {"segment": 0, "category": 0, "channel": 0}
    for defect in defects:
        if defect.kind == "category_drift":
            chosen = defect.params.get("rows") or [
                i for i in defect.params["where"]["transaction_id"] if i not in lost_ids
            ]
            labels[defect.params["column"]] += len(chosen)
    old = [d.params["copy"].removeprefix("input/") for d in defects if d.kind == "stale_copy"]
    return {"partitions": lines, "labels_normalized": labels, "superseded_ignored": sorted(old)}


def _summary(rows: dict[str, list[list]]) -> dict[str, Any]:
    sales, returns = rows["fact_sales"], rows["fact_returns"]
    spent: dict[str, int] = {}
    for row in sales:
        spent[row[2]] = spent.get(row[2], 0) + row[9]
    months = []
    for month in sorted({row[0] for row in rows["agg_month_region_category"]}):
        part = [r for r in rows["agg_month_region_category"] if r[0] == month]
        months.append(
            {
                "month": month,
                "sales": sum(r[3] for r in part),
                "net_cents": sum(r[5] for r in part),
                "refund_cents": sum(r[6] for r in part),
            }
        )
    return {
        "customers": len(rows["dim_customer"]), "products": len(rows["dim_product"]), "stores": len(rows["dim_store"]), "sales": len(sales),
        "units": sum(r[6] for r in sales), "net_cents": sum(r[9] for r in sales), "refund_cents": sum(r[4] for r in returns), "months": months,
        "top_customers": [{"customer_id": k, "net_cents": v} for k, v in sorted(spent.items(), key=lambda p: (-p[1], p[0]))[:5]],
    }  # fmt: skip


def truth(world: Any, defects: tuple[Defect, ...], paths: list[str]) -> dict[str, Any]:
    rows = tables(world)
    return {
        "columns": {k: dict(v) for k, v in TABLES.items()},
        "keys": KEYS,
        "links": LINKS,
        "tables": rows,
        "quality": _quality(world, defects, paths),
        "summary": _summary(rows),
    }


def prompt(world: Any, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="Build a clean star-schema SQLite warehouse from six months of retail data that reached us in a poor state, and write two sidecars that tell the truth about what was repaired and what was loaded.",
        inputs={
            "input/manifest.json": "the six current sales partitions",
            "input/sales/": "one partition of sales a month, CSV, TSV or JSON; currency amounts with two decimals",
            "input/catalog/": "customers, products and stores, and aliases.json: canonical labels and headings with their known variants",
            "input/returns.csv": "goods that came back",
            "input/journal/till_journal.jsonl": "the tills' own record of the last days of every month, always right",
        },
        requirements=(
            "Load dim_customer, dim_product and dim_store from the catalogue, dim_date with one row for every date on which something was sold or returned (quarter 1-4, iso_weekday 1 = Monday).",
            "Load fact_sales with every genuine sale. net_cents = quantity * unit_price_cents * (100 - discount_percent) / 100, half a cent rounded up.",
            "Load fact_returns; refund_cents = net_cents of the sale * returned quantity / sold quantity, half a cent rounded up.",
            "Load agg_month_region_category with one row for each combination that has sales: month of the sale, region of the store, category of the product; sales counts transactions, refund_cents adds up the refunds of these sales.",
            "The first column of each table is its PRIMARY KEY; of the aggregate the first three together. Declare foreign keys: fact_sales date, customer_id, product_id, store_id to their dimensions; fact_returns transaction_id to fact_sales and date to dim_date. No NULL anywhere.",
            "quality_report.json: partitions, sorted by path (relative to input/); rows_read are the rows in the file as delivered, rows_loaded those in fact_sales from this month. labels_normalized counts, for segment and category, catalogue rows, and for channel, loaded sales read from partitions, whose label was a variant. superseded_ignored: sorted paths, relative to input/.",
            "summary.json: totals over the warehouse; units are sold pieces; months ascending, by month of the sale (its refunds included); top_customers: the five with the highest net_cents, ties by customer_id.",
        ),
        authority=(
            "Only partitions in the manifest count. Any other file in input/sales/ is a superseded delivery: ignore and list it.",
            "Within a partition, of sales with the same transaction_id the first one counts; the others are duplicates.",
            "A sale whose customer, product or store is not in the catalogue is an orphan: reject it.",
            "A sale in the journal, but not in the partition of its month, was lost in transfer: load it from the journal.",
            "Variants of labels and headings become the canonical ones of aliases.json. Columns may stand in any order, separated by another sign, in UTF-8 or UTF-16. Blanks around values mean nothing.",
            "Dates are YYYY-MM-DD, or day first when separated by slashes or dots. Amounts may carry a currency sign and commas between thousands.",
        ),
    )  # fmt: skip
