"""The strict grader of the bad day: causes exact, decisions exact (Tev Table 6, 9.6: incident-cause exactness)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"episodes": 3, "causes": 4, "rollbacks": 3, "timeline": 2, "report": 2}


def _parts(incidents: Any) -> tuple[Any, Any]:
    """Incidents without their rollbacks, and (root, onset, rollback); None where any is no record."""
    if not isinstance(incidents, list) or not all(isinstance(i, dict) for i in incidents):
        return None, None
    causes = [{k: v for k, v in i.items() if k != "rollback"} for i in incidents]
    return causes, [[i.get("root"), i.get("onset_utc"), i.get("rollback")] for i in incidents]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    found = hostile.json_file(tree, "output/incidents.json")
    ours, theirs = (
        _parts(truth["incidents"]),
        _parts(found["incidents"] if isinstance(found, dict) and len(found) == 1 and "incidents" in found else None),
    )
    tables = {
        name: records.table(hostile.table_file(tree, f"output/{path}.csv"), list(truth[name][0]))
        for name, path in (("episodes", "staging/episodes"), ("timeline", "timeline"))
    }
    report = hostile.json_file(tree, "output/report.json")
    mine = isinstance(report, dict) and report.get("case") == truth["report"]["case"]
    return {
        "episodes": records.share(truth["episodes"], tables["episodes"], 0.3),
        "causes": records.share(ours[0], theirs[0], 0.3),
        "rollbacks": records.share(ours[1], theirs[1], 0.3),
        "timeline": records.share(truth["timeline"], tables["timeline"], 0.3),
        "report": records.share(truth["report"], report) if mine else 0.0,
    }
