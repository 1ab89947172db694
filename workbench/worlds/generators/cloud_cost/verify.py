"""Strict grader: findings read, resources decided, savings priced, report summed; every figure to the cent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"findings": 3, "decisions": 3, "savings": 3, "recommendations": 1, "executive_summary": 1}
DECISIONS = ["resource_id", "resource_type", "region", "decision"]
SAVINGS = ["resource_id", "resource_type", "name", "action", "current_cost", "projected_cost", "monthly_savings"]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    found = hostile.json_file(tree, "output/staging/dashboard_findings.json")
    report = hostile.json_file(tree, "output/optimization_report.json")
    whole = isinstance(report, dict) and set(report) == {"executive_summary", "recommendations"}
    return {
        "findings": _findings(truth["findings"], found),
        "decisions": _table(truth["decisions"], DECISIONS, tree, "output/staging/decisions.csv"),
        "savings": _table(truth["savings"], SAVINGS, tree, "output/savings_summary.csv"),
        "recommendations": records.share(truth["report"]["recommendations"], report["recommendations"])
        if whole
        else 0.0,
        "executive_summary": _summary(truth["report"]["executive_summary"], report["executive_summary"])
        if whole
        else 0.0,
    }


def _findings(expected: Mapping[str, Any], got: Any) -> float:
    if not isinstance(got, dict) or set(got) != {"findings"}:
        return 0.0
    return records.share(expected["findings"], got["findings"], 0.3)


def _table(expected: list[list[str]], columns: list[str], tree: Mapping[str, bytes], path: str) -> float:
    wanted = [dict(zip(columns, row, strict=True)) for row in expected]
    return records.share(wanted, records.table(hostile.table_file(tree, path), columns), 0.6)


def _summary(expected: Mapping[str, Any], got: Any) -> float:
    """Nothing unless the total is right."""
    if not isinstance(got, dict) or not hostile.same(
        expected["total_monthly_savings"], got.get("total_monthly_savings")
    ):
        return 0.0
    return records.share(expected, got, 0.5)
