"""Agreement, against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from workbench.traces.agreement import agreement, kappa, per_episode


def sides(table):
    """Two labellings with this confusion matrix over read, build, write, test."""
    names, a, b, n = ("read", "build", "write", "test"), {}, {}, 0
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            for _ in range(count):
                a[n], b[n] = names[i], names[j]
                n += 1
    return a, b


# 50 turns: p_o = (20 + 15) / 50 = 0.7; p_e = (25·30 + 25·20) / 50² = 0.5; κ = 0.2 / 0.5 = 0.4.
TABLE = [[20, 5, 0, 0], [10, 15, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_by_hand():
    found = agreement(*sides(TABLE))
    assert (found.n, found.equal, found.share) == (50, 35, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.confusion == tuple(map(tuple, TABLE))
    assert found.share_interval == pytest.approx((0.5625, 0.8090), abs=1e-4)  # Wilson
    rows = {r["label"]: r for r in found.per_label()}
    assert (rows["read"]["a"], rows["read"]["b"], rows["read"]["both"]) == (25, 30, 20)
    assert rows["read"]["recall"] == 0.8
    assert rows["read"]["precision"] == pytest.approx(2 / 3)
    assert rows["read"]["f1"] == pytest.approx(40 / 55)
    assert math.isnan(rows["test"]["recall"])


def test_interval_holds_the_value_and_follows_theory():
    """The large-sample standard error of κ here, by Fleiss, Cohen and Everitt (1969), is 0.1270."""
    found = agreement(*sides(TABLE), draws=20_000)
    low, high = found.kappa_interval
    assert low < 0.4 < high
    assert (high - low) / (2 * 1.96) == pytest.approx(0.1270, rel=0.05)
    assert found.kappa_interval == agreement(*sides(TABLE), draws=20_000).kappa_interval
    narrow = agreement(*sides(TABLE), conf=0.5).kappa_interval
    assert narrow[1] - narrow[0] < high - low


def test_perfect_none_and_opposite():
    assert kappa([[5, 0], [0, 5]]) == 1.0
    assert kappa([[0, 5], [5, 0]]) == -1.0
    assert kappa([[25, 25], [25, 25]]) == 0.0
    assert math.isnan(kappa([[5, 0], [0, 0]]))  # one label only: chance explains all
    assert math.isnan(kappa([[0, 0], [0, 0]]))


def test_only_turns_of_both_count():
    found = agreement({1: "read", 2: "test", 3: "read"}, {2: "test", 3: "build", 4: "read", 5: "read"})
    assert (found.n, found.equal, found.only_a, found.only_b) == (2, 1, 1, 2)


def test_nothing_in_common():
    found = agreement({1: "read"}, {2: "read"})
    assert found.n == 0
    assert math.isnan(found.share)
    assert math.isnan(found.kappa)
    assert all(map(math.isnan, found.kappa_interval))
    assert found.share_interval == (0.0, 1.0)


def test_whole_episodes_are_drawn_when_turns_hang_together():
    """One episode where the sides agree throughout, one where they never do: drawing turns hides how little is known."""
    a = {(e, i): "read" if i % 2 else "test" for e in range(4) for i in range(50)}
    b = {(e, i): v if e < 2 else {"read": "test", "test": "read"}[v] for (e, i), v in a.items()}
    turns = agreement(a, b).kappa_interval
    episodes = agreement(a, b, clusters={k: k[0] for k in a}).kappa_interval
    assert episodes == (-1.0, 1.0)
    assert turns[1] - turns[0] < 0.4


def test_per_episode():
    a = {("x", 1): "read", ("x", 2): "test", ("y", 1): "read"}
    b = {("x", 1): "read", ("x", 2): "build", ("y", 1): "read", ("z", 1): "read"}
    found = per_episode(a, b, {k: k[0] for k in b})
    assert {k: (v.n, v.share) for k, v in found.items()} == {"x": (2, 0.5), "y": (1, 1.0)}


def test_labels_that_are_not_known():
    with pytest.raises(ValueError, match="'explore' of 1 is not one of read"):
        agreement({1: "explore"}, {1: "read"})


def test_a_row_for_a_table():
    row = agreement(*sides(TABLE)).to_row()
    assert (row["n"], row["share"], row["only_a"]) == (50, 0.7, 0)
    assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
