"""The strict grader of the memory experiments: tables, shots and fractions must be exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"decoders": 4, "codes": 2, "shots": 4, "rates": 3, "report": 2}


def _list(tree: Mapping[str, bytes], name: str, key: str) -> Any:
    value = hostile.json_file(tree, f"output/{name}.json")
    return value.get(key) if isinstance(value, dict) and list(value) == [key] else None


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    decoders = records.table(hostile.table_file(tree, "output/staging/decoders.csv"), list(truth["tables"][0]))
    shots = records.table(hostile.table_file(tree, "output/shots.csv"), list(truth["shots"][0]))
    report = hostile.json_file(tree, "output/report.json")
    ours = isinstance(report, dict) and report.get("case") == truth["report"]["case"]
    return {
        "decoders": records.share(truth["tables"], decoders),
        "codes": records.share(truth["codes"], _list(tree, "codes", "codes"), 0.3),
        "shots": records.share(truth["shots"], shots),
        "rates": records.share(truth["rates"], _list(tree, "rates", "experiments"), 0.3),
        "report": records.share(truth["report"], report) if ours else 0.0,
    }
