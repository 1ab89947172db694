"""Progress contract: both sources extracted, values selected, the identities, the citations, the exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("structured_facts", 16, ()),
    ("filing_rows", 16, ()),
    ("selected_values", 22, ("structured_facts",)),
    ("identities", 6, ("selected_values",)),
    ("locators", 14, ("selected_values",)),
    ("citations", 8, ("locators",)),
    ("exceptions_found", 10, ("selected_values", "filing_rows")),
    ("exceptions_exact", 8, ("exceptions_found",)),
)
SECTIONS = ("balance_sheet", "income_statement", "cash_flow")


def _f1(expected: list[tuple], got: list[tuple], least: float = 0.0) -> float:
    """1 only for equal lists, 0 below `least`."""
    if expected == got:
        return 1.0
    hits = len(set(expected) & set(got))
    value = min(2 * hits / (len(expected) + len(got)), 0.99) if hits else 0.0
    return value if value >= least else 0.0


def _rows(truth: Mapping[str, Any], tree: Mapping[str, bytes], name: str, path: str) -> list[tuple[str, ...]]:
    found = hostile.table_file(tree, path)
    return [tuple(row) for row in found[1]] if found is not None and found[0] == truth["headers"][name] else []


def _plain(value: Any) -> Any:
    """A leaf that may be compared and hashed; anything else is no leaf."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _leaves(statements: Any) -> dict[tuple[str, ...], Any]:
    """(period, section, item) -> value, and whatever else the file says."""
    out: dict[tuple[str, ...], Any] = {}
    if not isinstance(statements, dict):
        return out
    for key, value in statements.items():
        if key != "periods":
            out["", "", key] = _plain(value)
    periods = statements.get("periods")
    for place, period in enumerate(periods if isinstance(periods, list) else []):
        if not isinstance(period, dict):
            continue
        for section, value in period.items():
            if isinstance(value, dict):
                out |= {(str(place), section, item): _plain(v) for item, v in value.items()}
            else:
                out[str(place), "", section] = _plain(value)
    return out


def _values(expected: Any, got: Any) -> float:
    """Share of right numbers, at least half of them; 1 only when the whole file is right."""
    if hostile.same(expected, got):
        return 1.0
    mine, theirs = _leaves(expected), _leaves(got)
    numbers = [at for at in mine if at[1] in SECTIONS]
    right = sum(at in theirs and theirs[at] == mine[at] for at in numbers)
    surplus = len([at for at in theirs if at not in mine])
    value = min(right / (len(numbers) + surplus), 0.99)
    return value if value >= 0.5 else 0.0


def _identities(got: Any) -> float:
    periods = got.get("periods") if isinstance(got, dict) else None
    right, total = 0, 0
    for period in periods if isinstance(periods, list) else []:
        total += 3
        try:
            b, i, c = (period[name] for name in SECTIONS)
            right += b["assets"] == b["liabilities"] + b["equity"]
            right += i["net_income"] == i["revenue"] - i["cost_of_revenue"] - i["operating_expense"]
            right += (
                c["ending_cash"]
                == c["beginning_cash"] + c["operating_cash_flow"] + c["investing_cash_flow"] + c["financing_cash_flow"]
            )
        except (KeyError, TypeError, OverflowError):
            continue
    return right / total if total else 0.0


def _named(entries: Any) -> list[tuple]:
    if not isinstance(entries, list):
        return []
    return [tuple(_plain(e.get(k)) for k in ("kind", "period", "line_item")) for e in entries if isinstance(e, dict)]


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    statements = hostile.json_file(tree, "output/financial_statements.json")
    exceptions = hostile.json_file(tree, "output/exceptions.json")
    evidence, wanted = _rows(truth, tree, "evidence", "output/evidence.csv"), [tuple(row) for row in truth["evidence"]]
    listed = exceptions if isinstance(exceptions, list) else []
    exact = sum(hostile.same(a, b) for a, b in zip(truth["exceptions"], listed, strict=False)) / max(
        len(truth["exceptions"]), len(listed), 1
    )
    return {
        "structured_facts": _f1(
            [tuple(r) for r in truth["facts"]], _rows(truth, tree, "facts", "output/staging/structured_facts.csv"), 0.2
        ),
        "filing_rows": _f1(
            [tuple(r) for r in truth["rows"]], _rows(truth, tree, "rows", "output/staging/filing_rows.csv"), 0.2
        ),
        "selected_values": _values(truth["statements"], statements),
        "identities": _identities(statements),
        "locators": _f1([r[:7] for r in wanted], [r[:7] for r in evidence], 0.2),
        "citations": _f1(wanted, evidence, 0.2),
        "exceptions_found": _f1(_named(truth["exceptions"]), _named(exceptions)),
        "exceptions_exact": exact if truth["exceptions"] or isinstance(exceptions, list) else 0.0,
    }
