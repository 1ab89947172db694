"""Progress contract: the series found, hunks judged and placed, patches settled, files rebuilt, the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("series", 8, ()),
    ("results", 18, ("series",)),
    ("places", 18, ("results",)),
    ("statuses", 14, ("results",)),
    ("touched_files", 26, ("results",)),
    ("untouched_files", 4, ("touched_files",)),
    ("report", 12, ("touched_files", "statuses")),
)


def _column(rows: list[dict], names: tuple[str, ...]) -> list[tuple]:
    plain = (str, int, float)
    return [
        tuple(v if isinstance(v := row.get(n), plain) and not isinstance(v, bool) else None for n in names)
        for row in rows
    ]


def _f1(expected: list, got: list) -> float:
    if expected == got:
        return 1.0
    hits = len(set(expected) & set(got))
    return min(2 * hits / (len(expected) + len(got)), 0.99) if hits else 0.0


def _share(right: int, total: int, surplus: int) -> float:
    """Right ones of all, those too many counted as wrong."""
    return right / (total + surplus) if total + surplus else 1.0


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    hunks = hostile.jsonl_file(tree, "output/hunks.jsonl") or []
    mine = truth["hunks"]
    place = _f1(
        _column(mine, ("patch", "hunk", "line", "offset", "fuzz")),
        _column(hunks, ("patch", "hunk", "line", "offset", "fuzz")),
    )
    if place == 1 and any(row.keys() != mine[0].keys() for row in hunks):
        place = 0.9
    found = hostile.table_file(tree, "output/patches.csv")
    rows = [tuple(r) for r in found[1]] if found is not None and found[0] == truth["header"] else []
    files = hostile.json_file(tree, "output/tree.json")
    files = files if isinstance(files, dict) else {}
    changed = [p for p in truth["tree"] if truth["tree"][p] != truth["upstream"][p]]
    same = [p for p in truth["tree"] if p not in changed]
    report = hostile.json_file(tree, "output/report.json")
    report = report if isinstance(report, dict) else {}
    return {
        "series": _f1(_column(mine, ("patch", "hunk", "file")), _column(hunks, ("patch", "hunk", "file"))),
        "results": _f1(_column(mine, ("patch", "hunk", "result")), _column(hunks, ("patch", "hunk", "result"))),
        "places": place,
        "statuses": _f1([tuple(r) for r in truth["patches"]], rows),
        "touched_files": _share(sum(files.get(p) == truth["tree"][p] for p in changed), len(changed), 0),
        "untouched_files": _share(
            sum(files.get(p) == truth["tree"][p] for p in same), len(same), len(files.keys() - truth["tree"].keys())
        ),
        "report": _share(
            sum(hostile.same(v, report.get(k)) for k, v in truth["report"].items()),
            len(truth["report"]),
            len(report.keys() - truth["report"].keys()),
        ),
    }
