"""Assignments from solver rollouts (AutoEnvScaling §3.1): what to build next, and why.

A parent whose solver keeps failing asks for a simpler variant, one that it solves for a harder one. Inside the
calibration band the paper does not say; we ask for the side that the mean is farther from, so that a pool keeps spreading.
No two assignments of a round are alike: a parent that comes again asks about its next failure, or another way to go.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count as numbers
from statistics import fmean

from workbench.proposer import Assignment, Direction
from workbench.proposer.failures import cluster, failure_of
from workbench.tasks import Task
from workbench.trials import Trial

NO_FAILURE = "none: every attempt passed"
WAYS: dict[Direction, tuple[str, str]] = {
    "harder": ("a longer horizon", "one more skill"),  # §3.1
    "simpler": ("fewer steps", "one skill less"),
}


def direction_of(mean: float, low: float = 0.25, high: float = 0.75) -> Direction:
    """simpler below the band, harder above it, and away from the nearer edge inside it (our choice)."""
    if mean < low:
        return "simpler"
    if mean > high:
        return "harder"
    return "harder" if mean >= (low + high) / 2 else "simpler"


def make_assignment(task: Task, trials: Sequence[Trial], *, run_id: str, round: int, number: int) -> Assignment | None:
    """The first assignment for one parent, or None when no rollout of it counts."""
    return next(_variants(task, trials, run_id, round, number), None)


def make_assignments(
    rollouts: Iterable[tuple[Task, Sequence[Trial]]], count: int, *, run_id: str, round: int
) -> list[Assignment]:
    """`count` assignments, no two alike, parents in turn; those whose solver is farthest outside the band come first,
    because there training gets nothing (their groups have no variation)."""
    lines = [_variants(task, trials, run_id, round, n) for n, (task, trials) in enumerate(rollouts)]
    begun = [(first, line) for line in lines if (first := next(line, None)) is not None]
    begun.sort(key=lambda pair: -abs(pair[0].pass_rate - 0.5))
    made: list[Assignment] = []
    seen: set[tuple[str, ...]] = set()
    pending = [first for first, _ in begun]
    while begun and len(made) < count:
        for place, (_, line) in enumerate(begun):
            while likeness(pending[place]) in seen:  # the same parent given twice
                pending[place] = next(line)
            seen.add(likeness(pending[place]))
            made.append(pending[place])
            pending[place] = next(line)
    return [replace(a, id=f"r{round}-a{n:03d}") for n, a in enumerate(made[:count])]


def likeness(assignment: Assignment) -> tuple[str, ...]:
    """What makes two assignments of a round the same one."""
    return (assignment.parent_digest, assignment.direction, assignment.failure, assignment.way)


def _variants(task: Task, trials: Sequence[Trial], run_id: str, round: int, number: int) -> Iterator[Assignment]:
    """Without end: its failures, most common first, then the other way, then variations that are told apart by words."""
    counted = [t for t in trials if t.counts]
    if not counted:
        return
    mean = fmean(t.reward or 0.0 for t in counted)
    found = cluster(counted)
    direction = direction_of(mean)
    base = Assignment(
        id=f"r{round}-a{number:03d}", run_id=run_id, time=time.time(), round=round, parent=task.name, parent_path=str(task.path),
        parent_digest=task.digest, direction=direction, pass_rate=mean, failure=NO_FAILURE,
        failures={f.words: f.count for f in found},
    )  # fmt: skip
    about = [
        replace(base, failure=f.words, evidence=f.trials[:4], quote=f.quote, quoted=f.trials[0] if f.quote else "")
        for f in found
    ] or [base]
    for again in numbers(1):
        for way in WAYS[direction]:
            more = f"{way}; variation {again}, with another subject than the ones before" if again > 1 else way
            yield from (replace(a, way=more) for a in about)


__all__ = ["direction_of", "failure_of", "likeness", "make_assignment", "make_assignments"]
