"""One company whose sources were made to disagree by hand, and what the policy says of each disagreement."""

from __future__ import annotations

import csv
import io
import json

import pytest

from workbench.worlds import Defect, WorldError
from workbench.worlds.corruption import apply_all, invert_all
from workbench.worlds.generators.financial_statements import alternative, reference, world

# cash, receivable, inventory, other, assets, liabilities, equity, revenue, cost, expense, income, opening, operating, investing, financing, closing
THIS = (230, 100, 50, 620, 1000, 400, 600, 900, 400, 300, 200, 200, 150, -90, -30, 230)
LAST = (200, 90, 40, 570, 900, 380, 520, 800, 380, 280, 140, 180, 120, -70, -30, 200)
WORLD = world.World(
    cik="1234567890", company="Alder Dune Foods plc", prefix="adu", years=(2024, 2023), values=(THIS, LAST), filed=("2025-02-11", "2024-02-12"),
    amended=("2025-04-20", ""), current=("2024-10-15", ""), scales=(3, 6), restated=((2024, 0, 223),),
)  # fmt: skip
FEED = "input/companyfacts.json"
DEFECTS = (
    Defect(
        "misstated_fact", "input/filings/2023/form10-k.htm", {"id": "fact-2023-001", "text": "93", "per_million": 1}
    ),
    Defect(
        "misstated_fact",
        "input/filings/2024/form10-k-a.htm",
        {"id": "amended-fact-2024-000", "text": "227,000", "per_million": 1000},
    ),
    Defect("alias_concept", FEED, {"concept": "us-gaap:Revenues", "alias": "adu:NetSalesAndServices"}),
    Defect(
        "missing_fact", FEED, {"concept": "us-gaap:NetCashProvidedByUsedInInvestingActivities", "end": "2023-12-31"}
    ),
)
SOLVERS = [lambda t: list(reference.solve(t))[-1][1], alternative.solve]


@pytest.mark.parametrize("solve", SOLVERS)
def test_each_disagreement_by_hand(solve):
    world.check(WORLD)
    clean = world.render(WORLD)
    tree, sealed = apply_all(clean, DEFECTS)
    assert invert_all(tree, sealed) == clean
    out = solve(tree)
    exceptions = json.loads(out["output/exceptions.json"])
    assert [(e["kind"], e["period"], e["line_item"], e["selected_value"]) for e in exceptions] == [
        ("amendment_restatement", "2024", "cash", 230),
        ("cross_source_conflict", "2024", "cash", 230),
        ("taxonomy_alias", "2024", "revenue", 900),
        ("cross_source_conflict", "2023", "accounts_receivable", 90),
        ("taxonomy_alias", "2023", "revenue", 800),
        ("missing_structured_fact", "2023", "investing_cash_flow", -70),
    ]
    assert (exceptions[0]["original_value"], exceptions[0]["amended_value"]) == (223, 227)
    evidence = {
        (r["period"], r["line_item"]): r for r in csv.DictReader(io.StringIO(out["output/evidence.csv"].decode()))
    }
    # The feed's facts by date: 2023 annual, 2024 third quarter, 2023 as a comparative, 2024 original, 2024 amended.
    assert evidence["2024", "cash"]["locator"] == "#/facts/us-gaap/CashAndCashEquivalentsAtCarryingValue/units/USD/4"
    assert evidence["2024", "revenue"]["locator"] == "#/facts/adu/NetSalesAndServices/units/USD/4"
    fallback = evidence["2023", "investing_cash_flow"]
    assert (fallback["selected_value"], fallback["source_file"], fallback["locator"]) == (
        "-70",
        "filings/2023/form10-k.htm",
        "#fact-2023-013",
    )
    assert fallback["authority_basis"] == "original_filing_row"
    assert json.loads(out["output/financial_statements.json"])["periods"][0]["balance_sheet"]["cash"] == 230


def test_what_does_not_balance_is_no_world():
    broken = (*THIS[:4], 1001, *THIS[5:])
    with pytest.raises(WorldError, match="2024 don't balance"):
        world.check(world.World(**{**WORLD.__dict__, "values": (broken, LAST)}))


def test_a_fact_that_is_not_there_cannot_be_misstated():
    with pytest.raises(WorldError, match="0 facts with the id"):
        apply_all(
            world.render(WORLD),
            [Defect("misstated_fact", "input/filings/2023/form10-k.htm", {"id": "fact-1", "text": "1"})],
        )
