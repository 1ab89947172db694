"""The sealed suite: what each part of the grade must notice, and what it must not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.capture_triage.answers import artifact_of, truth
from workbench.worlds.generators.capture_triage.scene import World, cipher
from workbench.worlds.trees import edit_json

SESSIONS = "output/staging/sessions.csv"


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """A wrong byte, record or field for every component."""
    data = tree["output/artifact.bin"]
    return {
        "sessions": {**tree, SESSIONS: tree[SESSIONS].replace(b",201\n", b",200\n")},
        "findings": edit_json(tree, "output/findings.json", lambda v: v["findings"].pop()),
        "timeline": edit_json(tree, "output/timeline.json", lambda v: v["events"].reverse()),
        "artifact": {**tree, "output/artifact.bin": data[:-5] + b"0" + data[-4:-1] + b"x"},
        "report": edit_json(
            tree, "output/report.json", lambda v: v.update(duplicate_packets=v["duplicate_packets"] + 1)
        ),
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The same facts in other bytes."""
    compact = {
        p: json.dumps(json.loads(d), sort_keys=True, separators=(",", ":")).encode() if p.endswith(".json") else d
        for p, d in tree.items()
    }
    quoted = b"".join(
        b",".join(b'"' + c + b'"' for c in line.split(b",")) + b"\r\n" for line in tree[SESSIONS].splitlines()
    )
    return {"compact-json": compact, "quoted-csv": {**tree, SESSIONS: quoted}}


def _written(answer: Mapping[str, Any], document: bytes) -> dict[str, bytes]:
    rows = [",".join(answer["sessions"][0]), *(",".join(r.values()) for r in answer["sessions"])]
    return {
        SESSIONS: ("\n".join(rows) + "\n").encode(),
        "output/findings.json": json.dumps({"findings": answer["findings"]}).encode(),
        "output/timeline.json": json.dumps({"events": answer["timeline"]}).encode(),
        "output/artifact.bin": document,
        "output/report.json": json.dumps(answer["report"]).encode(),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Last month's indicators in force; the document left encrypted; the sign-in clock taken at its word."""
    document = b"".join(artifact_of(world)[1])
    key = bytes.fromhex(next(s.response for s in world.sessions if " key=" in s.response).split("key=")[1])
    old = replace(world, indicators=tuple((d, a, "") for d, a, _ in world.indicators))
    late = replace(world, auth=tuple((t + 97, a, u, r) for t, a, u, r in world.auth))
    return {
        "retired-indicators": _written(truth(old, defects), document),
        "still-encrypted": _written(truth(world, defects), cipher(document, key)),
        "uncorrected-clock": _written(truth(late, defects), document),
    }
