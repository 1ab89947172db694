"""From rollouts with advantages to tensors: which segments train, micro-batches under a token budget, two layouts.

The gradient of a step is a plain sum over tokens divided by a constant, so how the tokens are cut into micro-batches or
dealt to processes changes nothing but the order of additions. Imports torch: load lazily.

"padded": rows of about equal length, right-padded; works with every model. "packed": one row without padding, whose
position ids start again at 0 with each segment; right for models whose attention reads that (transformers' masks and
flash attention do, recurrent layers do not).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from workbench.models.segments import Segment
from workbench.training.head import Head, Wanted
from workbench.training.records import Rollout

Layout = Literal["padded", "packed"]


@dataclass(frozen=True)
class Sample:
    """One segment with the advantage of each of its tokens (0.0 where nothing was sampled). Equal lengths."""

    segment: Segment
    advantages: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.advantages) != len(self.segment.ids):
            raise ValueError(f"{len(self.advantages)} advantages for a segment of {len(self.segment.ids)} tokens")

    def __len__(self) -> int:
        return len(self.segment.ids)


@dataclass(frozen=True)
class Batch:
    """One micro-batch; every tensor is (rows, columns). attention_mask is None when packed. sampled is False on padding,
    and `columns` lists those whose logits are needed: the ones before a sampled token of any row."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    position_ids: torch.Tensor
    sampled: torch.Tensor
    logprobs: torch.Tensor
    advantages: torch.Tensor
    columns: torch.Tensor

    @property
    def size(self) -> int:
        """Tokens that the model reads, padding included."""
        return self.input_ids.numel()

    def to(self, device: torch.device | str) -> Batch:
        moved = {k: v.to(device) for k, v in self.__dict__.items() if v is not None}
        return replace(self, **moved)

    def silent(self) -> Batch:
        """The same batch with nothing to learn from: what a process computes that has no batch left, so that all of
        them take part in each collective call."""
        return replace(self, sampled=torch.zeros_like(self.sampled))


def samples_of(credited: Iterable[tuple[Rollout, Sequence[Sequence[float]]]]) -> list[Sample]:
    """The segments that move the weights. A segment whose advantages are all 0 has no gradient and is left out."""
    return [
        Sample(segment, tuple(values))
        for rollout, parts in credited
        for segment, values in zip(rollout.segments, parts, strict=True)
        if any(values)
    ]


def micro_batches(samples: Sequence[Sample], token_budget: int, layout: Layout = "padded") -> list[Batch]:
    """Cut samples into batches of at most `token_budget` tokens, padding included, longest first.

    A segment longer than the budget gets a batch of its own: it can't be cut without losing what it attends to.
    """
    if token_budget < 1:
        raise ValueError(f"token_budget counts tokens of a micro-batch, and is {token_budget}")
    if layout not in ("padded", "packed"):
        raise ValueError(f"no layout {layout!r}: there are padded and packed")
    ordered = sorted(samples, key=len, reverse=True)  # stable: equal lengths keep their order
    if layout == "packed":
        return [packed(group) for group in _bins(ordered, token_budget)]
    groups: list[list[Sample]] = []
    for sample in ordered:
        if groups and (len(groups[-1]) + 1) * len(groups[-1][0]) <= token_budget:
            groups[-1].append(sample)
        else:
            groups.append([sample])
    return [padded(group) for group in groups]


def _bins(ordered: Sequence[Sample], budget: int) -> list[list[Sample]]:
    """First fit, longest first."""
    bins: list[list[Sample]] = []
    room: list[int] = []
    for sample in ordered:
        at = next((i for i, left in enumerate(room) if len(sample) <= left), None)
        if at is None:
            bins.append([sample])
            room.append(budget - len(sample))
        else:
            bins[at].append(sample)
            room[at] -= len(sample)
    return bins


def padded(samples: Sequence[Sample]) -> Batch:
    """Rows padded on the right to the longest. Padding has id 0, position 0 and attention 0."""
    width = max(map(len, samples))
    read = [[1] * len(s) + [0] * (width - len(s)) for s in samples]
    places = [[*range(len(s))] + [0] * (width - len(s)) for s in samples]
    return _batch(samples, [[s] for s in samples], width, places, torch.tensor(read))


def packed(samples: Sequence[Sample]) -> Batch:
    """All samples in one row, positions starting again with each."""
    places = [[at for s in samples for at in range(len(s))]]
    return _batch(samples, [list(samples)], len(places[0]), places, None)


def _batch(
    samples: Sequence[Sample],
    rows: Sequence[Sequence[Sample]],
    width: int,
    places: list[list[int]],
    read: torch.Tensor | None,
) -> Batch:
    def tensor(pick, fill, dtype) -> torch.Tensor:
        out = torch.full((len(rows), width), fill, dtype=dtype)
        for number, row in enumerate(rows):
            values = [v for s in row for v in pick(s)]
            out[number, : len(values)] = torch.tensor(values, dtype=dtype)
        return out

    sampled = tensor(lambda s: s.segment.sampled, False, torch.bool)
    return Batch(
        input_ids=tensor(lambda s: s.segment.ids, 0, torch.long),
        attention_mask=read,
        position_ids=torch.tensor(places),
        sampled=sampled,
        logprobs=tensor(lambda s: s.segment.logprobs, 0.0, torch.float32),
        advantages=tensor(lambda s: s.advantages, 0.0, torch.float32),
        columns=sampled.any(0).nonzero()[:, 0] - 1,  # logits of column t say what stands in t + 1
    )


def deal(batches: Sequence[Batch], rank: int, processes: int) -> list[Batch]:
    """The batches of one process: sizes balanced, and every process has as many (silent ones fill up)."""
    ordered = sorted(batches, key=lambda b: b.size, reverse=True)
    mine = []
    for start in range(0, len(ordered), processes):
        turn = ordered[start : start + processes]
        own = (
            rank if (start // processes) % 2 == 0 else processes - 1 - rank
        )  # to and fro, so that none has all the big
        mine.append(turn[own] if own < len(turn) else turn[-1].silent())
    return mine


def token_logprobs(
    model: torch.nn.Module, batch: Batch, temperature: float = 1.0, head: Head | None = None
) -> torch.Tensor:
    """Log-probabilities of the sampled tokens under softmax(logits / temperature), float32, with gradient; shape
    (rows, columns), 0.0 where nothing was sampled. With a `head` of this model only what is sampled is computed."""
    inputs = {"input_ids": batch.input_ids, "position_ids": batch.position_ids, "use_cache": False}
    if batch.attention_mask is not None:
        inputs["attention_mask"] = batch.attention_mask
    rows, needed = batch.sampled[:, batch.columns + 1].nonzero(as_tuple=True)
    tokens = batch.columns[needed] + 1
    targets = batch.input_ids[rows, tokens]
    if head is None or head.plain:
        logits = model(**inputs, logits_to_keep=batch.columns).logits  # (rows, needed columns, vocabulary)
        scaled = logits[rows, needed].float() / temperature
        found = -torch.nn.functional.cross_entropy(scaled, targets, reduction="none")
    else:
        head.wanted = Wanted(rows, needed, targets, temperature)
        try:
            found = model(**inputs, logits_to_keep=batch.columns).logits  # (sampled,): the head answers what is wanted
        finally:
            head.wanted = None
    return torch.zeros_like(batch.logprobs).index_put((rows, tokens), found)
