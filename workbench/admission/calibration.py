"""Does a task suit the solver as it is now? A few rollouts, staged, with the error of the answer stated.

AutoEnvScaling §3.2 and G.4: four rollouts; eight when the mean lies within 0.15 of an edge of the band [0.25, 0.75];
kept when the mean is in the band and the standard deviation is at least 0.1. The paper does not say which standard
deviation; ours is the population's (ddof 0). The posterior and the operating curve are our additions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from workbench.admission import Reason
from workbench.agents import Agent, Budget
from workbench.sandboxes import Backend
from workbench.statistics import (
    EDGE,
    admission_probability,
    bayesian_bootstrap_in_band,
    beta_probability_in_band,
    in_band,
    mean_std,
    near_edge,
)
from workbench.tasks import Task
from workbench.trials import Trial
from workbench.trials.batch import InfraBroken, Job, run_trials
from workbench.trials.run import Recorder, run_trial, write_down

ReasonKind = Literal["too-hard", "too-easy", "no-spread", "too-few"]
HINT_CHARACTERS = 6000  # of the reference solution shown in the diagnostic rollout


@dataclass(frozen=True)
class Calibration:
    """How a task is calibrated.

    agent_factory: makes the solver of an attempt's number, so that each can have a seed of its own; number: the number of
    rollout i (0, 1, …), i itself unless given. rollouts: at first;
    more: in all, when the mean of the first lies within `margin` of `low` or `high`. min_std: population standard
    deviation that is needed. budget: of one rollout. workers: rollouts side by side. diagnose: run one rollout with
    hints from the reference solution when the task is too hard.
    """

    agent_factory: Callable[[int], Agent]
    rollouts: int = 4
    more: int = 8
    low: float = 0.25
    high: float = 0.75
    min_std: float = 0.1
    margin: float = 0.15
    budget: Budget = Budget()
    workers: int = 2
    diagnose: bool = True
    number: Callable[[int], int] = int

    def __post_init__(self) -> None:
        if not 1 <= self.rollouts <= self.more:
            raise ValueError(f"rollouts={self.rollouts} and more={self.more}: 1 ≤ rollouts ≤ more is needed")
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(f"the band [{self.low}, {self.high}] must lie within [0, 1], its low end first")

    def operating_curve(self, pass_rates: Sequence[float]) -> list[float]:
        """Probability that a task of each true pass rate is kept, when rewards are binary."""
        rule = {"low": self.low, "high": self.high, "margin": self.margin, "min_std": self.min_std}
        return [admission_probability(p, first=self.rollouts, total=self.more, **rule) for p in pass_rates]


@dataclass(frozen=True)
class CalibrationResult:
    """trials: every attempt; rewards: of the ones that count (graded, policy). mean, std (ddof 0): NaN-free, None
    without rewards. posterior: probability that the true mean lies in the band (Beta(1, 1) prior for binary rewards;
    Bayesian bootstrap with one pseudo-observation at 0 and one at 1 for fractions). keep: None when infrastructure left
    too few rewards to tell. diagnostic: the rollout with hints; it enters neither mean nor trials."""

    trials: tuple[Trial, ...]
    rewards: tuple[float, ...]
    n: int
    mean: float | None
    std: float | None
    in_band: bool
    posterior: float | None
    keep: bool | None
    reasons: tuple[Reason, ...] = ()
    diagnostic: Trial | None = None

    def to_row(self) -> dict[str, Any]:
        row = {key: getattr(self, key) for key in ("n", "mean", "std", "in_band", "posterior", "keep")}
        row |= {"rewards": list(self.rewards), "reasons": [reason.kind for reason in self.reasons]}
        if self.diagnostic is not None:
            row["diagnostic"] = {"id": self.diagnostic.id, "reward": self.diagnostic.reward}
        return row


def calibrate(
    task: Task,
    backend: Backend,
    calibration: Calibration,
    *,
    run: Recorder | None = None,
    cancel: threading.Event | None = None,
    key: str | None = None,
) -> CalibrationResult:
    """Roll the solver out on a validated task and decide. Rollouts that infrastructure ended are replaced (twice at
    most each) and never counted; too few left gives keep=None."""
    attempts: list[Trial] = []
    message, wanted = "", calibration.rollouts

    def roll(first: int, count: int) -> list[float]:
        jobs = [
            Job(
                task,
                calibration.agent_factory(calibration.number(i)),
                backend,
                calibration.budget,
                admitted=True,
                seed=calibration.number(i),
                id=f"{key}-solver-{i}" if key else None,
                progress=False,
            )
            for i in range(first, first + count)
        ]
        trials = run_trials(jobs, workers=calibration.workers, on_trial=attempts.append, run=run, cancel=cancel)
        return [trial.reward for trial in trials if trial.counts and trial.reward is not None]

    try:
        rewards = roll(0, calibration.rollouts)
        extra = calibration.more - calibration.rollouts
        if extra and len(rewards) == calibration.rollouts and _near_edge(rewards, calibration):
            wanted = calibration.more
            rewards += roll(calibration.rollouts, extra)
    except InfraBroken as error:
        rewards, message = [t.reward for t in attempts if t.counts and t.reward is not None], str(error)
    result = decide(rewards, calibration, wanted=wanted, trials=attempts, message=message)
    if calibration.diagnose and any(reason.kind == "too-hard" for reason in result.reasons):
        hinted = _with_hints(task)
        agent = calibration.agent_factory(calibration.number(len(attempts)))
        trial = run_trial(hinted, agent, backend, budget=calibration.budget, admitted=True, cancel=cancel)
        result = replace(result, diagnostic=trial)
        if run is not None:
            write_down(trial, run, "diagnostic")
    return result


def decide(
    rewards: Sequence[float],
    calibration: Calibration,
    *,
    wanted: int | None = None,
    trials: Sequence[Trial] = (),
    message: str = "",
) -> CalibrationResult:
    """The verdict on the rewards of one task. wanted: how many there should be (all of them when None)."""
    wanted = len(rewards) if wanted is None else wanted
    mean, std = mean_std(rewards) if rewards else (None, None)
    posterior = posterior_in_band(rewards, calibration) if rewards else None
    if len(rewards) < wanted or mean is None or std is None:
        text = f"only {len(rewards)} of {wanted} rollouts came to an end; infrastructure ended the others. {message}"
        reason = Reason("too-few", text.strip(), "calibration")
        return CalibrationResult(
            tuple(trials), tuple(rewards), len(rewards), mean, std, False, posterior, None, (reason,)
        )
    reasons = tuple(_reasons(mean, std, list(rewards), calibration))
    inside = calibration.low - EDGE <= mean <= calibration.high + EDGE
    keep = in_band(mean, std, calibration.low, calibration.high, calibration.min_std)
    return CalibrationResult(
        tuple(trials), tuple(rewards), len(rewards), mean, std, inside, posterior, keep, () if keep else reasons
    )


def posterior_in_band(rewards: Sequence[float], calibration: Calibration) -> float:
    """Probability that the true mean reward lies in the band, given these rewards (see CalibrationResult)."""
    if all(reward in (0.0, 1.0) for reward in rewards):
        return beta_probability_in_band(int(sum(rewards)), len(rewards), calibration.low, calibration.high)
    return bayesian_bootstrap_in_band(rewards, calibration.low, calibration.high)


def _reasons(mean: float, std: float, rewards: list[float], calibration: Calibration) -> list[Reason]:
    seen = ", ".join(f"{reward:g}" for reward in rewards)
    band = f"[{calibration.low:g}, {calibration.high:g}]"
    found: list[tuple[ReasonKind, str]] = []
    if mean < calibration.low - EDGE:
        found.append(
            ("too-hard", f"the mean is below the band {band}: make it simpler, or give partial credit earlier")
        )
    if mean > calibration.high + EDGE:
        found.append(("too-easy", f"the mean is above the band {band}: ask for more steps or one more skill"))
    if not found and std < calibration.min_std - EDGE:
        text = f"every attempt earns about the same (standard deviation {std:.3f}, needed {calibration.min_std:g})"
        found.append(("no-spread", f"{text}: the task must be solved sometimes and not at other times"))
    return [Reason(kind, f"rewards {seen}, mean {mean:.3f}: {text}", "calibration") for kind, text in found]


def _near_edge(rewards: Sequence[float], calibration: Calibration) -> bool:
    mean, _ = mean_std(rewards)
    return near_edge(mean, calibration.low, calibration.high, calibration.margin)


def _with_hints(task: Task) -> Task:
    """The task with its reference solution told in the instruction; every file stays as it is."""
    return replace(task, steps=tuple(replace(step, instruction=_hinted(step)) for step in task.steps))


def _hinted(step: Any) -> str:
    script = step.solution / "solve.sh" if step.solution is not None else None
    if script is None or not script.is_file():
        return step.instruction
    text = script.read_text(encoding="utf-8", errors="replace")[:HINT_CHARACTERS]
    return f"{step.instruction}\n\nHints, from a solution that is known to work:\n\n{text}"
