"""Hidden suite: what each component must notice, what it must forgive, and outputs that only look right."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.patch_replay import contract

HUNKS, TABLE, TREE, REPORT = "output/hunks.jsonl", "output/patches.csv", "output/tree.json", "output/report.json"


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    hunks = [json.loads(line) for line in tree[HUNKS].decode().splitlines()]
    hunks[0]["line"] += 1
    files, report = json.loads(tree[TREE]), json.loads(tree[REPORT])
    first = report["files_changed"][0]
    files[first] = files[first].replace("\n", "\n\n", 1)
    report["lines"] += 1
    return {
        "hunks": {**tree, HUNKS: "\n".join(map(json.dumps, hunks)).encode()},
        "patches": {**tree, TABLE: b"\n".join(tree[TABLE].splitlines()[:-1])},
        "tree": {**tree, TREE: json.dumps(files).encode()},
        "report": {**tree, REPORT: json.dumps(report).encode()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(
        csv.reader(io.StringIO(tree[TABLE].decode()))
    )
    hunks = [json.loads(line) for line in tree[HUNKS].decode().splitlines()]
    files = json.loads(tree[TREE])
    return {
        "quotes and line ends": {**tree, TABLE: out.getvalue().encode()},
        "keys of hunks": {
            **tree,
            HUNKS: "\n".join(json.dumps(h, sort_keys=True, separators=(",", ":")) for h in hunks).encode(),
        },
        "files in another order": {**tree, TREE: json.dumps(dict(reversed(files.items())), indent=2).encode()},
    }


def _complete(truth: Mapping[str, Any]) -> dict[str, bytes]:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([truth["header"], *truth["patches"]])
    return {
        HUNKS: "".join(json.dumps(h) + "\n" for h in truth["hunks"]).encode(), TABLE: text.getvalue().encode(),
        TREE: json.dumps(truth["tree"]).encode(), REPORT: json.dumps(truth["report"]).encode(),
    }  # fmt: skip


def stale(world: Any, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Policies ignored, revisions mixed up, and a tree that was never touched."""
    right = contract.truth(world)
    flipped = {"skip-hunk": "drop-patch", "drop-patch": "skip-hunk"}
    first = {p.name: p for p in reversed(world.superseded)}
    others = {
        "policies the other way round": replace(
            world, patches=tuple(replace(p, policy=flipped[p.policy]) for p in world.patches)
        ),
        "superseded revisions": replace(
            world, patches=tuple(replace(first.get(p.name, p), revision=p.revision) for p in world.patches)
        ),
        "series backwards": replace(world, patches=tuple(reversed(world.patches))),
    }
    out = {name: _complete(truth) for name, other in others.items() if (truth := contract.truth(other)) != right}
    out["tree left as it was"] = _complete({**right, "tree": right["upstream"]})
    return out
