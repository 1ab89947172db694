"""Many trials: order, retries, the circuit breaker, and what an interrupt leaves behind."""

from __future__ import annotations

import threading
import time

import pytest

from workbench.sandboxes import SandboxError
from workbench.trials.batch import RETRIES, InfraBroken, Job, run_trials

from .small_tasks import A, B, Commands, Counting, Journal, Raises, make


def flaky_start(*numbers):
    return lambda number: SandboxError(f"start {number} failed") if number in numbers else None


def test_results_stand_in_the_order_of_the_jobs(tmp_path, backend):
    task = make(tmp_path / "t")
    delays = (0.3, 0.0, 0.15, 0.0)
    jobs = [Job(task, Commands(f"sleep {d}", *([A] if i % 2 else [])), backend, seed=i) for i, d in enumerate(delays)]
    seen = []
    trials = run_trials(jobs, workers=4, on_trial=seen.append)
    assert [trial.seed for trial in trials] == [0, 1, 2, 3]
    assert [trial.reward for trial in trials] == [0.0, 0.5, 0.0, 0.5]
    assert {trial.id for trial in seen} == {trial.id for trial in trials}


def test_one_in_ten_that_raises_stops_no_other(tmp_path, backend):
    task = make(tmp_path / "t")
    jobs = [Job(task, Raises(ValueError("at start")) if i == 3 else Commands(A, B), backend) for i in range(10)]
    journal = Journal(tmp_path / "run")
    trials = run_trials(jobs, workers=3, run=journal)
    assert [trial.outcome for trial in trials] == ["graded"] * 3 + ["infra"] + ["graded"] * 6
    assert [trial.reward for trial in trials if trial.counts] == [1.0] * 9
    assert trials[3].reward is None
    assert "ValueError: at start" in trials[3].message
    assert len(journal.rows) == 10 + RETRIES  # every attempt is kept


def test_a_task_that_cannot_be_loaded_stops_no_other(tmp_path, backend):
    jobs = [Job(tmp_path / "nothing-here", Commands(), backend), Job(make(tmp_path / "t"), Commands(A), backend)]
    trials = run_trials(jobs)
    assert [trial.outcome for trial in trials] == ["task", "graded"]


def test_only_infrastructure_is_tried_again(tmp_path, backend):
    task = make(tmp_path / "t")
    counting = Counting(backend, flaky_start(1))
    attempts = []
    (trial,) = run_trials([Job(task, Commands(A), counting)], on_trial=attempts.append)
    assert [attempt.outcome for attempt in attempts] == ["infra", "graded"]
    assert (trial.outcome, trial.reward) == ("graded", 0.5)
    broken = make(tmp_path / "u", {"tests/test.sh": "#!/bin/bash\nexit 1\n"})
    attempts.clear()
    run_trials([Job(broken, Commands(A), backend)], on_trial=attempts.append)
    assert [attempt.outcome for attempt in attempts] == ["task"]


def test_broken_infrastructure_stops_everything_and_says_so(tmp_path, backend):
    task = make(tmp_path / "t")
    counting = Counting(backend, lambda number: SandboxError("no space left on the host"))
    with pytest.raises(InfraBroken, match="no space left on the host") as caught:
        run_trials([Job(task, Commands(A), counting) for _ in range(50)], workers=2)
    assert len(caught.value.trials) == 50
    assert caught.value.trials[-1] is None
    assert len(counting.started) < 20


def test_a_callback_that_fails_ends_the_batch(tmp_path, backend):
    task = make(tmp_path / "t")

    def fail(trial):
        raise RuntimeError("disk full while writing down")

    with pytest.raises(RuntimeError, match="writing down"):
        run_trials([Job(task, Commands(A), backend) for _ in range(4)], on_trial=fail)


def test_an_interrupt_ends_running_commands_and_leaves_no_sandbox(tmp_path, backend):
    task = make(tmp_path / "t", agent=60)
    counting = Counting(backend)
    running = threading.Event()

    def interrupt(sandbox):
        running.wait(10)
        raise KeyboardInterrupt

    long = Commands(lambda sandbox: running.set(), "sleep 60")
    jobs = [Job(task, agent, counting) for agent in (Commands(interrupt), long, *[Commands("sleep 60")] * 9)]
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_trials(jobs, workers=2)
    assert time.monotonic() - began < 20
    assert len(counting.started) < 5
    assert len(set(counting.stopped)) == len(counting.started)


@pytest.mark.parametrize("workers", [0, -1])
def test_workers(workers):
    with pytest.raises(ValueError, match="at least 1"):
        run_trials([], workers=workers)
