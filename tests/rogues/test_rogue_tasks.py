"""Faulty and hostile tasks through admission: the verdict, the stage, the reasons, and nothing left on the host."""

from __future__ import annotations

import json

import pytest

from workbench.admission.admit import admit
from workbench.sandboxes import get_backend

from .builders import write_task
from .cases import TASKS
from .cases_verifier import HELD_OUT
from .stage import Counted, Host, Results, adopt_orphans, chosen, plain


@pytest.fixture(scope="module")
def backend():
    return get_backend("bubblewrap")


@pytest.fixture(scope="module")
def host(backend):
    adopt_orphans()
    return Host.now()


@pytest.fixture(scope="module")
def admissions(request, backend, host, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    held_out = folder / "held-out"
    write_task(held_out / "log-forensics", {"instruction.md": HELD_OUT})

    def run(case):
        repeats = 2 if case.stage == "repeat" else 1
        return admit(case.write(folder / case.name), Counted(backend), held_out=held_out, repeats=repeats)

    results = Results(run, chosen(request, TASKS))
    yield results
    results.close()


def params(cases):
    return [pytest.param(case, id=case.name, marks=[pytest.mark.slow] * case.slow) for case in cases]


@pytest.mark.parametrize("case", params(TASKS))
def test_task_gets_its_verdict(case, admissions):
    verdict = admissions.result(case.name)
    kinds = {reason.kind for reason in verdict.reasons}
    text = "\n".join(reason.message for reason in verdict.reasons)
    seen = f"{verdict.stage} {sorted(kinds)} {dict(verdict.rewards)}\n{text[:2000]}"
    assert not verdict.infra, seen
    assert kinds <= set(case.reasons), seen
    assert bool(kinds) == bool(case.reasons), seen
    assert verdict.validated is case.valid, seen
    assert verdict.stage == case.stage, seen
    assert case.message.lower() in text.lower(), seen
    for agent, reward in case.rewards.items():
        assert set(verdict.rewards[agent]) == {reward}, seen
    for name in case.report:
        assert verdict.report[name], seen
    # A reason goes to a terminal, a log and a model: short, and nothing in it that drives a terminal.
    assert all(len(reason.message) < 10_000 and plain(reason.message) for reason in verdict.reasons), seen
    json.dumps(verdict.to_row(), allow_nan=False)


def test_nothing_is_left_on_the_host(admissions, host):
    admissions.wait()
    assert host.changes() == []
