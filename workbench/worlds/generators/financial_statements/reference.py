"""Reference solver: documents through an HTML parser, the feed as nested dictionaries, the policy rule by rule."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser

STATEMENTS = ("balance_sheet", "income_statement", "cash_flow")
EVIDENCE = [
    "period",
    "statement",
    "line_item",
    "selected_value",
    "concept",
    "source_file",
    "locator",
    "citation",
    "authority_basis",
]


class Document(HTMLParser):
    """The facts of an inline-XBRL document, each with the section it stands in."""

    def __init__(self, text: str):
        super().__init__()
        self.facts: list[dict[str, str]] = []
        self._section, self._open = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._section = dict(attrs).get("id") or ""
        elif tag == "ix:nonfraction":
            self.facts.append({**dict(attrs), "section": self._section, "text": ""})
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "ix:nonfraction":
            self._open = False
        elif tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.facts[-1]["text"] += data


def _table(data: bytes) -> list[dict[str, str]]:
    text = data.decode("utf-16" if data[:2] == b"\xff\xfe" else "utf-8")
    delimiter = ";" if ";" in text.split("\n", 1)[0] else ","
    return [{k: v.strip() for k, v in row.items()} for row in csv.DictReader(io.StringIO(text), delimiter=delimiter)]


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def _millions(fact: Mapping[str, str]) -> int:
    whole = int(fact["text"].replace(",", "")) * 10 ** int(fact["scale"]) // 1_000_000
    return -whole if fact.get("sign") == "-" else whole


def _date(text: str) -> str:
    return "-".join(reversed(text.split("/"))) if "/" in text else text


def _structured(feed: dict, period: str, item: dict[str, str]) -> dict | None:
    """The controlling fact: {value, concept, locator}."""
    best: tuple | None = None
    for concept in item["accepted_concepts"].split("|"):
        taxonomy, name = concept.split(":")
        node = feed["facts"].get(taxonomy, {}).get(name, {"units": {}})
        for place, fact in enumerate(node["units"].get("USD", [])):
            if (
                fact["form"] not in ("10-K", "10-K/A")
                or fact["fp"] != "FY"
                or str(fact["fy"]) != period
                or fact["end"] != f"{period}-12-31"
            ):
                continue
            rank = (fact["filed"], fact["accn"])
            if best is None or rank > best[0]:
                best = (
                    rank,
                    {
                        "value": fact["val"] // 1_000_000,
                        "concept": concept,
                        "locator": f"#/facts/{taxonomy}/{name}/units/USD/{place}",
                    },
                )
    return best[1] if best else None


def _rows(
    tree: Mapping[str, bytes], index: list[dict[str, str]], mapping: list[dict[str, str]]
) -> dict[tuple[str, str], list[dict]]:
    """(period, line item) -> applicable rows, originals first."""
    names = {concept: item["line_item"] for item in mapping for concept in item["accepted_concepts"].split("|")}
    annual = {e["document"]: e for e in index if e["form"] in ("10-K", "10-K/A")}
    out: dict[tuple[str, str], list[dict]] = {}
    for path, entry in sorted(annual.items(), key=lambda pair: (_date(pair[1]["filed"]), pair[1]["accession"])):
        period = entry["fiscal_year"]
        for fact in Document(tree[f"input/{path}"].decode()).facts:
            # The parser gives attribute names in lower case.
            if (
                fact["section"] in STATEMENTS
                and fact["contextref"] == f"FY{period}"
                and fact["unitref"] == "USD"
                and fact["name"] in names
            ):
                row = {"form": entry["form"], "value": _millions(fact), "document": path, "id": fact["id"]}
                out.setdefault((period, names[fact["name"]]), []).append(row)
    return out


def _exceptions(period: str, item: dict[str, str], fact: dict | None, rows: list[dict], value: int) -> list[dict]:
    head = {"period": period, "line_item": item["line_item"], "selected_value": value}
    out = []
    if len(rows) > 1:
        out.append(
            {
                "kind": "amendment_restatement",
                **head,
                "original_value": rows[0]["value"],
                "amended_value": rows[-1]["value"],
                "resolution": "amended_row_over_original",
            }
        )
    if fact is not None and fact["value"] != rows[-1]["value"]:
        out.append(
            {
                "kind": "cross_source_conflict",
                **head,
                "structured_value": fact["value"],
                "filing_value": rows[-1]["value"],
                "resolution": "structured_fact_over_filing",
            }
        )
    if fact is None:
        out.append(
            {
                "kind": "missing_structured_fact",
                **head,
                "filing_value": rows[-1]["value"],
                "resolution": "latest_filing_row",
            }
        )
    elif fact["concept"] != item["canonical_concept"]:
        out.append(
            {
                "kind": "taxonomy_alias",
                **head,
                "concept": fact["concept"],
                "canonical_concept": item["canonical_concept"],
                "resolution": "accepted_alias",
            }
        )
    return out


def _balanced(period: dict) -> bool:
    b, i, c = (period[name] for name in STATEMENTS)
    flows = c["operating_cash_flow"] + c["investing_cash_flow"] + c["financing_cash_flow"]
    return (
        b["assets"] == b["liabilities"] + b["equity"]
        and i["net_income"] == i["revenue"] - i["cost_of_revenue"] - i["operating_expense"]
        and c["ending_cash"] == c["beginning_cash"] + flows
    )


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The outputs after every stage."""
    company, feed = json.loads(tree["input/company.json"]), json.loads(tree["input/companyfacts.json"])
    mapping, index = _table(tree["input/account_mapping.csv"]), _table(tree["input/filing_index.csv"])
    out: dict[str, bytes] = {}
    yield "read-sources", dict(out)
    pairs = [(period, item) for period in company["periods"] for item in mapping]
    facts = {(p, i["line_item"]): _structured(feed, p, i) for p, i in pairs}
    listed = [(*at, f["value"], f["concept"], f["locator"]) for at, f in facts.items() if f]
    out["output/staging/structured_facts.csv"] = _csv(["period", "line_item", "value", "concept", "locator"], listed)
    yield "structured-facts", dict(out)
    rows = _rows(tree, index, mapping)
    listed = [
        (p, i["line_item"], r["form"], r["value"], f"{r['document']}#{r['id']}")
        for p, i in pairs
        for r in rows[p, i["line_item"]]
    ]
    out["output/staging/filing_rows.csv"] = _csv(["period", "line_item", "form", "value", "locator"], listed)
    yield "filing-rows", dict(out)
    periods, evidence, exceptions = [], [], []
    for period in company["periods"]:
        statements: dict[str, dict[str, int]] = {name: {} for name in STATEMENTS}
        for item in mapping:
            name = item["line_item"]
            fact, own = facts[period, name], rows[period, name]
            value = fact["value"] if fact else own[-1]["value"]
            statements[item["statement"]][name] = value
            if fact:
                where = [fact["concept"], "companyfacts.json", fact["locator"], "latest_annual_structured_fact"]
            else:
                basis = "amended_filing_row" if own[-1]["form"] == "10-K/A" else "original_filing_row"
                where = [item["canonical_concept"], own[-1]["document"], f"#{own[-1]['id']}", basis]
            citation = f"{where[0]} for FY{period}: {where[1]}{where[2]}"
            evidence.append([period, item["statement"], name, value, *where[:3], citation, where[3]])
            exceptions += _exceptions(period, item, fact, own, value)
        periods.append({"period": period, "period_end": f"{period}-12-31", **statements})
        if not _balanced(periods[-1]):
            raise ValueError(f"the statements of {period} don't balance")
    result = {
        "cik": company["cik"],
        "company": company["company"],
        "currency": "USD",
        "unit": "millions",
        "periods": periods,
    }
    out["output/financial_statements.json"] = json.dumps(result, indent=1).encode()
    yield "select-values", dict(out)
    out["output/evidence.csv"] = _csv(EVIDENCE, evidence)
    yield "cite-evidence", dict(out)
    out["output/exceptions.json"] = json.dumps(exceptions, indent=1).encode()
    yield "list-exceptions", dict(out)
