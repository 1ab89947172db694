"""The sealed suite of the bad day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.incident_root_cause.answers import EPISODES, TIMELINE, truth
from workbench.worlds.generators.incident_root_cause.scene import World

PATHS = {
    "episodes": "output/staging/episodes.csv",
    "timeline": "output/timeline.csv",
    "incidents": "output/incidents.json",
    "report": "output/report.json",
}


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """An episode too few, another root, the opposite decision, an event too few, a clock that was wrong."""
    blamed, decided, report = (json.loads(tree[PATHS[n]]) for n in ("incidents", "incidents", "report"))
    blamed["incidents"][0]["root"] = "network"
    decided["incidents"][0]["rollback"]["safe"] ^= True
    report["clock_offsets"][min(report["clock_offsets"])] += 1
    out = {
        "causes": {**tree, PATHS["incidents"]: json.dumps(blamed).encode()},
        "rollbacks": {**tree, PATHS["incidents"]: json.dumps(decided).encode()},
        "report": {**tree, PATHS["report"]: json.dumps(report).encode()},
    }
    for name in ("episodes", "timeline"):
        out[name] = {**tree, PATHS[name]: tree[PATHS[name]].rstrip(b"\n").rpartition(b"\n")[0] + b"\n"}
    return out


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """JSON on one line; tables with every field in quotes."""
    quoted = {
        p: b"".join(b'"' + line.replace(b",", b'","') + b'"\n' for line in tree[p].splitlines())
        for p in tree
        if p.endswith(".csv")
    }
    lines = {
        p: json.dumps(json.loads(tree[p]), separators=(",", ":"), sort_keys=True).encode()
        for p in tree
        if p.endswith(".json")
    }
    return {"quoted-tables": {**tree, **quoted}, "one-line-json": {**tree, **lines}}


def _written(answer: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        PATHS["episodes"]: csv_table.table(EPISODES, [r.values() for r in answer["episodes"]]),
        PATHS["timeline"]: csv_table.table(TIMELINE, [r.values() for r in answer["timeline"]]),
        PATHS["incidents"]: json.dumps({"incidents": answer["incidents"]}).encode(),
        PATHS["report"]: json.dumps(answer["report"]).encode(),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Clocks taken at their word; every dependency ignored; all rollbacks called safe."""
    right = truth(world, defects)
    trusting = [{**i, "rollback": {"safe": True, "reasons": []}} for i in right["incidents"]]
    return {
        "clocks-uncorrected": _written(
            {
                **truth(world, defects, shift=157),
                "report": {**right["report"], "clock_offsets": dict.fromkeys(right["report"]["clock_offsets"], 0)},
            }
        ),
        "no-dependencies": _written(truth(world, (), ())),
        "all-safe": _written(
            {
                **right,
                "incidents": trusting,
                "report": {**right["report"], "safe_rollbacks": [i["trigger"]["reference"] for i in trusting]},
            }
        ),
    }
