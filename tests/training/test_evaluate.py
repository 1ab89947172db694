"""Evaluation: the measures by hand, pairs before and after, and a real folder of tasks with a real solver."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean

import pytest

from tests.training.learning_parts import parents
from workbench.agents.terminal import TerminalAgent
from workbench.models import Reply
from workbench.models.scripted import Scripted
from workbench.sandboxes import get_backend
from workbench.training.evaluate import TaskScore, best_of_k, difference, evaluate, scores_of, summary, tasks_of
from workbench.training.evaluate_tasks import held_out_tasks
from workbench.worlds.partitions import partition_of


def score(name, *rewards, attempts=None):
    return TaskScore(name, name, rewards, sum(r == 1 for r in rewards), attempts or len(rewards))


def test_best_of_k_is_the_mean_over_all_subsets():
    rewards = [0.1, 0.9, 0.4, 0.4]
    for k in (1, 2, 3, 4):
        assert best_of_k(rewards, k) == pytest.approx(fmean(max(c) for c in combinations(rewards, k)))
    with pytest.raises(ValueError, match="S@5"):
        best_of_k(rewards, 5)


def test_the_measures_by_hand():
    found = summary([score("a", 1.0, 0.0, 0.5), score("b", 0.0, 0.0, attempts=4), score("c", attempts=3)], 3)
    assert found["avg"] == pytest.approx((0.5 + 0.0) / 2)
    assert found["avg_zero"] == pytest.approx((0.5 + 0.0 + 0.0) / 3)
    assert (found["tasks"], found["attempts"], found["ungraded"]) == (3, 10, 5)
    assert found["pass@1"] == pytest.approx((1 / 3 + 0) / 2)
    assert found["pass@3"] == 1.0, "only a has three graded attempts"
    assert found["S@3"] == 1.0
    assert math.isnan(summary([], 1)["avg"])


def test_a_difference_is_paired_by_task_and_says_when_nothing_can_be_seen():
    before = [score(str(i), i % 2 * 0.5) for i in range(40)]
    after = [score(str(i), i % 2 * 0.5 + 0.25) for i in range(40)]
    rose = difference(before, after)
    assert (rose["pairs"], rose["difference"], rose["verdict"]) == (40, pytest.approx(0.25), "rose")
    assert rose["low"] == pytest.approx(0.25), "paired: the spread between tasks does not matter"
    assert difference(after, before)["verdict"] == "fell"
    assert difference(before, before)["verdict"] == "no detectable change"
    assert difference(before, [score("x", 1.0)])["verdict"] == "nothing to compare"


def test_any_folder_of_tasks_is_evaluated_with_equal_seeds_every_time(tmp_path):
    parents(tmp_path, 2)
    seeds: list[int] = []

    def solver(seed):
        seeds.append(seed)
        return TerminalAgent(Scripted(lambda messages: Reply(f"```bash\n{'touch a b' if len(messages) < 3 else 'submit'}\n```")), prompt="small")  # fmt: skip

    tasks = tasks_of(tmp_path)
    found = evaluate(tasks, solver, get_backend("bubblewrap"), k=2, workers=2, version=3)
    row = found.to_row()
    assert (row["version"], row["tasks"], row["ungraded"], len(scores_of(row))) == (3, 2, 0, 2)
    first, seeds[:] = sorted(seeds), []
    evaluate(tasks, solver, get_backend("bubblewrap"), k=2, workers=2, version=9)
    assert sorted(seeds) == first
    assert len(set(first)) == 4
    with pytest.raises(ValueError, match="holds no task"):
        tasks_of(tmp_path / "nothing")


def test_held_out_worlds_come_from_their_partitions_and_are_the_same_again(tmp_path):
    sets = held_out_tasks(tmp_path / "a", ["micro_shelf"], ("micro",), 3)
    assert list(sets) == ["held-out seeds"]
    seeds = [t.config["metadata"]["workbench"]["world"]["seed"] for t in sets["held-out seeds"]]
    assert [partition_of("micro_shelf", s) for s in seeds] == ["held_out_seeds"] * 3
    again = held_out_tasks(tmp_path / "b", ["micro_shelf"], ("micro",), 3)
    assert [t.digest for t in again["held-out seeds"]] == [t.digest for t in sets["held-out seeds"]]
    apart = held_out_tasks(
        tmp_path / "c", ["micro_shelf", "retail_warehouse"], ("micro", "unit"), 1, held_out=["retail_warehouse"]
    )
    assert {n: t[0].config["metadata"]["workbench"]["world"]["generator"] for n, t in apart.items()} == {
        "held-out seeds": "micro_shelf", "held-out generators": "retail_warehouse"}  # fmt: skip
