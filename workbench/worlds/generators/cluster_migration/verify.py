"""The strict grader of the migration: every manifest equal in full, every decision audited once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"effective": 2, "manifests": 5, "audit": 4, "quotas": 2, "report": 2}


def _inside(tree: Mapping[str, bytes], path: str, key: str) -> Any:
    value = hostile.json_file(tree, path)
    return value[key] if isinstance(value, dict) and set(value) == {key} else None


def _quotas(expected: list[dict[str, Any]], got: Any) -> float:
    """An idle namespace's row is easy to guess, so a grade needs a right row of a used one."""
    used = [q for q in expected if q["workloads"]]
    lucky = isinstance(got, list) and any(hostile.same(q, g) for q in used for g in got[:1000])
    return records.share(expected, got, 0.4) if lucky else 0.0


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    effective, audit = (
        records.table(hostile.table_file(tree, f"output/{path}.csv"), list(truth[name][0]))
        for name, path in (("effective", "staging/effective"), ("audit", "audit"))
    )
    report = hostile.json_file(tree, "output/report.json")
    known = isinstance(report, dict) and hostile.same(truth["report"]["case"], report.get("case"))
    return {
        "effective": records.share(truth["effective"], effective),
        "manifests": records.share(truth["manifests"], _inside(tree, "output/manifests.json", "items")),
        "audit": records.share(truth["audit"], audit),
        "quotas": _quotas(truth["quotas"], _inside(tree, "output/quotas.json", "namespaces")),
        "report": records.share(truth["report"], report) if known else 0.0,
    }
