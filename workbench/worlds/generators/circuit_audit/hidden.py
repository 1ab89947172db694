"""The sealed suite of the circuit audit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.circuit_audit.scene import World
from workbench.worlds.generators.circuit_audit.world import EQUIVALENCE, METRICS, truth

PATHS = {
    "metrics": "output/staging/metrics.csv",
    "equivalence": "output/equivalence.csv",
    "distributions": "output/distributions.json",
    "verdicts": "output/verdicts.json",
    "report": "output/report.json",
}


def _with(tree: Mapping[str, bytes], name: str, data: bytes) -> dict[str, bytes]:
    return {**tree, PATHS[name]: data}


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """One budget, one equivalence, one probability, one verdict and one total go wrong."""
    value = {n: json.loads(tree[PATHS[n]]) for n in ("distributions", "verdicts", "report")}
    first = value["distributions"]["circuits"][0]["probabilities"]
    first[min(first)] = "1/3"
    value["verdicts"]["verdicts"][-1]["outside"] += 1
    value["report"]["total_shots"] -= 1
    head, row, rest = tree[PATHS["metrics"]].split(b"\n", 2)
    lines = tree[PATHS["equivalence"]].split(b"\n")
    lines[1] = (
        lines[1].removesuffix(b"yes") + b"no" if lines[1].endswith(b"yes") else lines[1].removesuffix(b"no") + b"yes"
    )
    return {
        "metrics": _with(tree, "metrics", b"\n".join([head, row + b"0", rest])),
        "equivalence": _with(tree, "equivalence", b"\n".join(lines)),
        **{n: _with(tree, n, json.dumps(v).encode()) for n, v in value.items()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Outcomes listed in another order; tables without a last line end."""
    value = json.loads(tree[PATHS["distributions"]])
    for item in value["circuits"]:
        item["probabilities"] = dict(sorted(item["probabilities"].items(), reverse=True))
    return {
        "outcomes-shuffled": _with(tree, "distributions", json.dumps(value, indent=4).encode()),
        "no-last-line-end": {p: d.rstrip(b"\n") if p.endswith(".csv") else b"\n" + d for p, d in tree.items()},
    }


def _written(answer: Mapping[str, Any]) -> dict[str, bytes]:
    out = {
        PATHS[n]: csv_table.table(header, [r.values() for r in answer[n]])
        for n, header in (("metrics", METRICS), ("equivalence", EQUIVALENCE))
    }
    for name, key in (("distributions", "circuits"), ("verdicts", "verdicts")):
        out[PATHS[name]] = json.dumps({key: answer[name]}).encode()
    return out | {PATHS["report"]: json.dumps(answer["report"]).encode()}


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Calibrations of after the run; bits read from the other end; every transpilation trusted."""
    right = truth(world, defects)
    turned = [
        {"circuit": d["circuit"], "probabilities": {b[::-1]: p for b, p in d["probabilities"].items()}}
        for d in right["distributions"]
    ]
    trusted = [{**r, "equivalent": "yes"} for r in right["equivalence"]]
    out = {"calibrations-after-run": _written(truth(world, defects, world.run_day + 1000))}
    if turned != right["distributions"]:
        out["bits-reversed"] = _written({**right, "distributions": turned})
    if trusted != right["equivalence"]:
        out["all-equivalent"] = _written({**right, "equivalence": trusted})
    return out | {"no-leakage-check": _written({**right, "verdicts": [{**v, "outside": 0} for v in right["verdicts"]]})}
