"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

from workbench.worlds.generators.building_control import reference
from workbench.worlds.generators.building_control import world as model

FILES = {
    "inputs": "staging/inputs.csv",
    "baseline": "baseline_trace.csv",
    "excitation": "excitation_trace.csv",
    "energy_saving": "energy_saving_trace.csv",
    "demand_response": "demand_response_trace.csv",
    "metrics": "metrics.csv",
}


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The last number of every table one higher; a coefficient, an objective and the held-out error too."""
    out = {}
    for name, file in FILES.items():
        head, _, last = tree[f"output/{file}"].rstrip(b"\n").rpartition(b",")
        out[name] = tree | {f"output/{file}": head + b",%d\n" % (int(last) + 1)}
    for name, file, path in (
        ("model", "model", ("c0",)),
        ("log", "controller_log", ("demand_response", "objective")),
        ("summary", "summary", ("held_out_rmse_mc",)),
    ):
        value = json.loads(tree[f"output/{file}.json"])
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] += 1
        out[name] = tree | {f"output/{file}.json": json.dumps(value).encode()}
    return out


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    spaced = {
        p: json.dumps(json.loads(d), indent=8, sort_keys=True).encode() for p, d in tree.items() if p.endswith(".json")
    }
    turned = {}
    for file in FILES.values():
        rows = list(csv.reader(io.StringIO(tree[f"output/{file}"].decode())))
        turned[f"output/{file}"] = ("\r\n".join(",".join(row[::-1]) for row in rows) + "\r\n").encode()
    return {"spaced_json": tree | spaced, "turned_columns": tree | turned}


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """The building before its refit; and a schedule whose predictions nobody fed back: the baseline shipped as both policies."""
    old = world.building["coefficients"] | {"zone_outdoor": world.building["coefficients"]["zone_outdoor"] * 2}
    before = replace(world, building=world.building | {"coefficients": old})
    tree = _last(world)
    rows = tree["output/baseline_trace.csv"].decode().splitlines()
    lazy = "\n".join([rows[0] + ",predicted_next_mc", *(row + "," for row in rows[1:])]) + "\n"
    open_loop = tree | {f"output/{name}_trace.csv": lazy.encode() for name in ("energy_saving", "demand_response")}
    return {"old_building": _last(before), "baseline_as_policy": open_loop}


def _last(world: Any) -> dict[str, bytes]:
    return list(reference.solve(model.render(world)))[-1][1]
