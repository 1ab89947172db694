"""Progress shaping by hand: what a turn earns, what a group learns from, and the three other variants of Tev's Table 5."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import pytest

from tests.training.rollouts import rollout
from workbench.training.advantages import select_groups
from workbench.training.pprs import (
    LAMBDA,
    VARIANTS,
    credit,
    group_value,
    lone_share,
    returns_to_go,
    total,
    turn_advantages,
    turn_rewards,
)


def attempt(name, *phi, passed=False, submitted=True):
    return rollout(name, turns=len(phi), progress=phi, passed=passed, submitted=submitted, reward=0.0)


def close(values):
    return pytest.approx(values, abs=1e-12)


def test_a_turn_earns_the_change_and_the_last_one_the_terminal_term():
    one = attempt("a", 0.2, 0.6, 1.0, passed=True)
    assert turn_rewards(one) == close([0.05, 0.1, 1.1])
    assert sum(turn_rewards(one)) == pytest.approx(total(one)) == 1.25
    assert returns_to_go(turn_rewards(one)) == close([1.25, 1.2, 1.1])


def test_credit_of_a_loop_that_undoes_and_redoes_work_sums_to_zero():
    straight, looping = attempt("a", 0.5), attempt("b", 0.5, 0.0, 0.5)
    assert sum(turn_rewards(looping)[1:]) == 0.0
    assert total(straight) == total(looping)
    assert turn_rewards(looping)[1] == -0.125  # and destroying work costs what making it had earned


def test_an_all_fail_group_varies_exactly_when_the_final_potential_differs():
    for ends in [(0.1, 0.1, 0.1), (0.1, 0.1, 0.7), (0.0, 1.0, 0.0)]:
        group = [attempt(str(i), 0.9, end) for i, end in enumerate(ends)]
        variance = pvariance([total(r) for r in group])
        assert (variance > 1e-12) == (len(set(ends)) > 1)
        kept = select_groups(group, value=group_value()).kept
        assert bool(kept) == (len(set(ends)) > 1)
        assert not select_groups(group, value=group_value("terminal")).kept


def test_a_submitted_pass_outranks_everything_else():
    best = total(attempt("pass", 1.0, passed=True))
    for other in [
        attempt("a", 1.0),
        attempt("b", 1.0, passed=True, submitted=False),
        attempt("c", 0.99, submitted=False),
        attempt("d", 0.0),
    ]:
        assert total(other) <= LAMBDA < best
    assert best == 1 + LAMBDA


def test_complete_but_unsubmitted_earns_lambda_alone():
    assert total(attempt("a", 1.0, passed=True, submitted=False)) == LAMBDA == 0.25


def test_each_turn_is_compared_with_the_rollouts_that_reach_it():
    group = [attempt("a", 0.4, 0.8), attempt("b", 0.0, 0.4), attempt("c", 0.4)]
    got = turn_advantages(group, lam=1.0)
    # returns: a 0.8, 0.4 — b 0.4, 0.4 — c 0.4; means 8/15 at turn 0, 0.4 at turn 1 (a and b only)
    assert got["a"] == close([0.8 - 1.6 / 3, 0.0])
    assert got["b"] == close([0.4 - 1.6 / 3, 0.0])
    assert got["c"] == close([0.4 - 1.6 / 3])


def test_a_lone_survivor_gets_nothing_and_its_tokens_are_counted():
    group = [attempt("a", 0.1, 0.2, 0.9), attempt("b", 0.3, 0.3)]
    for option in (False, True):
        assert turn_advantages(group, leave_one_out=option)["a"][2] == 0.0
    assert lone_share(group) == pytest.approx(2 / 10)  # two tokens a turn: 1 of 5 turns
    assert lone_share([attempt("a", 0.5)]) == 1.0
    assert math.isnan(lone_share([rollout("n", turns=0)]))


def test_leave_one_out_compares_with_the_others_only():
    group = [attempt(n, end) for n, end in [("a", 0.0), ("b", 0.4), ("c", 0.8)]]
    got = turn_advantages(group, lam=1.0, leave_one_out=True)
    assert [got[n][0] for n in "abc"] == close([-0.6, 0.0, 0.6])
    plain = turn_advantages(group, lam=1.0)
    assert [got[n][0] for n in "abc"] == close([1.5 * plain[n][0] for n in "abc"])  # G / (G − 1)


def test_division_follows_eq_2():
    group = [attempt("a", 0.0), attempt("b", 1.0)]
    got = turn_advantages(group, lam=1.0, divide=True)
    assert got["b"][0] == pytest.approx(0.5 / (0.5 + 1e-6))


def test_terminal_only_is_one_value_a_rollout_and_blind_to_progress():
    group = [attempt("a", 0.3, 1.0, passed=True), attempt("b", 0.9, 0.9)]
    assert turn_advantages(group, "terminal") == {"a": [0.5, 0.5], "b": [-0.5, -0.5]}


def test_pooled_compares_later_returns_with_the_whole_rollout_mean():
    group = [attempt("a", 0.5, 1.0), attempt("b", 0.0, 0.0)]
    got = turn_advantages(group, "pooled", lam=1.0)
    assert got["a"] == close([0.5, 0.0])  # returns 1.0 and 0.5, mean of R = 0.5
    assert got["b"] == close([-0.5, -0.5])


def test_direct_pays_the_state_again_and_again_and_propagates_nothing():
    group = [attempt("a", 0.8, 0.8), attempt("b", 0.0, 0.8)]
    assert turn_rewards(group[0], "direct", 1.0) == [0.8, 0.8]
    got = turn_advantages(group, "direct", lam=1.0)
    assert got["a"] == close([0.4, 0.0])
    assert got["b"] == close([-0.4, 0.0])


@pytest.mark.parametrize("variant", VARIANTS)
def test_advantages_of_a_turn_sum_to_zero_where_the_baseline_is_its_own(variant):
    group = [attempt("a", 0.1, 0.4, 1.0, passed=True), attempt("b", 0.2, 0.3, 0.3), attempt("c", 0.9, 0.1, 0.0)]
    got = turn_advantages(group, variant)
    for turn in range(1 if variant == "pooled" else 3):  # pooled centres whole rollouts only
        assert fmean([got[n][turn] for n in "abc"]) == pytest.approx(0.0, abs=1e-12)


def test_turns_without_a_grade_keep_the_last_potential():
    one = rollout("a", turns=3, progress=(0.4,), reward=0.0, passed=True, submitted=True)
    assert turn_rewards(one, lam=1.0) == close([0.4, 0.0, 1.0])


def test_unknown_variants_are_named():
    with pytest.raises(ValueError, match="pprs, terminal, pooled, direct"):
        credit("sparse")
