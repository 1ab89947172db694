"""The solver's training pool: admitted environments, with the reason why each other one stayed outside.

Admission decides what is valid and suits the solver; the pool alone decides on nearness, which never touches the
proposer's reward (in a group on one assignment a reward must not depend on the order of arrival).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Any, Literal

from workbench.admission import Admission
from workbench.tasks import Task

Status = Literal["active", "rejected", "evicted"]


@dataclass(frozen=True)
class PoolEntry:
    """One environment and its standing. rewards: the solver's latest; mean and std (population, ddof 0) are of these.

    reasons: why it is not active, as the gate's kinds; parent and direction: its assignment's; round: when it came.
    """

    id: str
    run_id: str
    time: float
    round: int
    task: str
    path: str
    digest: str
    parent: str
    direction: str
    status: Status
    reasons: tuple[str, ...] = ()
    message: str = ""
    rewards: tuple[float, ...] = ()
    proposer_reward: float | None = None

    @property
    def mean(self) -> float | None:
        return fmean(self.rewards) if self.rewards else None

    @property
    def std(self) -> float | None:
        return pstdev(self.rewards) if self.rewards else None

    def to_row(self) -> dict[str, Any]:
        row = {**self.__dict__, "reasons": list(self.reasons), "rewards": list(self.rewards)}
        return {**row, "mean": self.mean, "std": self.std}


def nearness(task: Task, others: Iterable[tuple[str, Task]]) -> tuple[float, str]:
    """(greatest similarity in [0, 1], its id) of `task` to other environments; (0.0, "") when there is none.

    The measure is the Jaccard index of the instructions' and tests' word shingles (workbench.tasks.ngrams.similarity). Two
    latent worlds are compared by what they are drawn from, 1.0 or 0.0: worlds of one generator say nearly the same words.
    """
    from workbench.tasks.ngrams import similarity

    text, own = shape(task), world_of(task)
    scored = []
    for name, other in others:
        both = own is not None and (theirs := world_of(other)) is not None
        scored.append((float(own == theirs) if both else similarity(text, shape(other)), name))
    return max(scored, default=(0.0, ""))


def world_of(task: Task) -> tuple[str, int, str, tuple[str, ...]] | None:
    """(generator, seed, tier, kinds) that [metadata.workbench.world] states; None for a task that is no latent world. Kinds that
    are not named are the world's whole plan."""
    from workbench.worlds.building import planned_kinds

    try:
        data = task.config["metadata"]["workbench"]["world"]
        name, seed, tier, kinds = str(data["generator"]), int(data["seed"]), str(data["tier"]), data.get("kinds")
        named = planned_kinds(name, seed, tier) if kinds is None else kinds  # type: ignore[arg-type]
        return name, seed, tier, tuple(sorted(set(map(str, named))))
    except (KeyError, TypeError, ValueError):
        return None


def shape(task: Task) -> str:
    """The text that says what a task asks for: its instruction and its tests' programs."""
    tests = [p for s in task.steps for p in sorted(s.tests.glob("*.py"))]
    return task.instruction + "\n" + "\n".join(p.read_text(errors="replace") for p in tests)


def entry_for(
    admission: Admission, *, path: str, parent: str, direction: str, round: int,
) -> PoolEntry:  # fmt: skip
    """The standing of a new environment by its verdict alone; `near_check` comes after."""
    kinds, message = tuple(r.kind for r in admission.reasons), "; ".join(r.message for r in admission.reasons)
    status: Status = "active" if admission.admitted else "rejected"
    rewards = admission.rewards.get("solver", [])
    return PoolEntry(
        admission.id, admission.run_id, time.time(), round, admission.task, path, admission.digest, parent, direction, status,
        kinds, message, tuple(rewards), admission.reward,
    )  # fmt: skip


def near_check(entry: PoolEntry, task: Task | None, pool: Sequence[tuple[str, Task]], too_near: float) -> PoolEntry:
    """The entry, rejected when it is too near to an environment that is already in the pool."""
    if task is None:
        return entry
    near, name = nearness(task, pool)
    if near < too_near:
        return entry
    return replace(
        entry, status="rejected", reasons=("too-near",), message=f"similarity {near:.2f} to {name} (limit {too_near})"
    )


def review(
    entry: PoolEntry, rewards: Sequence[float], *, low: float = 0.25, high: float = 0.75, min_std: float = 0.1
) -> PoolEntry:
    """The entry after new rollouts (AutoEnvScaling §3.3): evicted when it has left the calibration band."""
    fresh = replace(entry, rewards=tuple(rewards), time=time.time())
    if fresh.mean is None or (low <= fresh.mean <= high and (fresh.std or 0.0) >= min_std):
        return fresh
    why = "no-spread" if low <= fresh.mean <= high else ("too-hard" if fresh.mean < low else "too-easy")
    return replace(
        fresh, status="evicted", reasons=(why,), message=f"mean {fresh.mean:.2f}, std {fresh.std:.2f} on fresh rollouts"
    )


def entry_from_row(row: Mapping[str, Any]) -> PoolEntry:
    """The entry that `to_row` wrote."""
    fields = {k: v for k, v in row.items() if k in PoolEntry.__dataclass_fields__}
    return PoolEntry(**{**fields, "reasons": tuple(fields["reasons"]), "rewards": tuple(fields["rewards"])})
