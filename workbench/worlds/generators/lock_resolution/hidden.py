"""Hidden suite: what each component must notice, what it must forgive, and outputs that only look right."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.lock_resolution import contract, model
from workbench.worlds.trees import edit_json

LOCK, CHANGES = "output/lock.json", "output/changes.csv"


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    excluded = tree["output/excluded.jsonl"].decode().splitlines()
    rows = tree[CHANGES].decode().splitlines()
    return {
        "excluded": {**tree, "output/excluded.jsonl": "\n".join(excluded[1:]).encode()},
        "candidates": edit_json(tree, "output/candidates.json", lambda v: max(v.values(), key=len).pop()),
        "versions": edit_json(tree, LOCK, lambda v: v["packages"][0].update(version="0.0.1")),
        "lock": edit_json(tree, LOCK, lambda v: v["install_order"].reverse()),
        "changes": {**tree, CHANGES: "\n".join(rows[:-1]).encode()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(
        csv.reader(io.StringIO(tree[CHANGES].decode()))
    )
    lines = [json.loads(line) for line in tree["output/excluded.jsonl"].decode().splitlines()]
    return {
        "keys and blanks of the lock": {**tree, LOCK: json.dumps(json.loads(tree[LOCK]), sort_keys=True, indent=5).encode()},
        "quotes and line ends": {**tree, CHANGES: out.getvalue().encode()},
        "compact lines": {**tree, "output/excluded.jsonl": "\n".join(json.dumps(x, separators=(",", ":"), sort_keys=True) for x in lines).encode()},
    }  # fmt: skip


def _complete(truth: Mapping[str, Any]) -> dict[str, bytes]:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([truth["header"], *truth["changes"]])
    return {
        "output/excluded.jsonl": "".join(json.dumps(row) + "\n" for row in truth["excluded"]).encode(),
        "output/candidates.json": json.dumps(truth["candidates"]).encode(),
        LOCK: json.dumps(truth["lock"]).encode(),
        CHANGES: text.getvalue().encode(),
    }


def stale(world: Any, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """The registry as it looks to someone who skips a source."""
    right = contract.truth(world)
    text_order = {name: sorted(versions, reverse=True) for name, versions in right["candidates"].items()}
    behind = dict(world.stale)
    old = [{**p, "version": behind.get(p["name"], p["version"])} for p in right["lock"]["packages"]]
    out = {
        "yanks forgotten": replace(world, yanks=()),
        "unyanks forgotten": replace(world, yanks=tuple(y for y in world.yanks if y[3] == "yank")),
        "advisories forgotten": replace(world, advisories=()),
    }
    done = {}
    for name, other in out.items():
        try:
            truth = contract.truth(other)
        except model.Unsolvable:
            continue
        if truth != right:
            done[name] = _complete(truth)
    done["versions sorted as text"] = (
        _complete({**right, "candidates": text_order})
        if text_order != right["candidates"]
        else _complete({**right, "excluded": []})
    )
    done["the old lock again"] = (
        _complete({**right, "lock": {**right["lock"], "packages": old}})
        if old != right["lock"]["packages"]
        else _complete({**right, "changes": []})
    )
    return done
