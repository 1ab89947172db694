"""The strict grader of the circuit audit: structure, distributions and decisions, all exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"metrics": 3, "equivalence": 4, "distributions": 4, "verdicts": 3, "report": 2}


def _only(value: Any, key: str) -> Any:
    return value[key] if isinstance(value, dict) and len(value) == 1 and key in value else None


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    grade = {}
    for name, path in (("metrics", "staging/metrics"), ("equivalence", "equivalence")):
        rows = records.table(hostile.table_file(tree, f"output/{path}.csv"), list(truth[name][0]))
        grade[name] = records.share(truth[name], rows, 0.3)
    for name, key in (("distributions", "circuits"), ("verdicts", "verdicts")):
        found = _only(hostile.json_file(tree, f"output/{name}.json"), key)
        grade[name] = records.share(truth[name], found, 0.3)
    report = hostile.json_file(tree, "output/report.json")
    grade["report"] = records.share(truth["report"], report) if _case(report) == truth["report"]["case"] else 0.0
    return grade


def _case(report: Any) -> Any:
    return report.get("case") if isinstance(report, dict) else None
