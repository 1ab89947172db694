"""Who answers for what: an infrastructure failure is never a reward, and breaking the grader is no way out."""

from __future__ import annotations

import pytest

from workbench.models import BudgetExceeded, ContextFull, ModelError
from workbench.sandboxes import BuildError, SandboxError, Unsupported
from workbench.tasks import TaskError
from workbench.trials import Grade
from workbench.trials.outcomes import Cancelled, TaskFault, judge_error, judge_grades, passed


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (SandboxError("gone"), "infra", "sandbox"),
        (ModelError("server gone"), "infra", "model"),
        (BudgetExceeded("cap"), "infra", "spending-cap"),
        (ContextFull("full"), "policy", "context"),
        (Cancelled("stop"), "infra", "cancelled"),
        (BuildError("line 3", log="no space"), "task", "build"),
        (Unsupported("use docker"), "task", "build-unsupported"),
        (TaskFault("host-variable", "no"), "task", "host-variable"),
        (TaskError("t", []), "task", "files"),
        (ZeroDivisionError("ours"), "infra", "unexpected"),
        (OSError(28, "No space left on device"), "infra", "unexpected"),
        (MemoryError(), "infra", "unexpected"),
    ],
)
def test_errors(error, outcome, reason):
    judged = judge_error(error)
    assert (judged.outcome, judged.reason) == (outcome, reason)
    assert judged.reward == (0.0 if outcome == "policy" else None)
    assert judged.message


def test_an_unknown_error_says_where():
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("in our own code")
    assert "test_outcomes.py" in judge_error(caught.value).message


def test_a_build_error_brings_the_end_of_its_log():
    assert judge_error(BuildError("line 3: RUN make", log="x" * 9000 + "cc: not found")).message.endswith(
        "cc: not found"
    )


def test_step_setup_on_an_admitted_task_is_the_policys():
    fault = TaskFault("step-setup", "setup.sh ended with 1")
    assert judge_error(fault).outcome == "task"
    assert judge_error(fault, admitted=True).reward == 0.0


def test_broken_grades():
    broken = [Grade(1.0), Grade(None, fault="verifier-crash", message="ended with 137")]
    task = judge_grades(broken, steps=2, strategy="mean", admitted=False)
    assert (task.outcome, task.reward, task.reason) == ("task", None, "verifier-crash")
    policy = judge_grades(broken, steps=2, strategy="mean", admitted=True)
    assert (policy.outcome, policy.reward, policy.reason) == ("policy", 0.0, "verifier-crash")


@pytest.mark.parametrize(
    ("rewards", "steps", "strategy", "expected"),
    [
        ([1.0], 1, "mean", 1.0),
        ([1.0, 0.5], 2, "mean", 0.75),
        ([0.5], 2, "mean", 0.25),
        ([1.0, 0.5], 2, "final", 0.5),
        ([0.9], 2, "final", 0.0),
    ],
)
def test_steps(rewards, steps, strategy, expected):
    judged = judge_grades([Grade(r) for r in rewards], steps=steps, strategy=strategy, admitted=True)
    assert (judged.outcome, judged.reward) == ("graded", expected)


def test_passed_uses_the_verifiers_own_word():
    own = Grade(0.9, rewards={"reward": 0.9, "passed": 1.0})
    assert passed([own], 0.9, 1) is True
    assert passed([own], 0.45, 2) is False  # the second step was not reached
    assert passed([Grade(0.9)], 0.9, 1) is False
    assert passed([Grade(1.0)], 1.0, 1) is True
    assert passed([], None, 1) is None
