"""The sealed answer key, from the world and its declared defects alone."""

from __future__ import annotations

import hashlib
from math import prod
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.corruption import apply
from workbench.worlds.formats import safetensors
from workbench.worlds.generators.checkpoint_consolidation import layout

VERDICT = {"bit_rot": "corrupt", "stale_overwrite": "stale", "truncated_file": "truncated"}


def truth(world: Any, defects: tuple[Defect, ...]) -> dict[str, Any]:
    tensors, data = {}, []
    for tensor in world.tensors:
        codes = bytes.fromhex(tensor.codes)
        encoded = layout.encode(tensor.dtype, codes)
        data.append(encoded)
        tensors[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "sha256": hashlib.sha256(encoded).hexdigest(),
            "sum_64": sum(codes) - 256 * sum(1 for code in codes if code > 127),
        }
    placement = [
        [piece.tensor, piece.rank, piece.local, *(str(n) for n in piece[3:]), hashlib.sha256(part).hexdigest()[:16]]
        for piece, part in layout.piece_bytes(world)
    ]
    audit = audit_of(world, defects)
    stages: dict[str, int] = {str(p): 0 for p in range(world.topology["pipeline_parallel"])}
    for piece in layout.pieces(world):
        shape = tensors[piece.tensor]["shape"]
        share = prod(shape) * (piece.stop - piece.start) // shape[max(piece.axis, 0)]
        stages[str(layout.coordinates(piece.rank)[1])] += share
    report = {
        "model": world.topology["model"],
        "iteration": world.iteration,
        "parameters": sum(prod(t.shape) for t in world.tensors),
        "tensor_bytes": sum(map(len, data)),
        "sum_64": sum(t["sum_64"] for t in tensors.values()),
        "parameters_by_stage": stages,
        "rejected": {
            kind: [row["path"] for row in audit["files"] if row["verdict"] == kind]
            for kind in ("stale", "truncated", "corrupt")
        },
        "file_sha256": hashlib.sha256(b"".join(data)).hexdigest(),
    }
    return {"audit": audit, "placement": placement, "index": {"tensors": tensors}, "report": report}


def audit_of(world: Any, defects: tuple[Defect, ...]) -> dict[str, Any]:
    """One row per copy, its verdict from the plan of defects."""
    shards = layout.shards(world, world.iteration)
    harmed = {defect.path: defect for defect in defects if defect.kind in VERDICT}
    rows = []
    for rank in world.ranks:
        for path in (rank.primary, rank.mirror):
            if not path:
                continue
            data, iteration, verdict = shards[rank.name], world.iteration, "used"
            if path == rank.mirror and rank.primary not in harmed:
                verdict = "spare"
            if path in harmed:
                data = apply({path: data}, harmed[path])[path]
                verdict = VERDICT[harmed[path].kind]
                iteration = int(safetensors.header(data)["__metadata__"]["iteration"])
            digest = hashlib.sha256(data).hexdigest()
            rows.append({"path": path, "rank": rank.name, "verdict": verdict, "sha256": digest, "iteration": iteration})
    return {"iteration": world.iteration, "files": sorted(rows, key=lambda row: row["path"])}
