"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

from workbench.worlds.generators.evaluation_audit import reference
from workbench.worlds.generators.evaluation_audit import world as model
from workbench.worlds.trees import edit_json

RUNS, METRICS, PARITY = "output/staging/runs.csv", "output/staging/run_metrics.csv", "output/parity.csv"
BOARD, REPORT = "output/leaderboard.json", "output/report.json"


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    return {
        "runs": tree | {RUNS: tree[RUNS].replace(b"superseded", b"counted", 1)},
        "run_metrics": tree | {METRICS: tree[METRICS].rsplit(b"\n", 2)[0] + b"\n"},
        "leaderboard": edit_json(tree, BOARD, lambda v: v["models"].reverse()),
        "parity": tree | {PARITY: tree[PARITY].replace(b"mismatch", b"match", 1)},
        "report": edit_json(tree, REPORT, lambda v: v.update(errata_applied=v["errata_applied"] + 1)),
    }


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    sorted_keys = {
        p: json.dumps(json.loads(d), sort_keys=True, indent=4).encode() for p, d in tree.items() if p.endswith(".json")
    }
    quoted = {}
    for path, data in tree.items():
        if path.endswith(".csv"):
            text = io.StringIO()
            rows = [row[::-1] for row in csv.reader(io.StringIO(data.decode()))]
            csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
            quoted[path] = text.getvalue().encode()
    return {"sorted_keys": tree | sorted_keys, "quoted_and_turned_columns": tree | quoted}


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """Errata ignored, settings of runs ignored, or the claims believed."""
    tree = model.render(replace(world, errata=()))
    prompt, shots, temperature = world.settings
    loose = tuple(replace(r, prompt=prompt, shots=shots, temperature=temperature) for r in world.runs)
    return {
        "errata_ignored": _last(tree),
        "settings_ignored": _last(model.render(replace(world, runs=loose))),
        "claims_believed": _believed(_last(model.render(world))),
    }


def _believed(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Every claim confirmed."""
    rows = list(csv.reader(io.StringIO(tree[PARITY].decode())))
    told = [rows[0], *([r[0], r[1], r[2], r[2], "0.00", "match", ""] for r in rows[1:])]
    return tree | {PARITY: ("\n".join(map(",".join, told)) + "\n").encode()}


def _last(tree: dict[str, bytes]) -> dict[str, bytes]:
    return list(reference.solve(tree))[-1][1]
