"""What is collected: a plan for each group, an attempt for each rollout, and what came of it. Plain data, no torch."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from workbench.training.records import Role, Rollout
from workbench.trials import Trial


@dataclass(frozen=True)
class Plan:
    """A group to collect: `size` attempts at one thing (AutoEnvScaling §3.3).

    name: of the group, unique in a run. what: the id of the pool's environment, or of the assignment. size: rollouts that
    are wanted; more are played only in place of those that infrastructure ended."""

    name: str
    role: Role
    what: str
    size: int

    def attempts(self, seed: int) -> list[Attempt]:
        return [Attempt(f"{self.name}-{i}", self, i, number_of(seed, self.name, i)) for i in range(self.size)]


@dataclass(frozen=True)
class Attempt:
    """One rollout to play. seed: of its sampling; a retry draws from another one (`retry` of how many before it)."""

    id: str
    plan: Plan
    number: int
    seed: int
    retry: int = 0

    def again(self) -> Attempt:
        return Attempt(self.id, self.plan, self.number, number_of(self.seed, "retry", self.retry + 1), self.retry + 1)


@dataclass(frozen=True)
class Played:
    """What an attempt came to. trial: the solver's, for assignments and reviews. extra: of the role, plain data (a
    proposer's verdict). Both may be empty; they never enter an advantage."""

    rollout: Rollout
    trial: Trial | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Group:
    """A group that is being collected. version: of the policy when it began."""

    plan: Plan
    version: int
    played: dict[int, Played] = field(default_factory=dict)
    infra: int = 0

    @property
    def complete(self) -> bool:
        return len(self.played) == self.plan.size

    @property
    def results(self) -> list[Played]:
        """In the order of their numbers, so that nothing depends on who finished first."""
        return [self.played[i] for i in sorted(self.played)]

    @property
    def rollouts(self) -> list[Rollout]:
        return [p.rollout for p in self.results]


def number_of(*parts: object) -> int:
    """A seed in [0, 2³¹) that only these words give: no two attempts draw alike."""
    return zlib.crc32("/".join(map(str, parts)).encode()) % 2**31


def mean_length(groups: Sequence[Group]) -> float:
    """Mean sampled tokens of a rollout that counts; NaN without any. The first groups to finish are the short ones, so
    accepted and collected lengths are logged beside each other."""
    lengths = [r.tokens for g in groups for r in g.rollouts if r.counts]
    return fmean(lengths) if lengths else math.nan
