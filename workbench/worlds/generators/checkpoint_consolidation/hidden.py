"""What must lower a component, what must not matter, and plausible outputs that are wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.corruption import apply
from workbench.worlds.formats import safetensors
from workbench.worlds.generators.checkpoint_consolidation import harm, reference
from workbench.worlds.generators.checkpoint_consolidation import world as model
from workbench.worlds.trees import edit_json

AUDIT, PLACED = "output/staging/shard_audit.json", "output/staging/placement.csv"
MODEL, INDEX, REPORT = "output/model.safetensors", "output/tensor_index.json", "output/report.json"


def causes(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """One mutation per component."""
    lines = tree[PLACED].decode().splitlines()
    data = bytearray(tree[MODEL])
    data[-3] ^= 64
    return {
        "shard_audit": edit_json(tree, AUDIT, lambda v: v["files"][0].update(verdict="unknown")),
        "placement": tree | {PLACED: ("\n".join(lines[:-1]) + "\n").encode()},
        "model": tree | {MODEL: bytes(data)},
        "tensor_index": edit_json(tree, INDEX, lambda v: v["tensors"].pop(min(v["tensors"]))),
        "report": edit_json(tree, REPORT, lambda v: v.update(parameters=v["parameters"] + 1)),
    }


def rewrites(tree: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    compact = {
        p: json.dumps(json.loads(d), separators=(",", ":")).encode() for p, d in tree.items() if p.endswith(".json")
    }
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerows(csv.reader(io.StringIO(tree[PLACED].decode())))
    _, tensors = safetensors.read(tree[MODEL])
    turned = safetensors.write((n, *t) for n, t in reversed(tensors.items()))
    return {
        "compact_json": tree | compact,
        "quoted_csv": tree | {PLACED: text.getvalue().encode()},
        "reordered_tensors": tree | {MODEL: turned},
    }


def stale(world: Any, defects: tuple) -> dict[str, dict[str, bytes]]:
    """The save before; and sound copies ignored: the answer when one shard's rotten primary is trusted."""
    old = harm.earlier_world(world)
    rotten = min(world.ranks, key=lambda rank: rank.name)
    clean = model.render(world)
    bad = apply(clean, Defect("bit_rot", rotten.primary, {"offsets": [len(clean[rotten.primary]) - 1], "masks": [128]}))
    manifest = json.loads(bad[f"input/manifests/{rotten.name}.json"])
    manifest["sha256"] = hashlib.sha256(bad[rotten.primary]).hexdigest()
    bad[f"input/manifests/{rotten.name}.json"] = json.dumps(manifest).encode()
    out = {"previous_save": _last(model.render(old)), "rotten_primary": _last(bad)}
    topology = world.topology | {"vocabulary": world.topology["padded_vocabulary"]}
    padded = clean | {"input/topology.json": json.dumps(topology).encode()}
    return out | {"padding_kept": _last(padded)}


def _last(tree: dict[str, bytes]) -> dict[str, bytes]:
    return list(reference.solve(tree))[-1][1]
