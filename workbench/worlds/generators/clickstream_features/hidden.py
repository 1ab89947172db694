"""Hidden suite: what each component must notice, what it must forgive, and outputs that only look right."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.clickstream_features import contract

TABLES = {"events": "output/staging/events.csv", "plans": "output/plan_history.csv", "features": "output/features.csv"}


def _swap(tree: Mapping[str, bytes], path: str, old: str, new: str) -> dict[str, bytes]:
    text = tree[path].decode()
    return {**tree, path: text.replace(old, new, 1).encode()}


def _bump(tree: Mapping[str, bytes], path: str, column: int) -> dict[str, bytes]:
    """One more in a cell of the last row."""
    *rows, last = tree[path].decode().splitlines()
    cells = last.split(",")
    cells[column] = str(int(cells[column]) + 1)
    return {**tree, path: ("\n".join([*rows, ",".join(cells)]) + "\n").encode()}


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    sessions = tree["output/sessions.jsonl"].decode().splitlines()
    first = json.loads(sessions[0])
    first["end_ms"] += 1
    return {
        "events": _bump(tree, TABLES["events"], 4),
        "plan_history": _swap(tree, TABLES["plans"], ",\n", ",2099-01-01 00:00:00\n"),
        "sessions": {**tree, "output/sessions.jsonl": "\n".join([json.dumps(first), *sessions[1:]]).encode()},
        "features": _bump(tree, TABLES["features"], 6),
        "audit": _swap(tree, "output/audit.json", '"rows": ', '"rows": 1'),
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(
        csv.reader(io.StringIO(tree[TABLES["features"]].decode()))
    )
    sessions = [json.loads(line) for line in tree["output/sessions.jsonl"].decode().splitlines()]
    turned = "\n".join(json.dumps(dict(reversed(s.items())), separators=(",", ":")) for s in sessions)
    return {
        "quotes and line ends": {**tree, TABLES["features"]: out.getvalue().encode()},
        "json keys and blanks": {**tree, "output/sessions.jsonl": turned.encode()},
        "indented audit": {**tree, "output/audit.json": json.dumps(json.loads(tree["output/audit.json"]), indent=3, sort_keys=True).encode()},
    }  # fmt: skip


def _complete(truth: Mapping[str, Any]) -> dict[str, bytes]:
    """Outputs in the public form, from what a truth says."""
    out = {}
    for name, path in TABLES.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([truth["columns"][name], *truth[name]])
        out[path] = text.getvalue().encode()
    out["output/sessions.jsonl"] = "".join(json.dumps(s) + "\n" for s in truth["sessions"]).encode()
    return {**out, "output/audit.json": json.dumps(truth["audit"]).encode()}


def stale(world: Any, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Clocks believed, uploads left out, midnight closing sessions: each as if the world were another."""
    wrong_clock = {batch: ahead for batch, _, ahead in world.offsets}
    last = max(e[2] for e in world.events)
    skewed = tuple((*e[:2], min(e[2] + wrong_clock[e[5]] * 1000, last), *e[3:]) for e in world.offline)
    return {
        "device clocks believed": _complete(contract.truth(replace(world, offline=skewed), defects)),
        "uploads ignored": _complete(contract.truth(replace(world, offline=()), defects)),
        "half the session gap": _complete(contract.truth(replace(world, gap_minutes=1), defects)),
    }
