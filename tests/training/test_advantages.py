"""Eq. 3 by hand, groups that train and groups that do not, and records that come back as they went."""

from __future__ import annotations

import math

import pytest

from tests.training.rollouts import rollout, segment
from workbench.training.advantages import (
    by_group,
    centred,
    per_token,
    select_groups,
    token_advantages,
    wasted_fraction,
    whole_rollout,
)
from workbench.training.records import Rollout, from_json


def test_eq_3_is_the_reward_minus_the_mean_without_division():
    assert centred([1.0, 0.0, 0.5, 0.5]) == [0.5, -0.5, 0.0, 0.0]
    assert centred([10.0, 0.0]) == [5.0, -5.0]  # a wider group has wider advantages
    assert centred([]) == []


def test_infrastructure_failures_leave_before_mean_and_size_are_taken():
    members = [rollout("a", reward=1.0), rollout("b", reward=0.0), rollout("c", reward=math.nan, outcome="infra")]
    chosen = select_groups(members, minimum=2)
    assert [r.id for r in chosen.kept["g"]] == ["a", "b"]
    assert chosen.excluded == ("c",)
    assert whole_rollout(chosen.kept["g"]) == {"a": [0.5], "b": [-0.5]}
    assert select_groups(members, minimum=3).dropped == {"g": "too-few"}


def test_groups_without_variation_are_dropped_and_counted():
    members = [
        rollout(n, group=g, reward=r)
        for g, n, r in [("x", "a", 0.5), ("x", "b", 0.5), ("y", "c", 0.1), ("y", "d", 0.2)]
    ]
    chosen = select_groups(members)
    assert list(chosen.kept) == ["y"]
    assert chosen.dropped == {"x": "no-variation"}
    assert chosen.retention == 0.5
    noise = [rollout("a", reward=0.1 + 0.2), rollout("b", reward=0.3)]
    assert select_groups(noise).dropped == {"g": "no-variation"}  # rounding is no signal


def test_a_group_holds_one_role_and_no_rollout_twice():
    with pytest.raises(ValueError, match="mixes roles"):
        by_group([rollout("a"), rollout("b", role="proposer")])
    with pytest.raises(ValueError, match="twice"):
        by_group([rollout("a"), rollout("a")])
    with pytest.raises(ValueError, match="at least 2"):
        select_groups([rollout("a")], minimum=1)


def test_roles_keep_their_own_baselines():
    groups = by_group(
        [rollout("s1", reward=1.0), rollout("s2", reward=0.5)]
        + [rollout(n, group="p", role="proposer", reward=r) for n, r in [("p1", -1.0), ("p2", 1.0)]]
    )
    credit = {"solver": whole_rollout, "proposer": whole_rollout}
    flat = {r.id: {a for part in tokens for a in part} - {0.0} for r, tokens in token_advantages(groups, credit)}
    assert flat == {"s1": {0.25}, "s2": {-0.25}, "p1": {-1.0}, "p2": {1.0}}


def test_only_sampled_tokens_have_an_advantage_each_that_of_its_turn():
    broken = rollout("a", segments=(segment(1, 1), segment(2, 2, first=1)))  # two segments, three turns
    assert per_token(broken, [5.0, 6.0, 7.0]) == [[0, 0, 5.0], [0, 0, 6.0, 6.0, 0, 0, 7.0, 7.0]]
    assert per_token(broken, [3.0])[1] == [0, 0, 3.0, 3.0, 0, 0, 3.0, 3.0]
    with pytest.raises(ValueError, match="2 advantages for 3 turns"):
        per_token(broken, [1.0, 2.0])


@pytest.mark.parametrize(("p", "size", "percent"), [(0.05, 8, 66), (0.01, 8, 92), (0.05, 16, 44)])
def test_wasted_groups_are_what_tev_prints(p, size, percent):
    assert round(100 * wasted_fraction(p, size)) == percent


def test_wasted_groups_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="p must lie"):
        wasted_fraction(1.5, 8)


def test_a_rollout_comes_back_from_its_json():
    one = rollout(
        "a", turns=3, reward=0.25, passed=True, submitted=True, progress=(0.0, 0.5, 1.0), seconds=1.5, task="d"
    )
    assert from_json(one.to_json()) == one
    lost = from_json(rollout("b", reward=math.nan, outcome="infra").to_json())
    assert math.isnan(lost.reward)
    row = one.to_row()
    assert (row["tokens"], row["turns"], "segments" in row) == (6, 3, False)
    with pytest.raises(ValueError, match="not a rollout"):
        from_json("[1, 2]")


def test_staleness_is_the_age_of_the_oldest_token():
    mixed = rollout("a", segments=(segment(1, version=3), segment(1, first=1, version=5)))
    assert (mixed.staleness(5), mixed.staleness(6)) == (2, 3)
    assert rollout("b", turns=0).staleness(9) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"role": "critic"}, "none of solver, proposer"),
        ({"reward": math.nan}, "finite reward"),
        ({"progress": (0.5, 1.5)}, "outside"),
    ],
)
def test_records_that_disagree_are_refused(change, said):
    fields = {"id": "a", "group": "g", "role": "solver", "segments": (), "reward": 0.0} | change
    with pytest.raises(ValueError, match=said):
        Rollout(**fields)


def test_a_sampled_token_needs_a_log_probability_and_something_before_it():
    good = segment(1, 1)
    for change, said in [
        ({"logprobs": (0.0, 0.0, 0.5)}, "no log-probability"),
        ({"sampled": (True, False, True)}, "nothing stands before it"),
        ({"turns": (-1, -1, -1)}, "in turn -1"),
    ]:
        with pytest.raises(ValueError, match=said):
            rollout("a", segments=(type(good)(**{**good.__dict__, **change}),))


def test_a_group_with_one_token_that_is_too_old_leaves_whole():
    old = rollout("a", reward=1.0, segments=(segment(1, version=3), segment(1, first=1, version=7)))
    group = [old, rollout("b", reward=0.0, segments=(segment(1, version=7),))]
    assert select_groups(group, version=8, max_staleness=5).kept
    assert select_groups(group, version=8, max_staleness=4).dropped == {"g": "stale"}


def test_what_must_vary_can_differ_by_role():
    group = [rollout("a", reward=0.0, progress=(0.1,)), rollout("b", reward=0.0, progress=(0.3,))]
    assert not select_groups(group).kept
    assert select_groups(group, value={"solver": lambda r: r.progress[-1]}).kept
