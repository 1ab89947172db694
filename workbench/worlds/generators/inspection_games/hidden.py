"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from workbench.worlds.generators.inspection_games import reference
from workbench.worlds.generators.inspection_games import world as model
from workbench.worlds.trees import edit_json

PAYOFFS, DOMINANCE = "output/staging/payoffs.csv", "output/staging/dominance.json"
EQUILIBRIA, CERTIFICATE, COVERAGE = "output/equilibria.json", "output/certificate.csv", "output/coverage.json"


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    return {
        "payoffs": tree | {PAYOFFS: tree[PAYOFFS][:-1] + b"9\n"},
        "dominance": edit_json(tree, DOMINANCE, lambda v: v[min(v)]["routes"].append("R-0")),
        "equilibria": edit_json(tree, EQUILIBRIA, lambda v: v[min(v)].update(value="1/7")),
        "certificate": tree | {CERTIFICATE: tree[CERTIFICATE].rsplit(b"\n", 2)[0] + b"\n"},
        "coverage": edit_json(tree, COVERAGE, lambda v: v.update(unused_hours=v["unused_hours"] + 1)),
    }


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    turned = {
        path: json.dumps(dict(reversed(json.loads(tree[path]).items())), indent=3).encode()
        for path in (DOMINANCE, EQUILIBRIA, COVERAGE)
    }
    quoted = {}
    for path in (PAYOFFS, CERTIFICATE):
        lines = [",".join(f'"{cell}"' for cell in reversed(line.split(","))) for line in tree[path].decode().split()]
        quoted[path] = "\r\n".join(lines).encode()
    return {"turned_keys": tree | turned, "quoted_and_turned_columns": tree | quoted}


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """The review's corrections overlooked; and costs of routes forgotten."""
    free = tuple(replace(site, routes=tuple((code, 0) for code, _ in site.routes)) for site in world.sites)
    return {
        "corrections_ignored": _last(replace(world, corrections=())),
        "costs_forgotten": _last(replace(world, sites=free)),
    }


def _last(world: Any) -> dict[str, bytes]:
    return list(reference.solve(model.render(world)))[-1][1]
