"""The difficulty protocol of Tev A.8: pass@1, unbiased pass@k and agent time of one evaluator on a fixed subsample of a corpus.

Evaluator, budget and subsample are fixed and the same for every corpus that is compared. Tev: 60 tool calls, 8 rollouts a task, temperature
1.0, 100 tasks drawn with seed 20260915 and stratified by domain. Passing is terminal (§3.1): submitted, and accepted by the verifier.
Choices of ours: a stratum's share of the subsample goes by largest remainders; infrastructure failures leave a task under-sampled, and an
under-sampled task has no pass@k (both are counted); intervals are percentile bootstraps over tasks.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from workbench.admission.partial_solver import PartialSolver
from workbench.agents import Agent, Budget
from workbench.models import Sampling, get_model
from workbench.runs.progress import Progress
from workbench.sandboxes import Backend
from workbench.statistics import bootstrap_interval, pass_at_k
from workbench.tasks import Task, load_task
from workbench.trials import Trial
from workbench.trials.batch import Job, run_trials
from workbench.trials.run import Recorder

SEED = 20260915  # Tev A.8
LIMITS = ("turns", "tokens", "time", "context")


@dataclass(frozen=True)
class Protocol:
    """rollouts: of each task; k: of pass@k. budget: of one rollout. seed: rollout i of every task draws with `seed` and i."""

    rollouts: int = 8
    k: int = 8
    budget: Budget = Budget(turns=60, tokens=1 << 20, seconds=7200.0)
    workers: int = 2
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.rollouts:
            raise ValueError(f"pass@{self.k} needs at least {self.k} rollouts a task, not {self.rollouts}")


def subsample(strata: Mapping[str, Hashable], size: int, seed: int = SEED) -> list[str]:
    """`size` of the names (all, when there are no more), each stratum by its share; a pure function of names, strata and seed.

    strata: name -> stratum, say a task's domain. Whole shares first, then the largest remainders, one each. ValueError for a negative size.
    """
    if size < 0:
        raise ValueError(f"a subsample of {size}: a size from 0 up is needed")
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for name in sorted(strata, key=lambda n: _place(seed, n)):
        groups[strata[name]].append(name)
    size = min(size, len(strata))
    exact = {key: size * len(names) / len(strata) for key, names in groups.items()}
    take = {key: math.floor(share) for key, share in exact.items()}
    by_remainder = sorted(exact, key=lambda key: (take[key] - exact[key], _place(seed, key)))
    for key in by_remainder[: size - sum(take.values())]:
        take[key] += 1
    return sorted(name for key, names in groups.items() for name in names[: take[key]])


def _place(seed: int, name: object) -> str:
    return hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()


def evaluators(
    spec: str, *, seed: int = SEED, skill: float = 0.3, sampling: Sampling | None = None, prompt: str = "standard", **options: Any
) -> Callable[[int], Agent]:  # fmt: skip
    """The evaluator of rollout i, from one string: "partial" (a scripted population that completes a task with probability `skill`; latent
    worlds only), or any model of workbench.models.get_model as a terminal agent. options: the model's (usd caps what it may spend)."""
    if spec == "partial":
        return lambda i: PartialSolver(skill=skill, seed=seed * 1_000_003 + i)
    from workbench.agents.terminal import TerminalAgent

    model = get_model(spec, **options)
    wanted = sampling or Sampling(max_tokens=16_384, temperature=1.0)

    def agent(i: int) -> Agent:
        drawn = Sampling(**{**wanted.__dict__, "seed": (seed * 1_000_003 + i) % 2**31})
        return TerminalAgent(model, sampling=drawn, prompt=prompt)

    return agent


def evaluate(
    tasks: Sequence[Task | str | Path],
    agents: Callable[[int], Agent],
    backend: Backend,
    protocol: Protocol = Protocol(),
    *,
    run: Recorder | None = None,
    label: str = "difficulty",
) -> list[Trial]:
    """Every rollout of the protocol. With a run, each is in its journal, and those that it already holds are not run again.

    agents: the evaluator of rollout i, the same for every task. Raises InfraBroken as run_trials does.
    """
    evaluator = [agents(i) for i in range(protocol.rollouts)]
    loaded = [task if isinstance(task, Task) else load_task(task) for task in tasks]
    jobs = [
        Job(task, agent, backend, protocol.budget, admitted=True, seed=i, id=_trial_id(label, task, agent, i))
        for task in loaded
        for i, agent in enumerate(evaluator)
    ]
    with Progress(label=label, total=len(jobs)) as bar:
        return run_trials(jobs, workers=protocol.workers, run=run, on_trial=lambda trial: bar.update(1, trial.task))


