"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from workbench.worlds.generators.cloud_cost import reference
from workbench.worlds.generators.cloud_cost import world as model
from workbench.worlds.trees import edit_json

FINDINGS, DECISIONS = "output/staging/dashboard_findings.json", "output/staging/decisions.csv"
SAVINGS, REPORT = "output/savings_summary.csv", "output/optimization_report.json"


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    return {
        "findings": edit_json(tree, FINDINGS, lambda v: v["findings"].pop()),
        "decisions": tree | {DECISIONS: tree[DECISIONS].replace(b",keep\n", b",recommend\n", 1)},
        "savings": tree | {SAVINGS: tree[SAVINGS].rsplit(b"\n", 2)[0] + b"\n"},
        "recommendations": edit_json(tree, REPORT, lambda v: v["recommendations"].reverse()),
        "executive_summary": edit_json(tree, REPORT, lambda v: v["executive_summary"].update(resource_count=0)),
    }


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    compact = {
        path: json.dumps(json.loads(tree[path]), separators=(",", ":"), sort_keys=True).encode()
        for path in (FINDINGS, REPORT)
    }
    lines = {path: tree[path].replace(b"\n", b"\r\n") for path in (DECISIONS, SAVINGS)}
    return {"compact_json": tree | compact, "other_line_ends": tree | lines}


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """The image not looked at; waivers and reservations overlooked; findings that are resolved taken for open."""
    blind = tuple(replace(finding, status="RESOLVED") for finding in world.findings)
    eager = tuple(replace(finding, status="OPEN") for finding in world.findings)
    return {
        "image_ignored": _last(replace(world, findings=blind)),
        "resolved_findings_too": _last(replace(world, findings=eager)),
        "waivers_ignored": _last(replace(world, waivers=(), reserved=())),
    }


def _last(world: Any) -> dict[str, bytes]:
    return list(reference.solve(model.render(world)))[-1][1]
