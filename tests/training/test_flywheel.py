"""The round: real sandboxes and grades, a scripted solver of known ability; killed anywhere it goes on, nothing done twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.admission.calibration import Calibration
from workbench.agents import Budget
from workbench.agents.terminal import TerminalAgent
from workbench.models import Reply
from workbench.models.scripted import Scripted
from workbench.proposer import get_proposer
from workbench.proposer.program import seed_tasks
from workbench.report import rounds
from workbench.runs.folder import new_run, open_run
from workbench.sandboxes import SandboxError, get_backend
from workbench.tasks import load_task
from workbench.training import setup
from workbench.training.flywheel import Flywheel, Settings, answer_all, play_round


def solver_of(share: float):
    """A solver whose attempts 0, 1, … solve single `write` steps for the given share of attempts: real shell, known skill."""

    def agent(i: int) -> TerminalAgent:
        able = (i * 2654435761 >> 7) % 4 < 4 * share  # attempts' numbers are hashes; this spreads them evenly

        def answer(messages) -> Reply:
            text = messages[-1]["content"]
            if text.startswith("Create the file ") and able:
                path, _, words = (
                    text.removeprefix("Create the file ").strip().removesuffix(".").partition(" containing ")
                )
                return Reply(f"```bash\necho {words} > {path}\n```")
            return Reply("```bash\nsubmit\n```")

        return TerminalAgent(Scripted(answer, name=f"solves {share}"), prompt="small")

    return agent


class Killed(BaseException):
    """What stops a run in the middle, as a signal would."""


class Dying:
    """A back end that is killed at its n-th sandbox: in the middle of a measurement, a validation or a calibration."""

    def __init__(self, backend, after: int):
        self.backend, self.left = backend, after

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def start(self, *args, **options):
        self.left -= 1
        if self.left < 0:
            raise Killed
        return self.backend.start(*args, **options)


@pytest.fixture(scope="module")
def backend():
    return get_backend("bubblewrap")


def wheel(run, backend, proposer, share=0.5) -> Flywheel:
    solver = solver_of(share)
    budget = Budget(turns=2, tokens=4096, seconds=60, command_seconds=20)
    calibration = Calibration(solver, rollouts=4, more=4, budget=budget, workers=2, diagnose=False)
    settings = Settings(assignments=3, rollouts=4, workers=4, seed=3, budget=budget, calibration=calibration)
    return Flywheel(run, backend, solver, proposer, settings, say=lambda text: None)


def parents(run):
    return [load_task(p) for p in seed_tasks(run.folder / "tasks", (1, 1, 1), 1)]


def test_one_round_admits_what_suits_the_solver_and_says_why_the_rest_does_not(tmp_path, backend):
    run = new_run("40_flywheel", {"seed": 1}, results=tmp_path).begin()
    said = []
    entries = play_round(replace(wheel(run, backend, get_proposer("program")), say=said.append), parents(run))
    active = sum(e.status == "active" for e in entries)
    assert said[-1].startswith("round 1: 3 environments, ")
    assert (f"{active} active" in said[-1]) == (active > 0)
    standing = {e.id: (e.direction, e.status, e.reasons) for e in entries}
    # it passes half of `write` and nothing else, so from `rename` the assignments ask for simpler, which is `write`
    assert {direction for direction, _, _ in standing.values()} == {"simpler"}
    assert any(status == "active" for _, status, _ in standing.values()), standing
    assert all(reasons for _, status, reasons in standing.values() if status != "active"), standing
    assert {r["group"] for r in run.rows("rollouts")} == {"parents", "admitted"}
    seeds = [t["seed"] for t in run.rows("trial") if t["agent"] == "terminal"]
    assert len(seeds) == len(set(seeds)), "fresh rollouts must not draw what earlier ones drew"
    table = rounds.pool_table(run)
    assert len(table) == 3
    assert list(table["status"]) == [e.status for e in entries]
    run.close()


def test_a_killed_round_goes_on_without_losing_or_repeating_work(tmp_path, backend):
    whole = new_run("40_flywheel", {"seed": 1}, results=tmp_path / "whole").begin()
    play_round(wheel(whole, backend, get_proposer("program")), parents(whole))
    run = new_run("40_flywheel", {"seed": 1}, results=tmp_path / "cut").begin()
    for sandboxes in (5, 11, 17, 25):
        with pytest.raises(Killed):
            play_round(wheel(run, Dying(backend, sandboxes), get_proposer("program")), parents(run))
        run.close()
        run = open_run(run.folder).begin()
    play_round(wheel(run, backend, get_proposer("program")), parents(run))
    for kind in ("rollouts", "assignment", "proposal", "admission", "standing", "trial"):
        ids = [r["id"] for r in run.rows(kind)]
        assert len(ids) == len(set(ids)), f"{kind} done twice"
        assert len(ids) == len(whole.rows(kind)), kind
    columns = ["id", "direction", "status", "reasons", "mean"]
    assert rounds.pool_table(run)[columns].equals(rounds.pool_table(whole)[columns])
    run.close()
    whole.close()


def test_a_solver_that_cannot_act_is_an_infrastructure_failure_and_no_reward(tmp_path, backend):
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    silent = wheel(run, backend, get_proposer("program"))
    silent.solver = lambda i: TerminalAgent(Scripted([], name="gone"), prompt="small")
    silent.measure(parents(run), 1, "parents")
    assert all(r["rewards"] == [] and r["infra"] == 4 for r in run.rows("rollouts"))
    assert silent.assign(parents(run), silent.measure(parents(run), 1, "parents"), 1) == []
    with pytest.raises(RuntimeError, match="none of 12 attempts on the parent environments counts; the last: model: "):
        play_round(silent, parents(run))
    run.close()


def test_a_folder_without_parents_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere holds no task"):
        setup.parents(None, {"parents": str(tmp_path / "nowhere")})


class Broken:
    """A back end that can no longer start anything."""

    def __init__(self, backend):
        self.backend = backend

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def start(self, *args, **options):
        raise SandboxError("the disk is full")


def test_an_environment_without_a_verdict_is_tried_again_on_resuming(tmp_path, backend):
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    good = wheel(run, backend, get_proposer("program"))
    before = good.measure(parents(run), 1, "parents")
    assignments = good.assign(parents(run), before, 1)
    entries = answer_all(wheel(run, Broken(backend), get_proposer("program")), assignments, [])
    assert all(e.status == "rejected" and "infra" in e.reasons and e.proposer_reward is None for e in entries)
    again = answer_all(good, assignments, [])
    assert not any("infra" in e.reasons for e in again)
    assert list(rounds.pool_table(run)["status"]) == [e.status for e in again]
    run.close()


class Noting:
    """The program proposer, whose first version of each task is never finished; it writes down what it was asked."""

    name = "noting"

    def __init__(self):
        self.inner, self.asked = get_proposer("program"), []

    def propose(self, assignment, target, *, seed, feedback=""):
        self.asked.append((assignment.id, seed, feedback, target.is_dir()))
        made = self.inner.propose(assignment, target, seed=seed)
        if not feedback:
            (target / "solution" / "solve.sh").write_text("#!/bin/bash\nfalse\n")
        return made


def test_a_refused_environment_comes_back_once_with_its_reasons_and_a_new_seed(tmp_path, backend):
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    proposer = Noting()
    loop = wheel(run, backend, proposer)
    loop.settings = replace(loop.settings, assignments=1, revisions=1)
    assignments = loop.assign(parents(run), loop.measure(parents(run), 1, "parents"), 1)
    entry = answer_all(loop, assignments, [])[0]
    (first, second), id = proposer.asked, assignments[0].id
    assert (first[0], second[0], first[2], first[3], second[3]) == (id, id, "", False, True)
    assert "[oracle] oracle-fails" in second[2]
    assert second[1] != first[1]
    assert entry.path.endswith(f"{id}-rev1")
    assert entry.reasons != ("oracle-fails",)
    run.close()
