"""The filing packet as data, what a defect does to it, and what the reconstruction policy selects from it."""

from __future__ import annotations

from typing import Any

# (statement, line item, label in the filings, us-gaap concept, extension concept, period type)
ITEMS = (
    ("balance_sheet", "cash", "Cash and cash equivalents", "CashAndCashEquivalentsAtCarryingValue", "CashAndRestrictedCash", "instant"),
    ("balance_sheet", "accounts_receivable", "Accounts receivable, net", "AccountsReceivableNetCurrent", "TradeReceivables", "instant"),
    ("balance_sheet", "inventory", "Inventories", "InventoryNet", "InventoriesAndSupplies", "instant"),
    ("balance_sheet", "other_assets", "Other assets", "OtherAssets", "OtherAssetsIncludingGoodwill", "instant"),
    ("balance_sheet", "assets", "Total assets", "Assets", "AssetsConsolidated", "instant"),
    ("balance_sheet", "liabilities", "Total liabilities", "Liabilities", "LiabilitiesConsolidated", "instant"),
    ("balance_sheet", "equity", "Total equity", "StockholdersEquity", "EquityAttributableToHolders", "instant"),
    ("income_statement", "revenue", "Revenue", "Revenues", "NetSalesAndServices", "duration"),
    ("income_statement", "cost_of_revenue", "Cost of revenue", "CostOfRevenue", "CostOfSales", "duration"),
    ("income_statement", "operating_expense", "Operating expenses", "OperatingExpenses", "OperatingCosts", "duration"),
    ("income_statement", "net_income", "Net income", "NetIncomeLoss", "ProfitForTheYear", "duration"),
    ("cash_flow", "beginning_cash", "Cash at beginning of year", "CashBeginningOfPeriod", "OpeningCash", "duration"),
    ("cash_flow", "operating_cash_flow", "Net cash from operating activities", "NetCashProvidedByUsedInOperatingActivities", "CashFromOperations", "duration"),
    ("cash_flow", "investing_cash_flow", "Net cash from investing activities", "NetCashProvidedByUsedInInvestingActivities", "CashFromInvestments", "duration"),
    ("cash_flow", "financing_cash_flow", "Net cash from financing activities", "NetCashProvidedByUsedInFinancingActivities", "CashFromFinancing", "duration"),
    ("cash_flow", "ending_cash", "Cash at end of year", "CashEndOfPeriod", "ClosingCash", "duration"),
)  # fmt: skip
NAMES = [item[1] for item in ITEMS]
MILLION = 1_000_000


def accession(world: Any, year: int, number: int) -> str:
    return f"{world.cik}-{year % 100:02d}-{number:06d}"


def filings(world: Any) -> list[dict[str, Any]]:
    """Index entries, by year, then date: form, accession, document, filed, fiscal year, status."""
    out = []
    for year, original, amended, current in zip(world.years, world.filed, world.amended, world.current, strict=True):
        forms = [("8-K", current, "current-report", "furnished", 9)] if current else []
        forms += [("10-K", original, "form10-k", "original", 1)]
        forms += [("10-K/A", amended, "form10-k-a", "amendment_explicit_rows_only", 2)] if amended else []
        for form, filed, name, status, number in forms:
            out.append({
                "accession": accession(world, year, number), "form": form, "fiscal_year": year, "filed": filed,
                "document": f"filings/{year}/{name}.htm", "status": status,
            })  # fmt: skip
    return out


def original(world: Any, year: int, item: int) -> int:
    """What the first filing of the year said, in millions."""
    return {(y, i): v for y, i, v in world.restated}.get((year, item), value(world, year, item))


def value(world: Any, year: int, item: int) -> int:
    return world.values[world.years.index(year)][item]


