"""Is the task broken, or did the agent break the grader? Answered by running the oracle and the no-op again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Literal

from workbench.agents import Budget
from workbench.sandboxes import Backend
from workbench.tasks import Task
from workbench.trials import Trial
from workbench.trials.run import Recorder, run_trial

Verdict = Literal["sound", "broken", "unknown"]
NOOP_BELOW = 0.5  # an empty solution must earn less (AutoEnvScaling §3.2)


@dataclass(frozen=True)
class Recheck:
    """sound: the oracle earns 1 and the no-op less than 0.5, both graded. broken: one of them does not.
    unknown: infrastructure failed, so nothing is known. message: what was found. trials: both."""

    verdict: Verdict
    message: str
    trials: tuple[Trial, ...]


def recheck(
    task: Task,
    backend: Backend,
    *,
    budget: Budget = Budget(),
    run: Recorder | None = None,
    cancel: threading.Event | None = None,
) -> Recheck:
    """Run oracle and no-op on a task once more."""
    from workbench.agents.noop import NoOp
    from workbench.agents.oracle import Oracle

    trials = tuple(
        run_trial(task, agent, backend, budget=budget, run=run, cancel=cancel) for agent in (Oracle(), NoOp())
    )
    oracle, noop = trials
    for trial in trials:
        if trial.outcome == "infra":
            return Recheck("unknown", f"{trial.agent}: {trial.reason}: {trial.message}", trials)
    if oracle.outcome != "graded" or oracle.reward != 1.0:
        return Recheck("broken", f"the reference solution earned {_words(oracle)}, not 1", trials)
    if noop.outcome != "graded" or noop.reward is None or noop.reward >= NOOP_BELOW:
        return Recheck("broken", f"doing nothing earned {_words(noop)}, not less than {NOOP_BELOW}", trials)
    return Recheck("sound", "the reference solution earned 1, doing nothing less than 0.5", trials)


def settle(trial: Trial, found: Recheck) -> Trial:
    """A trial in the light of a recheck of its task: what was charged to the policy because the grader broke becomes
    `task` when the task is broken. All else stays."""
    faulty = trial.reason in ("step-setup", "sandbox-memory") or any(grade.reward is None for grade in trial.steps)
    broke_grader = trial.outcome == "policy" and faulty
    if not broke_grader or found.verdict != "broken":
        return trial
    message = f"{trial.message}\nThe task itself is broken: {found.message}"
    return replace(trial, outcome="task", reward=None, passed=None, message=message)


def _words(trial: Trial) -> str:
    return f"{trial.reward:g}" if trial.reward is not None else f"no reward ({trial.reason}: {trial.message[:300]})"
