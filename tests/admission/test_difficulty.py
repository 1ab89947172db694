"""The difficulty protocol: subsamples, pass@k, agent time; and the scripted population that it can be checked with."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from workbench.admission import difficulty, partial_solver
from workbench.admission.difficulty import Protocol
from workbench.agents import Budget
from workbench.runs import new_run
from workbench.tasks import load_task
from workbench.trials import Trial
from workbench.trials.run import run_trial
from workbench.worlds import build
from workbench.worlds.export import export_environment


def trial(task: str, passed: bool = False, submitted: bool = True, **more) -> Trial:
    known = {"outcome": "graded", "reward": float(passed), "agent_seconds": 60.0, "progress_seconds": 0.0, "turns": 3}
    fixed = {"id": "x", "run_id": "", "time": 0.0, "digest": "", "agent": "a", "model": "", "backend": "b"}
    return Trial(task=task, passed=passed, submitted=submitted, **fixed, **{**known, **more})


def test_a_subsample_keeps_the_shares_of_its_strata():
    strata = {f"{domain}-{n}": domain for domain, count in (("a", 60), ("b", 30), ("c", 10)) for n in range(count)}
    chosen = difficulty.subsample(strata, 20, seed=1)
    assert Counter(strata[name] for name in chosen) == {"a": 12, "b": 6, "c": 2}
    assert chosen == difficulty.subsample(dict(reversed(strata.items())), 20, seed=1)
    assert chosen != difficulty.subsample(strata, 20, seed=2)


def test_remainders_fill_a_subsample_and_too_many_are_all():
    strata = {name: name[0] for name in ("a1", "a2", "b1", "b2", "c1", "c2")}
    chosen = difficulty.subsample(strata, 4)
    assert len(chosen) == 4
    assert max(Counter(strata[n] for n in chosen).values()) <= 2
    assert difficulty.subsample(strata, 99) == sorted(strata)
    assert difficulty.subsample({}, 5) == []
    with pytest.raises(ValueError, match="subsample of -1"):
        difficulty.subsample(strata, -1)


def test_pass_at_k_by_counting_every_choice_of_k_rollouts():
    results = {"t1": [1, 0, 0, 1], "t2": [0, 0, 0, 0], "t3": [1, 1, 1, 1]}
    trials = [trial(task, passed=bool(r)) for task, found in results.items() for r in found]
    row = difficulty.summary(trials, Protocol(rollouts=4, k=2), "c")
    counted = [sum(any(pair) for pair in combinations(r, 2)) / 6 for r in results.values()]
    assert row["pass_at_k"] == pytest.approx(sum(counted) / 3)
    assert row["pass_at_1"] == pytest.approx(6 / 12)
    assert (row["solved_none"], row["tasks"], row["rollouts"]) == (1, 3, 12)


def test_passing_needs_submission_and_the_verifier():
    trials = [trial("t", passed=True, submitted=False, ended_by="turns"), trial("t", passed=True), trial("t")]
    row = difficulty.summary(trials, Protocol(rollouts=3, k=1))
    assert row["pass_at_1"] == pytest.approx(1 / 3)
    assert row["ended_by_limit"] == pytest.approx(1 / 3)


def test_infrastructure_failures_leave_a_task_under_sampled_and_out_of_pass_at_k():
    broken = trial("t1", outcome="infra", reward=None)
    trials = [trial("t1", passed=True), broken, trial("t2"), trial("t2")]
    row = difficulty.summary(trials, Protocol(rollouts=2, k=2))
    assert (row["under_sampled"], row["left_out"], row["pass_at_k"]) == (1, 1, 0.0)
    assert row["pass_at_1"] == pytest.approx(1 / 3)


def test_agent_time_leaves_the_looks_at_phi_out():
    trials = [
        trial("t", agent_seconds=130.0, progress_seconds=10.0),
        trial("t", agent_seconds=61.0, progress_seconds=1.0),
    ]
    row = difficulty.summary(trials, Protocol(rollouts=2, k=1))
    assert (row["agent_minutes_median"], row["agent_minutes_mean"]) == (1.5, 1.5)


def test_nothing_measured_is_nan_and_not_zero():
    row = difficulty.summary([], Protocol(rollouts=1, k=1))
    assert row["pass_at_1"] != row["pass_at_1"]
    with pytest.raises(ValueError, match="pass@4 needs at least 4"):
        Protocol(rollouts=2, k=4)


def test_the_population_solves_as_often_as_it_is_told():
    drawn = [partial_solver.draw_behaviour(0.2, "task", seed) for seed in range(2000)]
    solves = sum(b.name == "solves" for b in drawn)
    assert 330 < solves < 470  # 400 expected, standard deviation 18
    assert all(b.submits and b.moves[-1] in (1.0, None) for b in drawn if b.name == "solves")
    assert all(max([m for m in b.moves if m], default=0) < 1 for b in drawn if b.name != "solves")
    with pytest.raises(ValueError, match="skill 2"):
        partial_solver.draw_behaviour(2, "x")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return load_task(export_environment(build("retail_warehouse", 1, "unit"), tmp_path_factory.mktemp("w") / "t"))


def test_figure_4_comes_out_of_real_executions(backend, world):
    """Two submit an incomplete result, five use up their turns, one is complete and never submits; regress shows as a fall of Phi."""
    chosen = [
        a
        for a in partial_solver.group()
        if a.behaviour.name in ("submits half", "falls back", "complete, never submitted")
    ]
    half, fell, complete = [run_trial(world, agent, backend, budget=Budget(turns=8), admitted=True) for agent in chosen]
    assert (half.submitted, half.passed, half.turns) == (True, False, 5)
    assert 0 < half.phi < 1
    assert max(fell.progress) > fell.phi > 0
    assert (complete.phi, complete.passed, complete.submitted, complete.ended_by) == (1.0, True, False, "turns")
    assert [difficulty.passes(t) for t in (half, fell, complete)] == [False, False, False]


def test_partial_solvers_say_what_they_need(backend, tmp_path):
    from workbench.tasks.scaffold import scaffold

    found = run_trial(scaffold(tmp_path / "t"), partial_solver.PartialSolver(), backend, budget=Budget(turns=2))
    assert found.ended_by == "error"
    assert "latent worlds only" in found.episodes[0].error


@pytest.mark.slow
def test_an_evaluation_is_not_paid_for_twice(backend, world, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path))
    rules = Protocol(rollouts=2, k=2, budget=Budget(turns=6), seed=5)
    with new_run("60_try") as run:
        first = difficulty.evaluate([world], difficulty.evaluators("partial", skill=1.0), backend, rules, run=run)
        again = difficulty.evaluate([world], difficulty.evaluators("partial", skill=1.0), backend, rules, run=run)
        assert len(run.rows("trial")) == 2
    assert [t.id for t in first] == [t.id for t in again]
    assert difficulty.per_task(first, rules)[0]["rollouts"] == 2


def test_a_model_is_an_evaluator_too(tmp_path):
    (tmp_path / "replies.json").write_text('["```bash\\nsubmit\\n```"]')
    agents = difficulty.evaluators(f"scripted:{tmp_path / 'replies.json'}", seed=3)
    assert [agents(i).sampling.seed for i in range(2)] == [3 * 1_000_003, 3 * 1_000_003 + 1]
    assert agents(0).sampling.temperature == 1.0
