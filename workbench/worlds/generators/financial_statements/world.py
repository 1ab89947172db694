"""A company's annual statements, to be rebuilt from a packet of filings whose sources disagree (after Tev A.10, Example 3).

The world is the true statements of two to eight fiscal years, which satisfy the accounting identities, and the facts about the filings:
when they were made, which rows an amendment restated, in which scale numbers are printed. It's rendered as a structured feed in the shape of
companyfacts JSON and as inline-XBRL documents; comparatives, quarterly, pro forma, unaudited and euro figures are there as in life. Company
and numbers are invented.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Defect, Prompt, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.financial_statements import contract, model
from workbench.worlds.generators.financial_statements.contract import SPEC
from workbench.worlds.generators.financial_statements.model import ITEMS, MILLION

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]

YEARS = {"unit": 2, "small": 5, "full": 10}
WORDS = "Alder Basalt Cinder Dune Ember Fathom Granite Hollow Isthmus Juniper Kestrel Lantern Meridian Northgate Orchard Pinnacle Quarry Rampart Sable Tarn".split()
KINDS = "Holdings Industries Logistics Instruments Materials Foods".split()


@dataclass(frozen=True)
class World:
    """years: latest first; the next fields have one entry a year: values (in USD millions, in the order of ITEMS), dates of the 10-K, of its
    amendment and of an 8-K ("" when there is none), digits of the printed scale (6: millions). restated: (year, item, first value)."""

    cik: str
    company: str
    prefix: str
    years: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]
    filed: tuple[str, ...]
    amended: tuple[str, ...]
    current: tuple[str, ...]
    scales: tuple[int, ...]
    restated: tuple[tuple[int, int, int], ...]


def _statements(draw: Draw, opening: int) -> tuple[int, ...]:
    """One year's sixteen values: the identities hold by construction."""
    revenue = draw.integer(900, 4000)
    cost, expense = revenue * draw.integer(30, 55) // 100, revenue * draw.integer(20, 44) // 100
    operating, investing, financing = (
        draw.integer(150, 480),
        -draw.integer(40, 260),
        draw.choice((-1, 1)) * draw.integer(15, 90),
    )
    cash = opening + operating + investing + financing
    receivable, inventory, other = draw.integer(60, 400), draw.integer(25, 300), draw.integer(300, 1800)
    assets = cash + receivable + inventory + other
    liabilities = assets * draw.integer(30, 70) // 100
    return (
        cash,
        receivable,
        inventory,
        other,
        assets,
        liabilities,
        assets - liabilities,
        revenue,
        cost,
        expense,
        revenue - cost - expense,
        opening,
        operating,
        investing,
        financing,
        cash,
    )


