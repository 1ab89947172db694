"""Who answers for a failure: the one place that turns errors and faulty grades into an outcome.

`graded`: a verifier's number. `policy`: the agent's doing, reward 0. `task`: the task's. `infra`: ours, never a reward.
An exception that nobody foresaw is `infra`: it must not teach a policy anything.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.models import BudgetExceeded, ContextFull, ModelError
from workbench.sandboxes import BuildError, SandboxError, SandboxOverrun, Unsupported
from workbench.tasks import TaskError
from workbench.trials import Grade, Outcome


class Cancelled(RuntimeError):
    """The trial was asked to stop; it says nothing about agent or task (`infra`)."""


class TaskFault(ValueError):
    """A task cannot be run as it is written (`task`). kind: a stable word."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Judgement:
    """outcome, the reward that goes with it (None unless graded or policy), and why (kind and message)."""

    outcome: Outcome
    reward: float | None
    reason: str = ""
    message: str = ""


def judge_error(error: BaseException, *, admitted: bool = False) -> Judgement:
    """What an exception that ended a trial means. A step of an admitted task that cannot be set up is the policy's doing:
    it left the files on which the next step's preparation failed."""
    text = str(error) or type(error).__name__
    match error:
        case ContextFull():
            return Judgement("policy", 0.0, "context", text)
        case BudgetExceeded():
            return Judgement("infra", None, "spending-cap", text)
        case ModelError():
            return Judgement("infra", None, "model", text)
        case Cancelled() | KeyboardInterrupt():
            return Judgement("infra", None, "cancelled", text)
        case Unsupported():
            return Judgement("task", None, "build-unsupported", _with_log(error))
        case BuildError():
            return Judgement("task", None, "build", _with_log(error))
        case TaskFault(kind="step-setup") if admitted:
            return Judgement("policy", 0.0, error.kind, text)
        case TaskFault():
            return Judgement("task", None, error.kind, text)
        case TaskError():
            return Judgement("task", None, "files", text)
        case SandboxOverrun() if admitted:
            return Judgement("policy", 0.0, "sandbox-memory", text)
        case SandboxOverrun():
            return Judgement("task", None, "sandbox-memory", text)
        case SandboxError():
            return Judgement("infra", None, "sandbox", text)
    where = "".join(traceback.format_exception(error))[-4000:]
    return Judgement("infra", None, "unexpected", f"{type(error).__name__}: {text}\n{where}")


def judge_grades(
    grades: Sequence[Grade], *, steps: int, strategy: Literal["mean", "final"], admitted: bool
) -> Judgement:
    """What the grades of a trial's steps mean.

    A step that was not reached (an earlier one missed its min_reward) counts 0, under "mean" and "final" alike. Harbor
    leaves such steps out of the mean, and takes the last one reached for "final": then stopping early can pay. On an
    admitted task a faulty grade is the policy's doing: its oracle and no-op were graded without trouble, so an agent
    gains nothing by breaking the grader (`recheck` can overturn it).
    """
    if broken := next((grade for grade in grades if grade.reward is None), None):
        if admitted:
            return Judgement("policy", 0.0, broken.fault, broken.message)
        return Judgement("task", None, broken.fault, broken.message)
    rewards = [grade.reward for grade in grades if grade.reward is not None]
    rewards += [0.0] * (steps - len(rewards))
    reward = rewards[-1] if strategy == "final" else math.fsum(rewards) / steps
    return Judgement("graded", reward)


def passed(grades: Sequence[Grade], reward: float | None, steps: int) -> bool | None:
    """Whether a trial passed: the verifier's own `passed` key when every step has one, else a reward of exactly 1."""
    if reward is None:
        return None
    own = [grade.rewards["passed"] for grade in grades if "passed" in grade.rewards]
    if own and len(own) == len(grades):
        return len(own) == steps and all(value == 1.0 for value in own)
    return reward >= 1.0


def _with_log(error: BuildError) -> str:
    tail = error.log.strip()[-1500:]
    return f"{error}\n{tail}" if tail and tail not in str(error) else str(error)
