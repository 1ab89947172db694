"""Whole runs with something rotten in them: sound trials end well, and infrastructure is never a reward of 0."""

from __future__ import annotations

import threading

import pytest

from workbench.agents import Budget
from workbench.sandboxes import SandboxError, get_backend
from workbench.trials.batch import InfraBroken, Job, run_trials
from workbench.trials.run import run_trial

from .builders import QUARTER, TOML, write_task
from .stage import Host, Shell, adopt_orphans


class Faulty:
    """A real back end whose starts number `failing` raise `error` instead."""

    def __init__(self, backend, failing, error):
        self.backend, self.failing, self.error = backend, failing, error
        self.count, self.lock = 0, threading.Lock()

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def start(self, image, **options):
        with self.lock:
            number, self.count = self.count, self.count + 1
        if number in self.failing:
            raise self.error
        return self.backend.start(image, **options)


class Falls:
    """An agent whose own program fails on the host, after `commands`."""

    name, model = "falls", ""

    def __init__(self, error, *commands):
        self.error, self.commands = error, commands

    def run(self, task, step, sandbox, budget):
        for command in self.commands:
            sandbox.exec(command, timeout=5)
        raise self.error


@pytest.fixture(scope="module")
def backend():
    return get_backend("bubblewrap")


@pytest.fixture(scope="module", autouse=True)
def host(backend):
    adopt_orphans()
    before = Host.now()
    yield before
    assert before.changes() == []


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("runs") / "sound")


HONEST = Shell((QUARTER,))


def test_one_task_in_ten_raises_at_start_and_nine_are_graded(task, backend, tmp_path):
    bad = write_task(tmp_path / "bad", {"task.toml": TOML.replace("cpus = 1", "cpus = 'many'").format(
        name="bad", agent_timeout=5.0, verifier_timeout=5.0, build_timeout=5.0)})  # fmt: skip
    jobs = [Job(bad if number == 4 else task, HONEST, backend) for number in range(10)]
    trials = run_trials(jobs, workers=4)
    assert [t.outcome for t in trials] == ["graded"] * 4 + ["task"] + ["graded"] * 5
    assert trials[4].reward is None
    assert "cpus" in trials[4].message
    assert {t.reward for t in trials if t.counts} == {0.25}


def test_a_sandbox_that_does_not_start_is_infrastructure_and_tried_again(task, backend):
    attempts = []
    faulty = Faulty(backend, {0}, SandboxError("no room on the host"))
    (trial,) = run_trials([Job(task, HONEST, faulty)], on_trial=attempts.append)
    assert [(t.outcome, t.reward) for t in attempts] == [("infra", None), ("graded", 0.25)]
    assert "no room" in attempts[0].message
    assert trial is attempts[-1]


def test_nine_in_ten_that_do_not_start_stop_the_run_and_are_no_zeros(task, backend):
    faulty = Faulty(backend, set(range(3, 1000)), SandboxError("the host is gone"))
    with pytest.raises(InfraBroken, match="the host is gone") as caught:
        run_trials([Job(task, HONEST, faulty) for _ in range(40)], workers=2, retries=0)
    ended = [t for t in caught.value.trials if t is not None]
    assert len(ended) < 40
    assert {t.reward for t in ended if not t.counts} == {None}
    assert {t.outcome for t in ended} <= {"graded", "infra"}


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug of ours"), OSError(28, "No space left on device"), MemoryError()]
)
def test_what_nobody_foresaw_is_infrastructure(task, backend, error):
    trial = run_trial(task, Falls(error, QUARTER), backend, admitted=True)
    assert (trial.outcome, trial.reward, trial.counts) == ("infra", None, False)
    assert type(error).__name__ in trial.message


def test_a_grader_that_does_not_start_is_infrastructure_even_on_an_admitted_task(task, backend):
    trial = run_trial(task, HONEST, Faulty(backend, {1}, SandboxError("no grader")), admitted=True)
    assert (trial.outcome, trial.reward) == ("infra", None)


def test_an_agent_that_overruns_its_time_reads_as_time_not_as_done(task, backend):
    trial = run_trial(task, Shell((QUARTER, "sleep 1000")), backend, budget=Budget(seconds=1.0), admitted=True)
    assert trial.ended_by == "time"
    assert not trial.submitted
    assert trial.reward == 0.25  # graded on what there was
    assert 1.0 <= trial.agent_seconds < 10  # measured, not the configured one


def test_an_agent_that_does_nothing_at_all_is_graded_with_its_real_time(task, backend):
    trial = run_trial(task, Shell(()), backend, budget=Budget(seconds=900), admitted=True)
    assert (trial.outcome, trial.reward, trial.ended_by, trial.turns) == ("graded", 0.0, "submit", 0)
    assert trial.agent_seconds < 5


def test_the_same_attack_on_a_task_that_is_not_admitted_is_the_tasks_fault(task, backend, tmp_path):
    from .cases import AGENTS

    case = next(case for case in AGENTS if case.name == "crashes-test-sh")
    folder = write_task(tmp_path / "fragile", case.task)
    outcomes = {flag: run_trial(folder, Shell(case.commands), backend, admitted=flag) for flag in (True, False)}
    assert [(outcomes[f].outcome, outcomes[f].reward) for f in (True, False)] == [("policy", 0.0), ("task", None)]


def test_two_dozen_hostile_and_honest_trials_side_by_side_do_not_touch_each_other(task, backend):
    from .cases import AGENTS

    race = next(case for case in AGENTS if case.name == "reward-after")
    agents = [Shell(race.commands) if number % 2 else Shell(()) for number in range(24)]
    trials = run_trials([Job(task, agent, backend, admitted=True) for agent in agents], workers=8)
    assert [t.reward for t in trials] == [0.0, 0.25] * 12
