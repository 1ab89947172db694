"""The sealed suite of the memory experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.code_decoding.answers import SHOTS, TABLE, answer
from workbench.worlds.generators.code_decoding.scene import World

DECODERS, SHOT, CODES, RATES, REPORT = (
    f"output/{n}" for n in ("staging/decoders.csv", "shots.csv", "codes.json", "rates.json", "report.json")
)


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """A correction, a distance, a shot, a rate and a total go wrong."""
    codes, rates, report = (json.loads(tree[p]) for p in (CODES, RATES, REPORT))
    codes["codes"][0]["distance_z"] += 1
    rates["experiments"][-1]["rate"] = "1/2" if rates["experiments"][-1]["rate"] != "1/2" else "1/3"
    report["failures"] += 1
    return {
        "decoders": {**tree, DECODERS: tree[DECODERS].replace(b",1,0\n", b",1,1\n", 1)},
        "shots": {**tree, SHOT: tree[SHOT].replace(b",ok\n", b",failure\n", 1)},
        "codes": {**tree, CODES: json.dumps(codes).encode()},
        "rates": {**tree, RATES: json.dumps(rates).encode()},
        "report": {**tree, REPORT: json.dumps(report).encode()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Whole numbers written as decimals; tables with carriage returns and quotes around the first field."""
    whole = tree[CODES].decode().replace('"k": 1', '"k": 1.0').replace('"k":1', '"k":1.0')
    quoted = {
        p: b"".join(b'"' + line.replace(b",", b'",', 1) + b"\r\n" for line in tree[p].splitlines())
        for p in (DECODERS, SHOT)
    }
    return {"decimals": {**tree, CODES: whole.encode()}, "quoted": {**tree, **quoted}}


def _output(found: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        DECODERS: csv_table.table(TABLE, [r.values() for r in found["tables"]]),
        SHOT: csv_table.table(SHOTS, [r.values() for r in found["shots"]]),
        CODES: json.dumps({"codes": found["codes"]}).encode(),
        RATES: json.dumps({"experiments": found["rates"]}).encode(),
        REPORT: json.dumps(found["report"]).encode(),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """The planned states instead of the prepared ones; the last round instead of the majority; readouts without corrections."""
    planned = replace(world, runs=tuple(replace(r, prepared=1 - r.prepared) for r in world.runs))
    return {
        "planned-states": _output(answer(planned)),
        "last-round": _output(answer(world, last_round=True)),
        "uncorrected": _output(answer(world, decode=False)),
    }
