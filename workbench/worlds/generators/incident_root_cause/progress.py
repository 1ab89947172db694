"""Progress of the analysis: episodes seen, chained, incidents triggered, decided on, told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("episodes", 3, ()),
    ("chained", 2, ("episodes",)),
    ("roots", 2, ()),
    ("triggers", 3, ("roots",)),
    ("rollbacks", 3, ("triggers",)),
    ("timeline", 3, ("roots",)),
    ("report", 2, ("roots",)),
)


def _table(expected: list[dict[str, str]], table: Any, columns: tuple[str, ...]) -> float:
    """F1 over rows cut to `columns`; 1 only for the same rows in the same order under the same header."""
    if table is None or not set(columns) <= set(table[0]):
        return 0.0
    places = [table[0].index(c) for c in columns]
    got, wanted = [tuple(row[p] for p in places) for row in table[1]], [tuple(r[c] for c in columns) for r in expected]
    if got == wanted and sorted(table[0]) == sorted(expected[0]):
        return 1.0
    right = len(set(got) & set(wanted))
    return min(2 * right / (len(got) + len(wanted)), 0.96)


def _cut(incidents: Any, fields: tuple[str, ...]) -> Any:
    return [{k: i[k] for k in ("root", "onset_utc", *fields) if k in i} for i in incidents]


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    episodes = hostile.table_file(tree, "output/staging/episodes.csv")
    found = hostile.json_file(tree, "output/incidents.json")
    listed = found.get("incidents") if isinstance(found, dict) and len(found) == 1 else None
    listed = [i for i in listed if isinstance(i, dict)] if isinstance(listed, list) else []
    ours, theirs = ({f"{i.get('root')} {i.get('onset_utc')}" for i in group} for group in (truth["incidents"], listed))
    right, key = len(ours & theirs), ("root", "onset_utc")
    whole = leaves.overlap({"incidents": truth["incidents"]}, found, key) if right else 0.0
    some = leaves.overlap(
        _cut(truth["incidents"], ("trigger", "blast_radius", "depth")),
        _cut(listed, ("trigger", "blast_radius", "depth")),
        key,
    )
    return {
        "episodes": _table(truth["episodes"], episodes, ("service", "onset_utc", "end_utc", "degraded_minutes")),
        "chained": _table(truth["episodes"], episodes, tuple(truth["episodes"][0])),
        "roots": 2 * right / (len(ours) + max(len(listed), len(theirs))) if right else 0.0,
        "triggers": some if right else 0.0,
        "rollbacks": whole,
        "timeline": _table(
            truth["timeline"], hostile.table_file(tree, "output/timeline.csv"), tuple(truth["timeline"][0])
        ),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
