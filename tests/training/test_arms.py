"""Arms: one parameter each, compared at the last update that all of them reached."""

from __future__ import annotations

import math

import pytest

from workbench.models import BudgetExceeded, Sampling
from workbench.runs.folder import new_run
from workbench.training.arms import ARMS, common_endpoint, compare, get_arm
from workbench.training.setup import spending_cap
from workbench.training.setup_learning import open_external


def rows(*pairs):
    return [{"version": v, "avg": a, "avg_interval": [a, a]} for v, a in pairs]


def test_each_arm_changes_one_thing():
    full = get_arm("full")
    assert (full.proposes, full.trains_proposer, full.reviews, full.feedback, full.external) == (
        True,
        True,
        True,
        True,
        False,
    )
    assert not get_arm("no-proposer-training").trains_proposer
    assert get_arm("no-proposer-training").proposes
    assert not get_arm("static-pool").proposes
    assert not get_arm("no-feedback").feedback
    assert get_arm("external").external
    with pytest.raises(ValueError, match="full, no-proposer-training"):
        get_arm("best")
    assert len(ARMS) == 5


def test_arms_are_compared_at_a_common_endpoint():
    found = {"full": rows((0, 0.4), (160, 0.49), (288, 0.53)), "collapsed": rows((0, 0.4), (96, 0.44), (160, 0.40))}
    assert common_endpoint(found) == 160
    full, collapsed = compare(found)
    assert (full["avg"], collapsed["avg"], collapsed["best"], collapsed["best_at"]) == (0.49, 0.40, 0.44, 96)
    with pytest.raises(ValueError, match="evaluate_every"):
        common_endpoint({"a": rows((0, 1.0)), "b": rows((1, 1.0))})


def test_a_spending_cap_holds_for_the_external_proposer(tmp_path):
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    proposer = open_external(run, {"external": "litellm:openai/nobody-knows-its-price", "usd": 0.01})
    with pytest.raises(BudgetExceeded, match="price"):
        proposer.model.reply([{"role": "user", "content": "a task"}], Sampling(max_tokens=10))
    free = open_external(run, {"external": "program", "usd": 0.01})
    assert free.name
    run.close()


def test_a_resumed_run_has_what_is_left_of_its_cap(tmp_path):
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    for id, usd in (("a", 0.5), ("b", math.nan)):  # of b the price is unknown
        run.record("proposal", {"usd": usd}, id=id)
    run.record("trial", {"usd": 0.25}, id="t")
    cap = spending_cap(run, {"usd": 1.0})["budget"]
    assert (cap.usd, cap.spent) == (1.0, 0.75)
    with pytest.raises(BudgetExceeded, match=r"of \$1.0000, \$0.7500 is spent"):
        cap.take(0.5, "x")
    assert spending_cap(run, {"usd": 0}) == {}
    run.close()
