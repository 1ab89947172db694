"""Progress contract: how much of the history, the events, the sessions, the features and the audit is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("plan_history", 12, ()),
    ("events_present", 12, ()),
    ("events_exact", 13, ("events_present",)),
    ("session_bounds", 18, ("events_present",)),
    ("session_measures", 10, ("session_bounds", "plan_history")),
    ("features", 20, ("session_measures",)),
    ("provenance", 7, ("events_present",)),
    ("parity", 8, ("features", "provenance")),
)


def _rows(truth: Mapping[str, Any], tree: Mapping[str, bytes], path: str, name: str) -> list[tuple[str, ...]]:
    found = hostile.table_file(tree, path)
    if found is None or found[0] != truth["columns"][name]:
        return []
    return [tuple(row) for row in found[1]]


def _f1(expected: list, got: list) -> float:
    """Precision and recall in one; 1 only when both are equal, order included."""
    if expected == got:
        return 1.0
    hits = len(set(expected) & set(got))
    return min(2 * hits / (len(expected) + len(got)), 0.999) if hits else 0.0


def _cells(expected: list[tuple], got: list[tuple]) -> float:
    """Share of right cells in the rows of the right users. The first two columns only name the row."""
    if expected == got:
        return 1.0
    mine = {row[0]: row for row in got}
    right = sum(a == b for row in expected if row[0] in mine for a, b in zip(row[2:], mine[row[0]][2:], strict=True))
    wanted = sum(len(row) - 2 for row in expected)
    return min(right / max(wanted, wanted * len(got) // len(expected)), 0.999)


def _pick(rows: list[dict], fields: tuple[str, ...]) -> list[tuple]:
    """Hashable rows; whatever isn't a plain value can't be right."""
    plain = (str, int, float)
    return [
        tuple(v if isinstance(v := row.get(f), plain) and not isinstance(v, bool) else None for f in fields)
        for row in rows
    ]


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    events = [tuple(row) for row in truth["events"]]
    got = _rows(truth, tree, "output/staging/events.csv", "events")
    sessions = hostile.jsonl_file(tree, "output/sessions.jsonl") or []
    bounds, rest = (
        ("session_id", "user_id", "start_ms", "end_ms", "events"),
        ("session_id", "purchases", "revenue_cents", "plan"),
    )
    measures = _f1(_pick(truth["sessions"], rest), _pick(sessions, rest))
    if any(row.keys() != {*bounds, *rest} for row in sessions):
        measures = min(measures, 0.9)
    audit = hostile.json_file(tree, "output/audit.json")
    audit = audit if isinstance(audit, dict) else {}
    wanted = truth["audit"]
    halves = [
        [hostile.same(wanted[k], audit.get(k)) for k in keys]
        for keys in (("partitions", "uploads"), ("legacy_mismatches", "features_wrong"))
    ]
    if audit.keys() - wanted.keys():
        halves[1].append(False)
    return {
        "plan_history": _f1([tuple(r) for r in truth["plans"]], _rows(truth, tree, "output/plan_history.csv", "plans")),
        "events_present": _f1(sorted(e[:2] for e in events), sorted(e[:2] for e in got)),
        "events_exact": _f1(events, got),
        "session_bounds": _f1(_pick(truth["sessions"], bounds), _pick(sessions, bounds)),
        "session_measures": measures,
        "features": _cells(
            [tuple(r) for r in truth["features"]], _rows(truth, tree, "output/features.csv", "features")
        ),
        "provenance": sum(halves[0]) / 2,
        "parity": sum(halves[1]) / len(halves[1]),
    }
