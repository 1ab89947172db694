"""What the learner reads of a trajectory: token ids as they were sampled, with their log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A stretch of one trajectory whose tokens extend each other exactly.

    ids: all token ids in order, prompt and sampled. sampled: True where the policy sampled the token; only these are
    trained. logprobs: natural-log probability under the *sampling* distribution for sampled ids, 0.0 elsewhere.
    turns: index of the model call that sampled the token, -1 elsewhere. versions: policy version at sampling, -1
    elsewhere. All five have equal length; anything else raises ValueError.

    A trajectory is one segment as long as every call's prompt extends what was sampled before it; a history that was
    rewritten (a summary, an edited reply, a rewind) starts another one. No sampled token stands in two segments.
    """

    ids: tuple[int, ...]
    sampled: tuple[bool, ...]
    logprobs: tuple[float, ...]
    turns: tuple[int, ...]
    versions: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = [len(x) for x in (self.ids, self.sampled, self.logprobs, self.turns, self.versions)]
        if len(set(lengths)) > 1:
            raise ValueError(f"ids, sampled, logprobs, turns and versions must have one length, not {lengths}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def trained(self) -> int:
        """How many of its tokens the policy sampled."""
        return sum(self.sampled)