def rows(world: Any, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The facts of a document, in order: id, section, item, context, unit, value in millions."""
    year, out = entry["fiscal_year"], []

    def add(name: str, section: str, item: int, context: str, number: int, unit: str = "USD") -> None:
        out.append({"id": name, "section": section, "item": item, "context": context, "unit": unit, "value": number})

    for item, (statement, *_) in enumerate(ITEMS):
        true, first = value(world, year, item), original(world, year, item)
        if entry["form"] == "10-K":
            add(f"fact-{year}-{item:03d}", statement, item, f"FY{year}", first)
            if year - 1 in world.years:
                add(
                    f"prior-{year}-{item:03d}",
                    statement,
                    item,
                    f"FY{year - 1}",
                    value(world, year - 1, item) + (year + item) % 3,
                )
            if item % 3 == year % 3:
                add(f"supplemental-{year}-{item:03d}", "supplemental", item, f"FY{year}", first + 7 + item)
                add(f"proforma-{year}-{item:03d}", "pro_forma", item, f"FY{year}_ProForma", first - 5 - item)
        elif entry["form"] == "10-K/A" and (year, item) in {(y, i) for y, i, _ in world.restated}:
            add(f"amended-fact-{year}-{item:03d}", statement, item, f"FY{year}", true)
        elif entry["form"] == "8-K" and item % 2 == year % 2:
            add(f"current-fact-{year}-{item:03d}", statement, item, f"Q3{year}", true * 3 // 4 + item)
            add(f"translated-{year}-{item:03d}", statement, item, f"FY{year}", true * 9 // 10, "EUR")
    return out


def facts(world: Any, item: int) -> dict[str, list[dict[str, Any]]]:
    """unit -> the feed's facts of one line item, by the filing's date."""
    usd, eur = [], []
    for entry in sorted(filings(world), key=lambda e: (e["filed"], e["accession"])):
        year, form = entry["fiscal_year"], entry["form"]
        base = {"accn": entry["accession"], "form": form, "fy": year, "filed": entry["filed"]}
        if form == "8-K":
            usd.append(
                {
                    **base,
                    "fp": "Q3",
                    "end": f"{year}-09-30",
                    "val": (value(world, year, item) * 3 // 4 + item) * MILLION,
                }
            )
            continue
        told = original(world, year, item) if form == "10-K" else value(world, year, item)
        if form == "10-K" and year - 1 in world.years:
            usd.append(
                {
                    **base,
                    "fp": "FY",
                    "end": f"{year - 1}-12-31",
                    "val": (value(world, year - 1, item) + (year + item) % 3) * MILLION,
                }
            )
        usd.append({**base, "fp": "FY", "end": f"{year}-12-31", "val": told * MILLION})
        if item % 4 == year % 4:
            eur.append({**base, "fp": "FY", "end": f"{year}-12-31", "val": told * 9 // 10 * MILLION})
    return {"USD": usd, **({"EUR": eur} if eur else {})}


def damaged(world: Any, defects: tuple[Any, ...]) -> tuple[dict[str, list[dict]], dict[str, int]]:
    """(concept -> its USD facts, fact id -> printed millions) after the defects."""
    feed = {f"us-gaap:{item[3]}": facts(world, i)["USD"] for i, item in enumerate(ITEMS)}
    printed = {row["id"]: row["value"] for entry in filings(world) for row in rows(world, entry)}
    for defect in defects:
        p = defect.params
        if defect.kind == "misstated_fact":
            sign = -1 if printed[p["id"]] < 0 else 1
            printed[p["id"]] = sign * int(p["text"].replace(",", "")) // p["per_million"]
        elif defect.kind == "alias_concept":
            feed[p["alias"]] = feed.pop(p["concept"])
        elif defect.kind == "missing_fact":
            feed[p["concept"]] = [f for f in feed[p["concept"]] if f["end"] != p["end"]]
    return feed, printed


def select(world: Any, defects: tuple[Any, ...]) -> list[dict[str, Any]]:
    """What is known of each (period, line item), latest period first."""
    feed, printed = damaged(world, defects)
    out = []
    for year in world.years:
        forms = {e["form"]: e for e in filings(world) if e["fiscal_year"] == year}
        for i, (statement, name, label, concept, extension, _) in enumerate(ITEMS):
            known = {
                "period": str(year),
                "statement": statement,
                "line_item": name,
                "label": label,
                "canonical": f"us-gaap:{concept}",
            }
            known |= {"structured": None, "amended": None, "original": printed[f"fact-{year}-{i:03d}"]}
            best = None
            for taxonomy in (f"us-gaap:{concept}", f"{world.prefix}:{extension}"):
                for at, fact in enumerate(feed.get(taxonomy, [])):
                    fits = fact["fp"] == "FY" and fact["fy"] == year and fact["end"] == f"{year}-12-31"
                    if fits and (best is None or (fact["filed"], fact["accn"]) > best[0]):
                        best = (fact["filed"], fact["accn"]), taxonomy, at, fact["val"] // MILLION
            row = {"document": forms["10-K"]["document"], "form": "10-K", "fragment": f"#fact-{year}-{i:03d}"}
            if f"amended-fact-{year}-{i:03d}" in printed:
                known["amended"] = printed[f"amended-fact-{year}-{i:03d}"]
                row = {
                    "document": forms["10-K/A"]["document"],
                    "form": "10-K/A",
                    "fragment": f"#amended-fact-{year}-{i:03d}",
                }
            if best:
                known |= {
                    "structured": best[3],
                    "concept": best[1],
                    "pointer": f"#/facts/{best[1].replace(':', '/')}/units/USD/{best[2]}",
                }
            out.append({**known, "row": row})
    return out
