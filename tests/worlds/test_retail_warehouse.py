"""Three sales worked out by hand, both solvers against them."""

from __future__ import annotations

import json

import pytest

from workbench.worlds.formats import sqlite_file
from workbench.worlds.generators.retail_warehouse import alternative, reference

HEAD = "transaction_id,sold_on,customer_id,product_id,store_id,channel,quantity,unit_price,discount_percent\n"
TREE = {
    "input/manifest.json": b'[{"path": "sales/2024-02.csv", "month": "2024-02"}]',
    "input/catalog/customers.csv": b"customer_id,name,email,segment,city,region,signup_date\nC1,Ada B,a@b.example,SMB,Dale,north,2020-01-02\n",
    "input/catalog/products.tsv": b"product_id\tname\tcategory\tlist_price\nP1\tkettle\tkitchen\t10.05\n",
    "input/catalog/stores.json": b'[{"store_id": "S1", "name": "Dale Arcade", "region": "south"}]',
    "input/catalog/aliases.json": json.dumps(
        {
            "labels": {"segment": {"small_business": ["SMB"]}, "category": {}, "channel": {"web": ["www"]}},
            "headings": {},
        }
    ).encode(),
    "input/returns.csv": b"return_id,transaction_id,returned_on,quantity\nR1,T1,03/03/2024,1\n",
    "input/journal/till_journal.jsonl": json.dumps(
        dict(zip(HEAD.strip().split(","), "T9 2024-02-28 C1 P1 S1 store 1 10.00 0".split(), strict=True))
    ).encode(),
    "input/sales/resend_2024-02.csv": b"old",
    # T1: 3 * 1005 * 95 % = 2864.25 -> 2864; T2: 1 * 1010 * 95 % = 959.5 -> 960; T1 again; T3 is nobody's.
    "input/sales/2024-02.csv": (
        HEAD
        + "T1,01.02.2024,C1,P1,S1,www,3,$10.05,5\nT2,2024-02-02,C1,P1,S1,store,1,10.10,5\n"
        + "T1,01.02.2024,C1,P1,S1,www,3,$10.05,5\nT3,2024-02-02,C7,P1,S1,store,1,10.10,5\n"
    ).encode(),
}


@pytest.mark.parametrize("solve", [lambda t: list(reference.solve(t))[-1][1], alternative.solve])
def test_three_sales_by_hand(solve):
    out = solve(TREE)
    base = sqlite_file.read(out["output/warehouse.sqlite"])
    assert sorted(row[-1] for row in base["fact_sales"].rows) == [960, 1000, 2864]
    assert base["fact_returns"].rows == [("R1", "T1", "2024-03-03", 1, 955)]  # 2864 / 3 = 954.67
    assert ("2024-02-28", "2024-02", 1, 3) in base["dim_date"].rows
    assert base["agg_month_region_category"].rows == [("2024-02", "south", "kitchen", 3, 5, 4824, 955)]
    assert base["dim_customer"].rows[0][3] == "small_business"
    quality = json.loads(out["output/quality_report.json"])
    assert list(quality["partitions"][0].values()) == ["sales/2024-02.csv", 4, 1, 1, 1, 3]
    assert quality["labels_normalized"] == {"segment": 1, "category": 0, "channel": 1}
    assert quality["superseded_ignored"] == ["sales/resend_2024-02.csv"]
    assert json.loads(out["output/summary.json"])["top_customers"] == [{"customer_id": "C1", "net_cents": 4824}]
