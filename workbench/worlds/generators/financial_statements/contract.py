"""The public contract of the financial statements, their defect plan and sealed answers."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec
from workbench.worlds.draw import Draw
from workbench.worlds.generators.financial_statements import model

SECTIONS = ("balance_sheet", "income_statement", "cash_flow")
HEADINGS = {
    "balance_sheet": "Consolidated balance sheet", "income_statement": "Consolidated statement of income", "cash_flow": "Consolidated statement of cash flows",
    "supplemental": "Supplemental data (unaudited)", "pro_forma": "Pro forma information",
}  # fmt: skip
EVIDENCE = (
    "period",
    "statement",
    "line_item",
    "selected_value",
    "concept",
    "source_file",
    "locator",
    "citation",
    "authority_basis",
)
FACTS = {"period": "string", "line_item": "string", "value": "integer", "concept": "string", "locator": "string"}
ROWS = {"period": "string", "line_item": "string", "form": "string", "value": "integer", "locator": "string"}
SPEC = Spec(
    name="financial_statements", revision=1, domain="3", title="Reconstructing annual statements",
    summary="Rebuild annual statements from companyfacts JSON and inline-XBRL filings that disagree, with evidence and exceptions.",
    outputs=(
        Output("output/staging/structured_facts.csv", "csv", "the controlling structured fact of every period and line item that has one, in USD millions", FACTS),
        Output("output/staging/filing_rows.csv", "csv", "the applicable rows of the annual filings, originals and amendments, in USD millions", ROWS),
        Output(
            "output/financial_statements.json", "json", "the statements, latest period first; currency USD, unit millions",
            {
                "cik": "string", "company": "string", "currency": "string", "unit": "string",
                "periods": [{"period": "string", "period_end": "string", **{s: {i[1]: "integer" for i in model.ITEMS if i[0] == s} for s in SECTIONS}}],
            },
        ),
        Output("output/evidence.csv", "csv", "where every selected value comes from", dict.fromkeys(EVIDENCE, "string") | {"selected_value": "integer"}),
        Output("output/exceptions.json", "json", "every disagreement, restatement, alias and fallback", [{"kind": "string", "period": "string", "line_item": "string", "selected_value": "integer", "resolution": "string"}]),
    ),
    curriculum_layer="mastery", workflow_stages=("ingest", "extract", "reconcile", "document", "audit"), tools=("python3",),
    artifact_roles=("structured-feed", "filing", "policy", "mapping", "index"), relation_types=("precedence", "amendment", "alias", "citation", "temporal"),
    source_kind="financial reporting",
)  # fmt: skip
POLICY = """# How the annual statements are reconstructed

1. Results are whole millions of US dollars. The feed (companyfacts.json) holds whole dollars; documents print in the scale of each fact: the
   printed number times ten to the power of `scale`, negative where the fact has sign="-".
2. A structured fact counts for a fiscal year when its unit is USD, its form 10-K or 10-K/A, fp is FY, fy is that year and end is the last day of
   that year (31 December). A filing's comparative figures for the year before therefore never count.
3. All concepts that account_mapping.csv accepts for a line item are looked at together. The fact filed last controls; among facts of one day
   the one with the greater accession.
4. A document row counts when it stands in one of the three statements, its context is FY and the filing's own fiscal year, and its unit is USD.
   Rows of the sections `supplemental` (unaudited) and `pro_forma`, of quarters, and of 8-K reports never count.
5. A 10-K/A replaces only the rows that it prints; all others of the 10-K stay. The latest applicable row is the amended one where there is one.
6. Where the controlling structured fact and the latest applicable row disagree, the structured fact is selected. Where there is no structured
   fact, the row is.
"""
NAVIGATION = """# Finding one's way in the documents