def make(draw: Draw, tier: str) -> World:
    count, last = YEARS[tier], draw.integer(2015, 2025)
    years = tuple(range(last, last - count, -1))
    words, opening, values = draw.sample(WORDS, 2), draw.integer(200, 500), []
    for year in reversed(years):
        values.append(_statements(draw.fork(year), opening))
        opening = values[-1][0]
    values.reverse()
    amends = {last, *draw.sample(years, count // 3)}
    reports = {last, *draw.sample(years, count // 2)}
    restated = []
    for year in sorted(amends, reverse=True):
        for item in sorted(draw.sample([i for i in range(16) if i not in (4, 10)], draw.integer(1, 3))):
            true = values[years.index(year)][item]
            restated.append(
                (
                    year,
                    item,
                    true + draw.choice((-1, 1)) * draw.integer(2, 14) if abs(true) > 20 else true + draw.integer(2, 9),
                )
            )
    day = draw.fork("days")
    return World(
        f"{draw.integer(10**9, 10**10 - 1)}", f"{words[0]} {words[1]} {draw.choice(KINDS)} {draw.choice(('plc', 'Inc.', 'Corp.'))}", (words[0][0] + words[1][:2]).lower(),
        years, tuple(values), tuple(f"{y + 1}-{day.integer(1, 2):02d}-{day.integer(10, 28)}" for y in years),
        tuple(f"{y + 1}-{day.integer(3, 6):02d}-{day.integer(10, 28)}" if y in amends else "" for y in years),
        tuple(f"{y}-10-{day.integer(10, 28)}" if y in reports else "" for y in years), tuple(day.choice((6, 6, 3)) for _ in years), tuple(restated),
    )  # fmt: skip


def check(world: World) -> None:
    """The three identities, the ties of cash within and between the years, and restatements only where there is an amendment."""
    for place, v in enumerate(world.values):
        sums = sum(v[:4]) == v[4] == v[5] + v[6] and v[10] == v[7] - v[8] - v[9] and v[15] == v[0] == sum(v[11:15])
        if not sums or (place + 1 < len(world.values) and v[11] != world.values[place + 1][0]):
            raise WorldError(f"the statements of {world.years[place]} don't balance")
    for year, item, first in world.restated:
        if (
            not world.amended[world.years.index(year)]
            or first == model.value(world, year, item)
            or first * model.value(world, year, item) <= 0
        ):
            raise WorldError(f"a restatement of {year} without amendment, or of nothing")


def workflow(world: World) -> Workflow:
    cells = len(world.years) * len(ITEMS)
    return Workflow((
        Stage("read-sources", "ingest", len(model.filings(world)) + 4),
        Stage("structured-facts", "extract", cells * 3, ("read-sources",)),
        Stage("filing-rows", "extract", cells * 2, ("read-sources",)),
        Stage("select-values", "reconcile", cells, ("structured-facts", "filing-rows")),
        Stage("cite-evidence", "document", cells, ("select-values",)),
        Stage("list-exceptions", "audit", cells, ("select-values",)),
    ))  # fmt: skip


def printed(number: int, scale: int) -> str:
    """The digits of a value in millions at a scale, without sign."""
    return f"{abs(number) * 10 ** (6 - scale):,}"


def _cell(world: World, row: dict, scale: int) -> str:
    sign, text = ' sign="-"' if row["value"] < 0 else "", printed(row["value"], scale)
    name = f"us-gaap:{ITEMS[row['item']][3]}"
    fact = f'<ix:nonFraction id="{row["id"]}" name="{name}" contextRef="{row["context"]}" unitRef="{row["unit"]}" scale="{scale}"{sign} format="ixt:num-dot-decimal">{text}</ix:nonFraction>'
    return f"<td>({fact})</td>" if sign else f"<td>{fact}</td>"


def document(world: World, entry: dict) -> bytes:
    """An inline-XBRL document, one section a statement."""
    scale = world.scales[world.years.index(entry["fiscal_year"])]
    rows, unit = model.rows(world, entry), "millions" if scale == 6 else "thousands"
    out = [
        f"<html><head><title>{world.company}: Form {entry['form']}</title></head><body>",
        f"<h1>{world.company}</h1><p>Form {entry['form']}, fiscal year {entry['fiscal_year']}, amounts in {unit}</p>",
    ]
    for section in dict.fromkeys(row["section"] for row in rows):
        out.append(f'<section id="{section}"><h2>{contract.HEADINGS[section]}</h2><table>')
        for item in dict.fromkeys(row["item"] for row in rows if row["section"] == section):
            cells = "".join(
                _cell(world, row, scale) for row in rows if row["section"] == section and row["item"] == item
            )
            out.append(f'<tr><th scope="row">{ITEMS[item][2]}</th>{cells}</tr>')
        out.append("</table></section>")
    return "\n".join([*out, "</body></html>", ""]).encode()


def render(world: World) -> dict[str, bytes]:
    concepts = {item[3]: {"label": item[2], "units": model.facts(world, i)} for i, item in enumerate(ITEMS)}
    feed = {"cik": world.cik, "entityName": world.company, "facts": {"us-gaap": concepts}}
    mapping = [
        (s, n, label, f"us-gaap:{c}", f"us-gaap:{c}|{world.prefix}:{x}", kind) for s, n, label, c, x, kind in ITEMS
    ]
    entries = model.filings(world)
    tree = {
        "input/companyfacts.json": (json.dumps(feed, indent=1) + "\n").encode(),
        "input/filing_index.csv": csv_table.table(tuple(entries[0]), [tuple(e.values()) for e in entries]),
        "input/account_mapping.csv": csv_table.table(
            ("statement", "line_item", "filing_label", "canonical_concept", "accepted_concepts", "period_type"), mapping
        ),
        "input/reconstruction_policy.md": contract.POLICY.encode(),
        "input/filing_navigation.md": contract.NAVIGATION.encode(),
        "input/company.json": (
            json.dumps({"cik": world.cik, "company": world.company, "periods": [str(y) for y in world.years]}, indent=1)
            + "\n"
        ).encode(),
    }
    return tree | {f"input/{e['document']}": document(world, e) for e in entries}


def recover(tree: Mapping[str, bytes]) -> World:
    """The world back from its clean files."""
    feed = json.loads(tree["input/companyfacts.json"])
    index = list(csv.DictReader(io.StringIO(tree["input/filing_index.csv"].decode())))
    mapping = list(csv.DictReader(io.StringIO(tree["input/account_mapping.csv"].decode())))
    years = tuple(dict.fromkeys(int(e["fiscal_year"]) for e in index))
    dates = {(int(e["fiscal_year"]), e["form"]): e["filed"] for e in index}
    values, restated, scales = [], [], []
    for year in years:
        told = [
            [
                f
                for f in feed["facts"]["us-gaap"][item[3]]["units"]["USD"]
                if (f["fy"], f["end"]) == (year, f"{year}-12-31")
            ]
            for item in ITEMS
        ]
        values.append(tuple(max(facts, key=lambda f: f["filed"])["val"] // MILLION for facts in told))
        restated += [
            (year, i, facts[0]["val"] // MILLION) for i, facts in enumerate(told) if len({f["val"] for f in facts}) > 1
        ]
        scales.append(int(re.search(rb'scale="(\d)"', tree[f"input/filings/{year}/form10-k.htm"])[1]))
    by_form = [tuple(dates.get((year, form), "") for year in years) for form in ("10-K", "10-K/A", "8-K")]
    prefix = mapping[0]["accepted_concepts"].split("|")[1].split(":")[0]
    return World(
        feed["cik"], feed["entityName"], prefix, years, tuple(values), *by_form, tuple(scales), tuple(restated)
    )


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return contract.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    return contract.truth(world, defects)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return contract.prompt(world)
