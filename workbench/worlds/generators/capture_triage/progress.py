"""Progress along the triage: each node is what one stage of the workflow leaves behind."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("sessions_listed", 2, ()),
    ("sessions_attributed", 3, ("sessions_listed",)),
    ("findings_named", 3, ()),
    ("findings_dated", 3, ("findings_named",)),
    ("timeline", 2, ("findings_named",)),
    ("document_parts", 4, ()),
    ("document_whole", 1, ("document_parts",)),
    ("report", 3, ("document_parts",)),
)


def _ratio(hits: int, ours: int, theirs: int) -> float:
    return 2 * hits / (ours + theirs) if hits else 0.0


def _sessions(expected: list[dict[str, str]], table: Any) -> tuple[float, float]:
    if table is None or "session" not in table[0] or len(set(table[0])) < len(table[0]):
        return 0.0, 0.0
    got = [dict(zip(table[0], row, strict=True)) for row in table[1]]
    names, theirs = [r["session"] for r in expected], [r["session"] for r in got]
    listed = _ratio(len(set(names) & set(theirs)), len(names), len(theirs))
    if listed == 1.0 and names != theirs:
        listed = 0.95
    # A session told twice is one session: its first row counts.
    first = {r["session"]: r for r in reversed(got)}
    right = sum(len(set(r.items()) & set(first[r["session"]].items())) - 1 for r in expected if r["session"] in first)
    return listed, _ratio(right, len(names) * (len(expected[0]) - 1), len(theirs) * (len(table[0]) - 1))


def _findings(expected: list[dict[str, Any]], found: Any) -> tuple[float, float]:
    rows = found.get("findings") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        return 0.0, 0.0
    keys = ("kind", "client", "subject")
    ours, theirs = ({str([r.get(k) for k in keys]) for r in group} for group in (expected, rows))
    named = _ratio(len(ours & theirs), len(ours), max(len(theirs), len(rows)))
    return named, leaves.overlap({"findings": expected}, found, keys)


def _document(chunks: list[Any], data: bytes | None) -> tuple[float, float]:
    ends, right = 0, 0
    for size, digest in chunks:
        right += hashlib.sha256((data or b"")[ends : ends + size]).hexdigest() == digest
        ends += size
    return right / len(chunks), float(right == len(chunks) and len(data or b"") == ends)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    listed, attributed = _sessions(truth["sessions"], hostile.table_file(tree, "output/staging/sessions.csv"))
    named, dated = _findings(truth["findings"], hostile.json_file(tree, "output/findings.json"))
    parts, whole = _document(truth["chunks"], tree.get("output/artifact.bin"))
    timeline = leaves.overlap(
        {"events": truth["timeline"]}, hostile.json_file(tree, "output/timeline.json"), ("finding", "event")
    )
    return {
        "sessions_listed": listed,
        "sessions_attributed": attributed,
        "findings_named": named,
        "findings_dated": dated,
        "timeline": timeline,
        "document_parts": parts,
        "document_whole": whole,
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
