"""The strict grader of the case: findings by exact records, the document by its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"sessions": 3, "findings": 4, "timeline": 2, "artifact": 4, "report": 3}


def _document(chunks: list[Any], data: bytes | None) -> float:
    """Share of the parts recovered at their places; length counts as a part."""
    if not data:
        return 0.0
    right, at = 0, 0
    for size, digest in chunks:
        right += hashlib.sha256(data[at : at + size]).hexdigest() == digest
        at += size
    return (right + (at == len(data))) / (len(chunks) + 1) if right else 0.0


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    found = hostile.json_file(tree, "output/findings.json")
    events = hostile.json_file(tree, "output/timeline.json")
    report = hostile.json_file(tree, "output/report.json")
    table = records.table(hostile.table_file(tree, "output/staging/sessions.csv"), list(truth["sessions"][0]))
    ours = isinstance(report, dict) and report.get("case") == truth["report"]["case"]
    return {
        "sessions": records.share(truth["sessions"], table),
        "findings": records.share(truth["findings"], found["findings"])
        if isinstance(found, dict) and list(found) == ["findings"]
        else 0.0,
        "timeline": records.share(truth["timeline"], events["events"])
        if isinstance(events, dict) and list(events) == ["events"]
        else 0.0,
        "artifact": _document(truth["chunks"], tree.get("output/artifact.bin")),
        "report": records.share(truth["report"], report) if ours else 0.0,
    }