Facts are `ix:nonFraction` elements; their `id` is the fragment to cite. An amendment holds only restated rows. `filing_index.csv` lists one
document a line; a line may be repeated, which means nothing, and its dates may be written day first with slashes. `account_mapping.csv`
may be separated by semicolons, be written in UTF-16, or carry blanks around values.
"""


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    """A misstated row, and an alias or a missing fact, always; each in another line item, so that the truth stays in a source that wins."""
    free = draw.sample(range(16), 16)
    years = {name: draw.choice(world.years) for name in ("wrong", "second", "missing", "gone")}
    entries = {(e["fiscal_year"], e["form"]): f"input/{e['document']}" for e in model.filings(world)}
    mapping, feed, index = "input/account_mapping.csv", "input/companyfacts.json", "input/filing_index.csv"

    def misstated(year: int, item: int, form: str) -> Defect:
        scale = world.scales[world.years.index(year)]
        true = model.value(world, year, item) if form == "10-K/A" else model.original(world, year, item)
        wrong = abs(true) + draw.integer(1, 13)
        name = f"{'amended-' if form == '10-K/A' else ''}fact-{year}-{item:03d}"
        per = 10 ** (6 - scale)
        return Defect(
            "misstated_fact",
            entries[year, form],
            {"id": name, "text": f"{wrong * per:,}", "per_million": per},
            "a row that was printed wrongly",
        )

    def concept(item: int) -> str:
        return f"us-gaap:{model.ITEMS[item][3]}"

    amended = draw.choice(world.restated)
    # What is missing in the feed must be right in the documents: no item of it is misstated anywhere.
    wrong, second, alias, other, missing, gone = [i for i in free if i != amended[1]][:6]
    offered = {
        "blank": Defect("whitespace_noise", mapping, {"columns": ["line_item", "canonical_concept"], "rows": sorted(draw.sample(range(16), 5))}, "blanks round names"),
        "date": Defect("date_format_drift", index, {"column": "filed", "from": "%Y-%m-%d", "to": "%d/%m/%Y"}, "day-first dates"),
        "repeat": Defect("duplicate_records", index, {"rows": [0, 1]}, "documents listed twice"),
        "wrong": misstated(years["wrong"], wrong, "10-K"),
        "second": misstated(years["second"], second, "10-K"),
        "amended": misstated(amended[0], amended[1], "10-K/A"),
        "alias": Defect("alias_concept", feed, {"concept": concept(alias), "alias": f"{world.prefix}:{model.ITEMS[alias][4]}"}, "a line under the company's own concept"),
        "other": Defect("alias_concept", feed, {"concept": concept(other), "alias": f"{world.prefix}:{model.ITEMS[other][4]}"}, "a line under the company's own concept"),
        "missing": Defect("missing_fact", feed, {"concept": concept(missing), "end": f"{years['missing']}-12-31"}, "a period that the feed lacks"),
        "gone": Defect("missing_fact", feed, {"concept": concept(gone), "end": f"{years['gone']}-12-31"}, "a period that the feed lacks"),
        "bytes": Defect("encoding_drift", mapping, {"encoding": "utf-16"}) if draw.chance(0.5) else Defect("delimiter_drift", mapping, {"to": ";"}),
    }  # fmt: skip
    first = [draw.choice(("wrong", "amended")), draw.choice(("alias", "missing"))]
    others = draw.sample([k for k in offered if k not in first], draw.integer(1, 5))
    return tuple(d for name, d in offered.items() if name in {*first, *others})


def _selected(known: dict[str, Any]) -> int:
    if known["structured"] is not None:
        return known["structured"]
    return known["original"] if known["amended"] is None else known["amended"]


def _exceptions(known: dict[str, Any]) -> list[dict[str, Any]]:
    head, value = {"period": known["period"], "line_item": known["line_item"]}, _selected(known)
    latest, out = known["original"] if known["amended"] is None else known["amended"], []
    if known["amended"] is not None:
        out.append(
            {
                "kind": "amendment_restatement",
                **head,
                "original_value": known["original"],
                "amended_value": known["amended"],
                "selected_value": value,
                "resolution": "amended_row_over_original",
            }
        )
    if known["structured"] is None:
        out.append(
            {
                "kind": "missing_structured_fact",
                **head,
                "filing_value": latest,
                "selected_value": value,
                "resolution": "latest_filing_row",
            }
        )
    elif known["structured"] != latest:
        out.append(
            {
                "kind": "cross_source_conflict",
                **head,
                "structured_value": known["structured"],
                "filing_value": latest,
                "selected_value": value,
                "resolution": "structured_fact_over_filing",
            }
        )
    if known["structured"] is not None and known["concept"] != known["canonical"]:
        out.append(
            {
                "kind": "taxonomy_alias",
                **head,
                "concept": known["concept"],
                "canonical_concept": known["canonical"],
                "selected_value": value,
                "resolution": "accepted_alias",
            }
        )
    return sorted(out, key=lambda e: e["kind"])


def _evidence(known: dict[str, Any]) -> list[str]:
    head, value = [known["period"], known["statement"], known["line_item"]], str(_selected(known))
    if known["structured"] is not None:
        source, place, concept, basis = (
            "companyfacts.json",
            known["pointer"],
            known["concept"],
            "latest_annual_structured_fact",
        )
    else:
        source, place, concept = known["row"]["document"], known["row"]["fragment"], known["canonical"]
        basis = "amended_filing_row" if known["row"]["form"] == "10-K/A" else "original_filing_row"
    return [*head, value, concept, source, place, f"{concept} for FY{known['period']}: {source}{place}", basis]


def truth(world: Any, defects: tuple[Defect, ...]) -> dict[str, Any]:
    known, facts, rows = model.select(world, defects), [], []
    for k in known:
        if k["structured"] is not None:
            facts.append([k["period"], k["line_item"], str(k["structured"]), k["concept"], k["pointer"]])
        number = k["row"]["fragment"].rsplit("-", 1)[1]
        base = f"filings/{k['period']}/form10-k"
        rows.append(
            [k["period"], k["line_item"], "10-K", str(k["original"]), f"{base}.htm#fact-{k['period']}-{number}"]
        )
        if k["amended"] is not None:
            rows.append(
                [
                    k["period"],
                    k["line_item"],
                    "10-K/A",
                    str(k["amended"]),
                    f"{base}-a.htm#amended-fact-{k['period']}-{number}",
                ]
            )
    periods = []
    for year in world.years:
        own = [k for k in known if k["period"] == str(year)]
        periods.append(
            {
                "period": str(year),
                "period_end": f"{year}-12-31",
                **{s: {k["line_item"]: _selected(k) for k in own if k["statement"] == s} for s in SECTIONS},
            }
        )
    return {
        "headers": {"facts": list(FACTS), "rows": list(ROWS), "evidence": list(EVIDENCE)}, "facts": facts, "rows": rows, "evidence": [_evidence(k) for k in known],
        "statements": {"cik": world.cik, "company": world.company, "currency": "USD", "unit": "millions", "periods": periods},
        "exceptions": [e for k in known for e in _exceptions(k)],
    }  # fmt: skip


def prompt(world: Any) -> Prompt:
    return Prompt(
        goal="Rebuild a company's annual statements from its structured feed and its filings, which do not always agree; prove where each number comes from and list every exception. The statements must balance.",
        inputs={
            "input/company.json": "the company and the fiscal years to rebuild",
            "input/reconstruction_policy.md": "which source counts when; binding",
            "input/filing_navigation.md": "how documents and tables are laid out",
            "input/companyfacts.json": "the structured feed: facts/<taxonomy>/<concept>/units/<unit>",
            "input/filings/": "inline-XBRL documents, listed in filing_index.csv",
            "input/account_mapping.csv": "the line items in order, their labels and accepted concepts",
        },
        requirements=(
            "All files go by period, the latest first, then by the order of the mapping. Values are whole USD millions.",
            "staging/structured_facts.csv: locator is the JSON pointer into companyfacts.json, like #/facts/us-gaap/Assets/units/USD/3, with list places from 0.",
            "staging/filing_rows.csv: every applicable row of 10-K and, after it, 10-K/A; locator is the document's path relative to input/, #, and the fact's id.",
            "financial_statements.json: check that assets = liabilities + equity, that net income = revenue - cost of revenue - operating expense, and that ending cash = beginning cash + the three flows, in every period.",
            "evidence.csv: source_file relative to input/; locator is the JSON pointer, or # and the fact's id; concept is the fact's own, or the canonical one for a row; citation is: concept, ' for FY', period, ': ', source_file, locator; authority_basis is latest_annual_structured_fact, amended_filing_row or original_filing_row.",
            "exceptions.json: a list; within a line item by kind, alphabetically. Every entry has kind, period, line_item, selected_value and resolution. amendment_restatement (original_value, amended_value; amended_row_over_original) for every restated row; cross_source_conflict (structured_value, filing_value; structured_fact_over_filing) where the controlling fact and the latest row differ; missing_structured_fact (filing_value; latest_filing_row); taxonomy_alias (concept, canonical_concept; accepted_alias) where the controlling fact isn't under the canonical concept. In brackets: further keys, then the resolution.",
        ),
        authority=("The policy decides between sources. Identities check a result, they never choose one.",),
    )  # fmt: skip