def _trial_id(label: str, task: Task, agent: Agent, i: int) -> str:
    text = "\0".join((label, task.name, task.digest, agent.name, agent.model, str(i)))
    return f"{label}-{hashlib.sha256(text.encode()).hexdigest()[:12]}-{i}"


def passes(trial: Trial) -> bool:
    """Terminal success: the policy submitted, and the verifier accepted."""
    return bool(trial.passed and trial.submitted)


def agent_seconds(trial: Trial) -> float:
    """Wall clock from the agent's first action to its last step: model calls, retries and commands; no set-up, no test run (A.8).

    The looks at Phi between turns are the grader's, so they are taken off; the last of them fell outside already (tens of milliseconds).
    """
    return max(trial.agent_seconds - trial.progress_seconds, 0.0)


def per_task(trials: Iterable[Trial], protocol: Protocol = Protocol()) -> list[dict[str, Any]]:
    """A row a task: rollouts that count, passes, pass@1, pass@k (None when under-sampled), medians of turns and seconds, mean final Phi."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.task].append(trial)
    rows = []
    for task, found in groups.items():
        counted = [trial for trial in found if trial.counts]
        n, c = len(counted), sum(map(passes, counted))
        phis = [trial.phi for trial in counted if trial.phi is not None]
        rows.append(
            {
                "task": task,
                "rollouts": n,
                "passes": c,
                "pass_at_1": c / n if n else None,
                "pass_at_k": pass_at_k(n, c, protocol.k) if n >= protocol.k else None,
                "submitted": sum(trial.submitted for trial in counted),
                "phi": fmean(phis) if phis else None,
                "turns": median(trial.turns for trial in counted) if counted else None,
                "agent_seconds": median(map(agent_seconds, counted)) if counted else None,
                "left_out": len(found) - n,
            }
        )
    return rows


def summary(trials: Sequence[Trial], protocol: Protocol = Protocol(), name: str = "") -> dict[str, Any]:
    """One row of Tev Table 1: pass@1 (mean over rollouts), pass@k (macro over tasks), agent minutes; and what A.7 and A.8 say beside it.

    low, high: 95 % bootstrap over tasks of each task's own rate. solved_none: tasks without a pass. ended_by_limit: share of rollouts that a
    limit ended. under_sampled: tasks with fewer counting rollouts than k. left_out: rollouts that infrastructure or a broken task ended.
    """
    rows = per_task(trials, protocol)
    counted = [trial for trial in trials if trial.counts]
    first = [row["pass_at_1"] for row in rows if row["pass_at_1"] is not None]
    best = [row["pass_at_k"] for row in rows if row["pass_at_k"] is not None]
    minutes = [agent_seconds(trial) / 60 for trial in counted]
    low, high = bootstrap_interval(first)
    best_low, best_high = bootstrap_interval(best)
    return {
        "corpus": name,
        "tasks": len(rows),
        "rollouts": len(counted),
        "pass_at_1": _mean([float(passes(trial)) for trial in counted]),
        "pass_at_1_low": low,
        "pass_at_1_high": high,
        "k": protocol.k,
        "pass_at_k": _mean(best),
        "pass_at_k_low": best_low,
        "pass_at_k_high": best_high,
        "agent_minutes_median": median(minutes) if minutes else math.nan,
        "agent_minutes_mean": _mean(minutes),
        "turns_median": median(trial.turns for trial in counted) if counted else math.nan,
        "turns_max": max((trial.turns for trial in counted), default=0),
        "submitted": _mean([float(trial.submitted) for trial in counted]),
        "ended_by_limit": _mean([float(trial.ended_by in LIMITS) for trial in counted]),
        "solved_none": sum(row["passes"] == 0 for row in rows if row["rollouts"]),
        "under_sampled": sum(row["rollouts"] < protocol.k for row in rows),
        "left_out": len(trials) - len(counted),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
