"""The plan of defects: which shards rot, which are out of date, and what the hand-kept files get wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw
from workbench.worlds.generators.checkpoint_consolidation import layout

EARLIER = bytes((value * 5 + 29) % 256 for value in range(256))  # how elements looked one save before


def earlier_world(world: Any) -> Any:
    """The model as the save before had it."""
    tensors = tuple(replace(t, codes=bytes.fromhex(t.codes).translate(EARLIER).hex()) for t in world.tensors)
    return replace(world, tensors=tensors)


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    mirrored = [rank for rank in draw.shuffled(world.ranks) if rank.mirror]
    kinds = draw.shuffled(["stale_overwrite", "bit_rot", "truncated_file"])[: min(len(mirrored), draw.integer(2, 3))]
    out = []
    for rank, kind in zip(mirrored, kinds, strict=False):
        path = rank.primary if draw.chance(0.8) else rank.mirror
        out.append(Defect(kind, path, _params(world, draw, rank, kind), f"{path}: {kind} of {rank.name}"))
    if draw.chance(0.7):
        rows = sorted(draw.sample(range(len(world.ranks)), 3))
        out.append(
            Defect(
                "scrambled_index",
                "input/shard_index.csv",
                {"column": "primary", "rows": rows, "order": [1, 2, 0]},
                "the index is wrong",
            )
        )
    if draw.chance(0.6):
        newest = max(number for number, _, _ in world.saved)
        edits = [[str(world.iteration), str(newest)]]
        out.append(
            Defect("config_drift", "input/latest.txt", {"edits": edits}, "the pointer names a save that was cut off")
        )
    if draw.chance(0.5):
        rows = sorted(draw.sample(range(len(world.saved)), 3))
        out.append(Defect("duplicate_records", "input/save_journal.jsonl", {"rows": rows}, "the journal repeats lines"))
    return tuple(out)


def _params(world: Any, draw: Draw, rank: Any, kind: str) -> dict[str, Any]:
    data = layout.shards(world, world.iteration)[rank.name]
    if kind == "stale_overwrite":
        return {"hex": layout.shards(earlier_world(world), world.saved[0][0])[rank.name].hex()}
    body = len(data) - 8 - int.from_bytes(data[:8], "little")
    if kind == "truncated_file":
        return {"bytes": draw.integer(body // 8, body // 2)}
    offsets = sorted(draw.sample(range(len(data) - body, len(data)), 3))
    return {"offsets": offsets, "masks": [1 << draw.integer(0, 7) for _ in offsets]}
