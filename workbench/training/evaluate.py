"""Held-out evaluation on any folder of Harbor tasks: avg@k, pass@k, S@k, with intervals; before and after, paired.

avg@k: mean reward of k attempts at each task, then over tasks. pass@k: probability that at least one of k attempts passes the strict
verifier, unbiased from n ≥ k attempts. S@k: the best graded score of k attempts (Tev Table 2), as its expectation over all
subsets of k. Attempts that infrastructure ended are played again once; what stays ungraded is shown both left out and as 0 (the
rule of leaderboards). Intervals resample tasks, not attempts: 95 %, percentile bootstrap.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from workbench.agents import Agent, Budget
from workbench.runs.progress import progress
from workbench.sandboxes import Backend
from workbench.statistics import bootstrap_interval, pass_at_k
from workbench.tasks import Task, load_task
from workbench.training.groups import number_of
from workbench.trials.run import run_trial

NO_CHANGE = "no detectable change"


@dataclass(frozen=True)
class TaskScore:
    """What the attempts at one task came to. rewards: graded ones. passes: of them. attempts: all, ungraded ones too."""

    task: str
    digest: str
    rewards: tuple[float, ...]
    passes: int
    attempts: int

    @property
    def ungraded(self) -> int:
        return self.attempts - len(self.rewards)

    def to_row(self) -> dict[str, Any]:
        return {**self.__dict__, "rewards": list(self.rewards)}


@dataclass(frozen=True)
class Evaluation:
    """Scores of one policy version on one set of tasks."""

    name: str
    version: int
    k: int
    scores: tuple[TaskScore, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        scores = [s.to_row() for s in self.scores]
        return {
            "set": self.name,
            "version": self.version,
            "k": self.k,
            **summary(self.scores, self.k),
            "scores": scores,
        }


def summary(scores: Sequence[TaskScore], k: int) -> dict[str, Any]:
    """avg, pass@1, pass@k, S@k, each over the tasks with enough graded attempts; *_zero: ungraded attempts count 0."""
    graded = [s for s in scores if s.rewards]
    deep = [s for s in graded if len(s.rewards) >= k]
    means = [fmean(s.rewards) for s in graded]
    zeros = [math.fsum(s.rewards) / s.attempts for s in scores if s.attempts]
    passes = [s.passes / len(s.rewards) for s in graded]
    return {
        "tasks": len(scores), "attempts": sum(s.attempts for s in scores), "ungraded": sum(s.ungraded for s in scores),
        "avg": _mean(means), "avg_interval": bootstrap_interval(means), "avg_zero": _mean(zeros),
        "pass@1": _mean(passes), "pass@1_interval": bootstrap_interval(passes),
        f"pass@{k}": _mean([pass_at_k(len(s.rewards), s.passes, k) for s in deep]),
        f"S@{k}": _mean([best_of_k(s.rewards, k) for s in deep]),
    }  # fmt: skip


def best_of_k(rewards: Sequence[float], k: int) -> float:
    """Expected best of k attempts drawn without replacement from these; the maximum when there are exactly k."""
    ordered = sorted(rewards)
    whole = math.comb(len(ordered), k)
    if not whole:
        raise ValueError(f"S@{k} cannot be estimated from {len(ordered)} attempts")
    return math.fsum(r * math.comb(i, k - 1) for i, r in enumerate(ordered)) / whole


def difference(before: Sequence[TaskScore], after: Sequence[TaskScore]) -> dict[str, Any]:
    """After minus before, paired by task: mean difference of mean rewards, its 95 % bootstrap interval over tasks, verdict in words."""
    old = {s.digest: fmean(s.rewards) for s in before if s.rewards}
    new = {s.digest: fmean(s.rewards) for s in after if s.rewards}
    pairs = [new[d] - old[d] for d in old if d in new]
    low, high = bootstrap_interval(pairs)
    rose = "rose" if low > 0 else "fell" if high < 0 else NO_CHANGE
    return {"pairs": len(pairs), "difference": _mean(pairs), "low": low, "high": high, "verdict": rose if pairs else "nothing to compare"}  # fmt: skip


def tasks_of(folder: str | Path) -> list[Task]:
    """The tasks of a folder (a checkout of Terminal-Bench, an exported corpus): every sub-folder with a task.toml, at most two levels down. ValueError when
    there is none; TaskError of the first that is faulty."""
    found = sorted({*Path(folder).glob("*/task.toml"), *Path(folder).glob("*/*/task.toml")})
    if not found:
        raise ValueError(f"{folder} holds no task: give a folder of folders, each with a task.toml")
    return [load_task(path.parent) for path in found]


def evaluate(
    tasks: Sequence[Task],
    solver: Callable[[int], Agent],
    backend: Backend,
    *,
    k: int = 1,
    name: str = "held-out",
    version: int = 0,
    seed: int = 0,
    budget: Budget = Budget(),
    workers: int = 8,
    cancel: threading.Event | None = None,
) -> Evaluation:
    """k attempts at each task, side by side. solver: seed → agent; equal tasks get equal seeds whatever the version, so that two
    evaluations differ by their weights only."""

    def attempt(task: Task, number: int) -> tuple[float | None, bool]:
        for retry in range(2):
            drawn = number_of(seed, "evaluation", task.digest, number, retry)
            trial = run_trial(task, solver(drawn), backend, budget=budget, admitted=True, seed=drawn, cancel=cancel,
                              progress=False)  # fmt: skip
            if trial.counts:
                return trial.reward, bool(trial.passed)
        return None, False

    jobs = [(task, number) for task in tasks for number in range(k)]
    with (
        progress(label=f"evaluation: {name}, policy {version}", total=len(jobs)) as done,
        ThreadPoolExecutor(workers, thread_name_prefix="evaluation") as threads,
    ):
        results = []
        for found in threads.map(lambda job: attempt(*job), jobs):
            results.append(found)
            done()
    scores = [_score(task, results[at * k : (at + 1) * k]) for at, task in enumerate(tasks)]
    return Evaluation(name, version, k, tuple(scores))


def _score(task: Task, found: Sequence[tuple[float | None, bool]]) -> TaskScore:
    rewards = tuple(r for r, _ in found if r is not None)
    return TaskScore(task.name, task.digest, rewards, sum(p for _, p in found), len(found))


def scores_of(row: Mapping[str, Any]) -> list[TaskScore]:
    """The scores of an `evaluation` row."""
    return [TaskScore(**{**s, "rewards": tuple(s["rewards"])}) for s in row["scores"]]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
