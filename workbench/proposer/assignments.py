"""Assignments from solver rollouts (AutoEnvScaling §3.1): what to build next, and why.

A parent whose solver keeps failing asks for a simpler variant, one that it solves for a harder one. Inside the
calibration band the paper does not say; we ask for the side that the mean is farther from, so that a pool keeps spreading.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from workbench.proposer import Assignment, Direction
from workbench.tasks import Task
from workbench.trials import Trial


def failure_of(trial: Trial) -> str:
    """In words, how a trial fell short; "" when it passed everything. Two trials that failed alike give the same words."""
    if trial.reward is not None and trial.reward >= 1:
        return ""
    failed = sorted(name for name, status in trial.tests.items() if status != "passed")
    parts = []
    if trial.ended_by and trial.ended_by != "submit":
        parts.append(f"ended by {trial.ended_by}")
    if failed:
        parts.append("failed " + ", ".join(failed[:6]) + (f" and {len(failed) - 6} more" if len(failed) > 6 else ""))
    elif trial.reason:
        parts.append(trial.reason)
    return "; ".join(parts) or f"reward {trial.reward}"


def direction_of(mean: float, low: float = 0.25, high: float = 0.75) -> Direction:
    """simpler below the band, harder above it, and away from the nearer edge inside it (our choice)."""
    if mean < low:
        return "simpler"
    if mean > high:
        return "harder"
    return "harder" if mean >= (low + high) / 2 else "simpler"


def make_assignment(task: Task, trials: Sequence[Trial], *, run_id: str, round: int, number: int) -> Assignment | None:
    """One assignment for one parent, or None when no rollout of it counts."""
    counted = [t for t in trials if t.counts]
    if not counted:
        return None
    mean = fmean(t.reward or 0.0 for t in counted)
    failures = Counter(words for t in counted if (words := failure_of(t)))
    common = failures.most_common(1)[0][0] if failures else ""
    evidence = tuple(t.id for t in counted if failure_of(t) == common)[:4]
    return Assignment(
        id=f"r{round}-a{number:03d}", run_id=run_id, time=time.time(), round=round, parent=task.name, parent_path=str(task.path),
        parent_digest=task.digest, direction=direction_of(mean), pass_rate=mean, failure=common or "none: every attempt passed",
        failures=dict(failures), evidence=evidence,
    )  # fmt: skip


def make_assignments(
    rollouts: Iterable[tuple[Task, Sequence[Trial]]], count: int, *, run_id: str, round: int
) -> list[Assignment]:
    """`count` assignments, parents in turn; those whose solver is farthest outside the band come first, because there
    training gets nothing (their groups have no variation)."""
    made = [
        a for n, (task, trials) in enumerate(rollouts)
        if (a := make_assignment(task, trials, run_id=run_id, round=round, number=n)) is not None
    ]  # fmt: skip
    made.sort(key=lambda a: -abs(a.pass_rate - 0.5))
    if not made:
        return []
    turns = [made[i % len(made)] for i in range(count)]
    return [Assignment(**{**a.__dict__, "id": f"r{round}-a{n:03d}"}) for n, a in enumerate(turns)]
