"""Small rollouts made by hand: `turns` model calls of `width` sampled tokens, each after two tokens of prompt."""

from __future__ import annotations

import math

from workbench.models.segments import Segment
from workbench.training.records import Rollout


def segment(
    turns: int, width: int = 2, *, first: int = 0, vocabulary: int = 50, seed: int = 0, version: int = 0
) -> Segment:
    ids, sampled, logprobs, index = [], [], [], []
    for turn in range(first, first + turns):
        for at in range(2 + width):
            ids.append((7 * seed + 13 * turn + 3 * at) % vocabulary)
            drawn = at >= 2
            sampled.append(drawn)
            logprobs.append(math.log(0.2 + 0.1 * ((turn + at + seed) % 5)) if drawn else 0.0)
            index.append(turn if drawn else -1)
    versions = [version if drawn else -1 for drawn in sampled]
    return Segment(tuple(ids), tuple(sampled), tuple(logprobs), tuple(index), tuple(versions))


def rollout(name: str = "a", *, turns: int = 2, width: int = 2, group: str = "g", seed: int = 0, **fields) -> Rollout:
    fields = {"role": "solver", "reward": 0.0} | fields
    segments = fields.pop("segments", (segment(turns, width, seed=seed),) if turns else ())
    return Rollout(id=name, group=group, segments=segments, **fields)
