"""Assignments: the direction follows the solver's mean, the failure is the most common one, infrastructure counts nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.proposer.assignments import direction_of, failure_of, likeness, make_assignment, make_assignments
from workbench.proposer.program import seed_tasks
from workbench.tasks import load_task
from workbench.trials import Grade, Trial


def trial(
    id: str, reward: float | None, tests: dict[str, str], *, outcome="graded", ended_by="submit", reason=""
) -> Trial:
    return Trial(id=id, run_id="r", time=0.0, task="t", digest="d", agent="terminal", model="m", backend="b", outcome=outcome,
                 reward=reward, reason=reason, ended_by=ended_by, steps=(Grade(reward, tests=tests),))  # fmt: skip


@pytest.mark.parametrize(
    ("mean", "direction"),
    [(0.0, "simpler"), (0.24, "simpler"), (0.3, "simpler"), (0.5, "harder"), (0.76, "harder"), (1.0, "harder")],
)
def test_direction(mean, direction):
    assert direction_of(mean) == direction


def test_failures_that_are_alike_have_the_same_words():
    a = trial("a", 0.5, {"x": "passed", "y": "failed"})
    b = trial("b", 0.5, {"y": "failed", "x": "passed"})
    late = trial("c", 0.5, {"x": "passed", "y": "failed"}, ended_by="time")
    assert failure_of(a) == failure_of(b) == "failed y"
    assert failure_of(late) == "ended by time; failed y"
    assert failure_of(trial("d", 1.0, {"x": "passed"})) == ""


def test_a_policy_outcome_is_a_failure_with_its_reason():
    assert failure_of(trial("a", 0.0, {}, outcome="policy", reason="verifier-crash")) == "verifier-crash"


@pytest.fixture
def task(tmp_path: Path):
    return load_task(seed_tasks(tmp_path, (0,), 1)[0])


def test_infrastructure_never_lowers_the_pass_rate(task):
    trials = [trial("a", 1.0, {"x": "passed"}), trial("b", None, {}, outcome="infra"), trial("c", 0.0, {"x": "failed"})]
    made = make_assignment(task, trials, run_id="r", round=1, number=0)
    assert (made.pass_rate, made.failure, made.evidence, made.failures) == (0.5, "failed x", ("c",), {"failed x": 1})
    assert make_assignment(task, trials[1:2], run_id="r", round=1, number=0) is None


def test_parents_outside_the_band_come_first_and_ids_differ(task):
    half = [trial("a", 1.0, {}), trial("b", 0.0, {"x": "failed"})]
    never = [trial("c", 0.0, {"x": "failed"})]
    made = make_assignments([(task, half), (task, never)], 3, run_id="r", round=2)
    assert [a.pass_rate for a in made] == [0.0, 0.5, 0.0]
    assert [a.id for a in made] == ["r2-a000", "r2-a001", "r2-a002"]
    assert make_assignments([], 3, run_id="r", round=1) == []


def test_no_two_assignments_of_a_round_are_alike(tmp_path):
    tasks = [load_task(p) for p in seed_tasks(tmp_path, (0, 1), 1)]
    never = [trial("a", 0.0, {"x": "failed"}), trial("b", 0.0, {"x": "failed"}), trial("c", 0.0, {"y": "failed"})]
    always = [trial("d", 1.0, {"x": "passed"})]
    made = make_assignments([(tasks[0], never), (tasks[1], always), (tasks[0], never)], 14, run_id="r", round=1)
    assert len(made) == 14 == len({likeness(a) for a in made})
    first = [a for a in made if a.parent_digest == tasks[0].digest]
    assert [(a.failure, a.way) for a in first][:4] == [
        ("failed x", "fewer steps"), ("failed y", "fewer steps"), ("failed x", "one skill less"), ("failed y", "one skill less"),
    ]  # fmt: skip
    assert {a.direction for a in made if a.parent_digest == tasks[1].digest} == {"harder"}


def test_the_evidence_is_quoted(task):
    failed = Trial(
        **{
            **trial("a", 0.0, {"x": "failed"}).__dict__,
            "steps": (Grade(0.0, tests={"x": "failed"}, stdout="KeyError: 'k'"),),
        }
    )
    made = make_assignment(task, [failed], run_id="r", round=1, number=0)
    assert (made.failure, made.quote, made.quoted, made.evidence) == (
        "failed x; KeyError",
        "KeyError: 'k'",
        "a",
        ("a",),
    )
