"""What the learner reads: one rollout with its exact token ids, sampling log-probabilities and grades."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.models.segments import Segment

Role = Literal["solver", "proposer"]
ROLES: tuple[Role, ...] = ("solver", "proposer")
COUNTED = ("graded", "policy")  # outcomes that are the policy's own; "task" and "infra" leave the group


@dataclass(frozen=True)
class Rollout:
    """One trajectory of the policy in one role (AutoEnvScaling §3.3).

    group: solver attempts at one environment share it, or proposer trajectories of one assignment. segments: the tokens
    that are trained, cut where the record of calls broke. reward: r_S (Eq. 1) or r_P (Eq. 2), NaN when nothing was graded.
    passed: the strict verifier accepted the end. submitted: the policy issued the submit action (Tev §3.3).
    progress: Φ after each turn, in [0, 1], () when the task has no potential. outcome: as a trial's: "graded", "policy",
    "task", "infra". seconds: wall clock. task: digest of the environment. Raises ValueError where the fields disagree.
    """

    id: str
    group: str
    role: Role
    segments: tuple[Segment, ...]
    reward: float
    passed: bool = False
    submitted: bool = False
    progress: tuple[float, ...] = ()
    outcome: str = "graded"
    seconds: float = 0.0
    run_id: str = ""
    time: float = 0.0
    task: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"rollout {self.id}: role {self.role!r} is none of {', '.join(ROLES)}")
        if bad := [p for p in self.progress if not 0.0 <= p <= 1.0]:
            raise ValueError(f"rollout {self.id}: progress {bad[0]} is outside [0, 1]")
        if self.counts and not math.isfinite(self.reward):
            raise ValueError(f"rollout {self.id}: outcome {self.outcome!r} counts, so it needs a finite reward")
        for number, segment in enumerate(self.segments):
            _check(segment, f"rollout {self.id}, segment {number}")

    @property
    def counts(self) -> bool:
        """The policy's own doing; infrastructure failures and broken tasks leave the group."""
        return self.outcome in COUNTED

    @property
    def tokens(self) -> int:
        """Tokens that the policy sampled."""
        return sum(sum(s.sampled) for s in self.segments)

    @property
    def turns(self) -> int:
        """Model calls: the highest turn index of a sampled token, or of a graded turn, plus one."""
        seen = max((max(s.turns, default=-1) for s in self.segments), default=-1) + 1
        return max(seen, len(self.progress))

    def staleness(self, version: int) -> int:
        """How many updates ago the oldest of its tokens was sampled, seen from policy `version`; 0 without tokens."""
        oldest = [v for s in self.segments for v, drawn in zip(s.versions, s.sampled, strict=True) if drawn]
        return version - min(oldest, default=version)

    def to_row(self) -> dict[str, Any]:
        """One flat row for journals and DataFrames, without the tokens."""
        skip = {"segments"}
        row = {k: v for k, v in self.__dict__.items() if k not in skip}
        return row | {"progress": list(self.progress), "tokens": self.tokens, "turns": self.turns}

    def to_json(self) -> str:
        """Everything, as one line of JSON; `from_json` gives back an equal rollout."""
        row = {**self.__dict__, "segments": [s.__dict__ for s in self.segments]}
        row["reward"] = self.reward if math.isfinite(self.reward) else None
        return json.dumps(row, allow_nan=False)


def from_json(text: str) -> Rollout:
    """The rollout that `to_json` wrote. Raises ValueError when the text is something else."""
    try:
        row: Mapping[str, Any] = json.loads(text)
        segments = tuple(_segment(s) for s in row["segments"])
        reward = math.nan if row["reward"] is None else row["reward"]
        return Rollout(**{**row, "segments": segments, "reward": reward, "progress": tuple(row["progress"])})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a rollout: {type(error).__name__}: {error}") from error


def _segment(row: Mapping[str, Sequence[Any]]) -> Segment:
    return Segment(**{name: tuple(values) for name, values in row.items()})


def _check(segment: Segment, where: str) -> None:
    sizes = {name: len(values) for name, values in segment.__dict__.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"{where}: lengths differ: {sizes}")
    if segment.sampled and segment.sampled[0]:
        raise ValueError(f"{where}: its first token is sampled, but nothing stands before it to predict it from")
    for at, (drawn, logprob, turn) in enumerate(zip(segment.sampled, segment.logprobs, segment.turns, strict=True)):
        if drawn and not (math.isfinite(logprob) and logprob <= 1e-6):
            raise ValueError(
                f"{where}, token {at}: sampled with log-probability {logprob}, which is no log-probability"
            )
        if drawn and turn < 0:
            raise ValueError(f"{where}, token {at}: sampled, but in turn {turn}")
