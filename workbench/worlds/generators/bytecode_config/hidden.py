"""The sealed suite of the implant family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.bytecode_config.scene import World
from workbench.worlds.generators.bytecode_config.world import CHECKS, LISTING, SOURCES, truth

SOURCE, LIST, CHECK, CONFIG, REPORT = (
    f"output/{name}"
    for name in ("staging/sources.csv", "staging/disassembly.csv", "keychecks.csv", "configs.json", "report.json")
)


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """One wrong digest, instruction, key, verdict and count."""
    configs, report = json.loads(tree[CONFIG]), json.loads(tree[REPORT])
    configs["samples"][0]["key"] = configs["samples"][0]["key"][::-1] + "0"
    report["repaired"] = [*report["repaired"], "none"]
    return {
        "sources": {**tree, SOURCE: b"\n".join(tree[SOURCE].split(b"\n")[:-2]) + b"\n"},
        "disassembly": {**tree, LIST: tree[LIST].replace(b",no\n", b",yes\n", 1)},
        "configs": {**tree, CONFIG: json.dumps(configs).encode()},
        "keychecks": {**tree, CHECK: tree[CHECK].replace(b"reject", b"accept").replace(b"accept", b"reject", 1)},
        "report": {**tree, REPORT: json.dumps(report).encode()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Keys sorted and no blanks; Windows line ends and a byte order mark."""
    return {
        "sorted-json": {
            p: json.dumps(json.loads(d), sort_keys=True).encode() if p.endswith(".json") else d for p, d in tree.items()
        },
        "windows-csv": {
            p: b"\xef\xbb\xbf" + d.replace(b"\n", b"\r\n") if p.endswith(".csv") else d for p, d in tree.items()
        },
    }


def _written(answer: Mapping[str, Any]) -> dict[str, bytes]:
    tables = {SOURCE: (SOURCES, "sources"), LIST: (LISTING, "disassembly"), CHECK: (CHECKS, "keychecks")}
    out = {path: csv_table.table(header, [r.values() for r in answer[name]]) for path, (header, name) in tables.items()}
    out[CONFIG] = json.dumps({"samples": answer["configs"]}).encode()
    return out | {REPORT: json.dumps(answer["report"]).encode()}


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Damage overlooked; an entry taken for the other; repeatable fields read as single ones."""
    unaware = truth(world, tuple(d for d in defects if d.kind != "bit_rot"))
    answer = truth(world, defects)
    last = [{**c, "config": {**c["config"], "c2": c["config"]["c2"][-1:]}} for c in answer["configs"]]
    every = [{**r, "reachable": "yes"} for r in answer["disassembly"]]
    return {
        "rot-overlooked": _written(unaware),
        "last-host-only": _written({**answer, "configs": last}),
        "all-code-reachable": _written({**answer, "disassembly": every}),
    }
