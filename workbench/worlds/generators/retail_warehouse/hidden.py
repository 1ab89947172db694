"""Hidden suite: what each component must notice, what it must forgive, and outputs that only look right."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.retail_warehouse import contract
from workbench.worlds.generators.retail_warehouse.world import truth as sealed
from workbench.worlds.trees import edit_json

BASE = "output/warehouse.sqlite"


def _sql(tree: Mapping[str, bytes], script: str) -> dict[str, bytes]:
    """The tree with the warehouse changed by a script."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(tree[BASE])
    connection.executescript(script)
    out = {**tree, BASE: connection.serialize()}
    connection.close()
    return out


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    first = "WHERE rowid = (SELECT min(rowid) FROM"
    return {
        "schema": _sql(tree, "ALTER TABLE dim_store ADD COLUMN note TEXT"),
        "dimensions": _sql(tree, f"UPDATE dim_customer SET segment = 'B2C' {first} dim_customer)"),
        "facts": _sql(tree, f"DELETE FROM fact_sales {first} fact_sales)"),
        "aggregates": _sql(tree, f"UPDATE agg_month_region_category SET net_cents = net_cents + 1 {first} agg_month_region_category)"),
        "quality_report": edit_json(tree, "output/quality_report.json", lambda v: v["partitions"][0].update(rows_read=v["partitions"][0]["rows_read"] + 1)),
        "summary": edit_json(tree, "output/summary.json", lambda v: v.update(units=v["units"] + 1)),
    }  # fmt: skip


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    shuffled = "CREATE TABLE t AS SELECT * FROM fact_returns ORDER BY return_id DESC; DELETE FROM fact_returns; INSERT INTO fact_returns SELECT * FROM t; DROP TABLE t"
    swapped = json.loads(tree["output/summary.json"])
    return {
        "vacuum and page size": _sql(tree, "PRAGMA page_size = 1024; VACUUM"),
        "rows in another order": _sql(tree, shuffled),
        "an index and a view more": _sql(tree, "CREATE INDEX by_date ON fact_sales(date); CREATE VIEW v AS SELECT * FROM fact_sales"),
        "json keys and blanks": {**tree, "output/summary.json": json.dumps(dict(reversed(swapped.items())), indent=4).encode()},
    }  # fmt: skip


def _complete(world: Any, truth: Mapping[str, Any], tables: Mapping[str, list]) -> dict[str, bytes]:
    """Outputs in the public form, from rows that need not be right."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for name, columns in contract.TABLES.items():
        parts = [f"{c} {kind}" for c, kind in columns.items()] + [f"PRIMARY KEY ({','.join(truth['keys'][name])})"]
        parts += [f"FOREIGN KEY ({c}) REFERENCES {target}" for c, target in truth["links"].get(name, [])]
        connection.execute(f"CREATE TABLE {name} ({','.join(parts)})")
        connection.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(columns))})", tables[name])
    sidecars = {
        f"output/{p}.json": json.dumps(truth[k]).encode()
        for p, k in (("quality_report", "quality"), ("summary", "summary"))
    }
    return {BASE: connection.serialize(), **sidecars}


def stale(world: Any, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    truth = sealed(world, defects)
    tables = truth["tables"]
    last = world.months[-1]
    truncated = [[*r[:9], r[6] * r[7] * (100 - r[8]) // 100] for r in tables["fact_sales"]]
    if truncated == tables["fact_sales"]:
        truncated[0][9] += 1
    early = {**tables, "fact_sales": [r for r in tables["fact_sales"] if r[1][:7] != last]}
    untouched = {
        **truth,
        "quality": {**truth["quality"], "labels_normalized": {"segment": -1, "category": 0, "channel": 0}},
    }
    return {
        "half cents cut off": _complete(world, truth, {**tables, "fact_sales": truncated}),
        "last month not loaded": _complete(world, truth, early),
        "report denies the repairs": _complete(world, untouched, tables),
    }
