"""Alternative solver: documents by regular expressions, both sources as tables of a database, the policy as queries."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping

SCHEMA = """
CREATE TABLE item (place INTEGER, statement TEXT, name TEXT, canonical TEXT);
CREATE TABLE accepted (concept TEXT PRIMARY KEY, name TEXT, turn INTEGER);
CREATE TABLE period (place INTEGER, year TEXT);
CREATE TABLE fact (concept TEXT, at INTEGER, unit TEXT, accn TEXT, form TEXT, fy TEXT, fp TEXT, ends TEXT, filed TEXT, val INTEGER);
CREATE TABLE printed (document TEXT, form TEXT, year TEXT, section TEXT, id TEXT, concept TEXT, context TEXT, unit TEXT, val INTEGER);
CREATE VIEW best AS
SELECT fy AS year, name, concept, at, val / 1000000 AS val FROM (
 SELECT *, row_number() OVER (PARTITION BY fy, name ORDER BY filed DESC, accn DESC, turn, at) AS nth
 FROM fact JOIN accepted USING (concept)
 WHERE unit = 'USD' AND form IN ('10-K', '10-K/A') AND fp = 'FY' AND ends = fy || '-12-31') WHERE nth = 1;
CREATE VIEW line AS
SELECT year, name, form, document, id, val FROM printed JOIN accepted USING (concept)
WHERE section IN ('balance_sheet', 'income_statement', 'cash_flow') AND context = 'FY' || year AND unit = 'USD' AND form <> '8-K';
CREATE VIEW known AS
SELECT p.year, i.statement, i.name, i.canonical, b.val AS fact, b.concept, b.at, o.val AS original, a.val AS amended,
 coalesce(a.document, o.document) AS document, coalesce(a.id, o.id) AS id, coalesce(a.val, o.val) AS latest, coalesce(b.val, a.val, o.val) AS chosen
