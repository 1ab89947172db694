"""Hostile agents on sound tasks, in real sandboxes: outcome, reward, reason, and nothing left on the host."""

from __future__ import annotations

import json
import os

import pytest

from workbench.agents import Budget
from workbench.sandboxes import Limits, get_backend
from workbench.trials.run import run_trial

from .builders import with_pytest, write_task
from .cases import AGENTS
from .stage import SECRET, Host, Results, Shell, adopt_orphans, chosen

LIMITS = Limits(cpus=1, memory_mb=256, disk_mb=64, processes=128)


def run_case(case, backend, folder):
    pieces = {**(with_pytest() if case.pytest else {}), **case.task}
    task = write_task(folder / case.name, pieces, **case.times)
    budget = Budget(seconds=case.seconds, command_seconds=case.command_seconds)
    return run_trial(task, Shell(case.commands), backend, budget=budget, limits=LIMITS, admitted=True)


@pytest.fixture(scope="module")
def backend():
    return get_backend("bubblewrap")


@pytest.fixture(scope="module")
def host(backend):
    adopt_orphans()
    os.environ[SECRET] = "do not show this"
    yield Host.now()
    del os.environ[SECRET]


@pytest.fixture(scope="module")
def trials(request, backend, host, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    results = Results(lambda case: run_case(case, backend, folder), chosen(request, AGENTS))
    yield results
    results.close()


def params(cases):
    return [pytest.param(case, id=case.name, marks=[pytest.mark.slow] * case.slow) for case in cases]


@pytest.mark.parametrize("case", params(AGENTS))
def test_agent_gets_what_its_work_is_worth(case, trials):
    trial = trials.result(case.name)
    seen = f"{trial.outcome} {trial.reason} {trial.reward} {trial.ended_by}: {trial.message[:1500]} {[g.stdout[-800:] for g in trial.steps]}"
    assert trial.outcome in case.outcome.split("|"), seen
    assert trial.reason in case.reason.split("|"), seen
    assert trial.ended_by in case.ended_by.split("|"), seen
    assert trial.reward is not None, seen  # no agent leaves its group
    assert trial.reward <= 0.25, seen
    if case.reward is not None:
        assert trial.reward == case.reward, seen
    json.dumps(trial.to_row())


def test_nothing_is_left_on_the_host(trials, host):
    trials.wait()
    assert host.changes() == []
