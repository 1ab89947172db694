"""The strict grader of the implant family: extracted values must be exact (Tev Table 6, 9.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"sources": 2, "disassembly": 3, "configs": 5, "keychecks": 3, "report": 3}
TABLES = {"sources": "staging/sources", "disassembly": "staging/disassembly", "keychecks": "keychecks"}


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    grade = dict.fromkeys(COMPONENTS, 0.0)
    for name, stem in TABLES.items():
        rows = records.table(hostile.table_file(tree, f"output/{stem}.csv"), list(truth[name][0]))
        grade[name] = records.share(truth[name], rows)
    configs = hostile.json_file(tree, "output/configs.json")
    if isinstance(configs, dict) and list(configs) == ["samples"]:
        grade["configs"] = records.share(truth["configs"], configs["samples"])
    report = hostile.json_file(tree, "output/report.json")
    if isinstance(report, dict) and report.get("case") == truth["report"]["case"]:
        grade["report"] = records.share(truth["report"], report)
    return grade