FROM period p CROSS JOIN item i
LEFT JOIN best b ON b.year = p.year AND b.name = i.name
LEFT JOIN line o ON o.year = p.year AND o.name = i.name AND o.form = '10-K'
LEFT JOIN line a ON a.year = p.year AND a.name = i.name AND a.form = '10-K/A'
ORDER BY p.place, i.place;
"""
SECTION = re.compile(r'<section id="(\w+)">(.*?)</section>', re.S)
FACT = re.compile(r"<ix:nonFraction ([^>]*)>([\d,]+)</ix:nonFraction>")
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
BASIS = {False: "original_filing_row", True: "amended_filing_row"}


def _split(data: bytes) -> list[list[str]]:
    """Cells of the lines below the header; quoted cells hold the only commas inside a cell."""
    text = data.decode("utf-16") if data.startswith(b"\xff\xfe") else data.decode()
    head, *lines = text.splitlines()
    sign = ";" if ";" in head else ","
    cell = re.compile(rf'"([^"]*)"|([^{sign}]+)')
    return [[(a or b).strip() for a, b in cell.findall(line)] for line in lines]


def _read_documents(base: sqlite3.Connection, tree: Mapping[str, bytes]) -> None:
    listed = {row[4]: (row[1], row[2]) for row in _split(tree["input/filing_index.csv"])}
    for path, (form, year) in listed.items():
        for section, body in SECTION.findall(tree["input/" + path].decode()):
            for attributes, text in FACT.findall(body):
                told = dict(ATTRIBUTE.findall(attributes))
                number = int(text.replace(",", ""))
                for _ in range(int(told["scale"]), 6):
                    number //= 10
                number *= -1 if "sign" in told else 1
                base.execute(
                    "INSERT INTO printed VALUES (?,?,?,?,?,?,?,?,?)",
                    (path, form, year, section, told["id"], told["name"], told["contextRef"], told["unitRef"], number),
                )


def _read_feed(base: sqlite3.Connection, feed: dict) -> None:
    for taxonomy, concepts in feed["facts"].items():
        for name, node in concepts.items():
            for unit, facts in node["units"].items():
                for at, f in enumerate(facts):
                    base.execute(
                        "INSERT INTO fact VALUES (?,?,?,?,?,?,?,?,?,?)",
                        (
                            f"{taxonomy}:{name}",
                            at,
                            unit,
                            f["accn"],
                            f["form"],
                            str(f["fy"]),
                            f["fp"],
                            f["end"],
                            f["filed"],
                            f["val"],
                        ),
                    )


def _csv(rows: list[tuple]) -> bytes:
    """Cells with a comma in them get quotes."""
    return "".join(",".join(f'"{c}"' if "," in str(c) else str(c) for c in row) + "\n" for row in rows).encode()


def _notes(k: sqlite3.Row) -> list[dict]:
    """The exceptions of one line item, by kind."""
    base = {"period": k["year"], "line_item": k["name"], "selected_value": k["chosen"]}
    found = {
        "amendment_restatement": k["amended"] is not None and {"original_value": k["original"], "amended_value": k["amended"], "resolution": "amended_row_over_original"},
        "cross_source_conflict": k["fact"] not in (None, k["latest"]) and {"structured_value": k["fact"], "filing_value": k["latest"], "resolution": "structured_fact_over_filing"},
        "missing_structured_fact": k["fact"] is None and {"filing_value": k["latest"], "resolution": "latest_filing_row"},
        "taxonomy_alias": k["concept"] not in (None, k["canonical"]) and {"concept": k["concept"], "canonical_concept": k["canonical"], "resolution": "accepted_alias"},
    }  # fmt: skip
    return [{"kind": kind, **base, **more} for kind, more in found.items() if more]


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The complete outputs."""
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.row_factory = sqlite3.Row
    base.executescript(SCHEMA + "BEGIN;")
    for place, (statement, name, _, canonical, concepts, _) in enumerate(_split(tree["input/account_mapping.csv"])):
        base.execute("INSERT INTO item VALUES (?,?,?,?)", (place, statement, name, canonical))
        base.executemany(
            "INSERT INTO accepted VALUES (?,?,?)", [(c, name, turn) for turn, c in enumerate(concepts.split("|"))]
        )
    company = json.loads(tree["input/company.json"])
    base.executemany("INSERT INTO period VALUES (?, ?)", enumerate(company["periods"]))
    _read_documents(base, tree)
    _read_feed(base, json.loads(tree["input/companyfacts.json"]))
    known = base.execute("SELECT * FROM known").fetchall()
    facts, rows = (
        [("period", "line_item", "value", "concept", "locator")],
        [("period", "line_item", "form", "value", "locator")],
    )
    evidence = [
        (
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
    ]
    periods: dict[str, dict] = {}
    for k in known:
        if k["fact"] is not None:
            concept, source, place, basis = (
                k["concept"],
                "companyfacts.json",
                f"#/facts/{k['concept'].replace(':', '/')}/units/USD/{k['at']}",
                "latest_annual_structured_fact",
            )
            facts.append((k["year"], k["name"], k["fact"], concept, place))
        else:
            concept, source, place, basis = (
                k["canonical"],
                k["document"],
                f"#{k['id']}",
                BASIS[k["amended"] is not None],
            )
        evidence.append(
            (
                k["year"],
                k["statement"],
                k["name"],
                k["chosen"],
                concept,
                source,
                place,
                f"{concept} for FY{k['year']}: {source}{place}",
                basis,
            )
        )
        own = periods.setdefault(k["year"], {"period": k["year"], "period_end": f"{k['year']}-12-31"})
        own.setdefault(k["statement"], {})[k["name"]] = k["chosen"]
    ordered = """SELECT l.year, l.name, l.form, l.val, l.document || '#' || l.id FROM line l JOIN item i USING (name) JOIN period p USING (year)
     ORDER BY p.place, i.place, l.form"""
    rows += [tuple(row) for row in base.execute(ordered)]
    result = {
        "cik": company["cik"],
        "company": company["company"],
        "currency": "USD",
        "unit": "millions",
        "periods": list(periods.values()),
    }
    return {
        "output/staging/structured_facts.csv": _csv(facts),
        "output/staging/filing_rows.csv": _csv(rows),
        "output/financial_statements.json": json.dumps(result).encode(),
        "output/evidence.csv": _csv(evidence),
        "output/exceptions.json": json.dumps([note for k in known for note in _notes(k)]).encode(),
    }
