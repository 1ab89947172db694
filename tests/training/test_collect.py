"""Collection: groups that vary, refilled up to a cap; failures that leave their group; what is carried, queued and counted."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future

import pytest

from tests.training.rollouts import segment
from workbench.training.collect import (
    Collector,
    CollectSettings,
    InfraBroken,
    Lost,
    NothingToLearn,
    Threads,
    retention,
    trailing_mean,
)
from workbench.training.groups import Plan, Played
from workbench.training.learning_state import group_from_row, group_to_row
from workbench.training.records import Rollout


def played(attempt, reward, version=0, width=2) -> Played:
    outcome = "graded" if reward is not None else "infra"
    segments = (segment(1, width, seed=attempt.number, version=version),)
    return Played(Rollout(attempt.id, attempt.plan.name, attempt.plan.role, segments, math.nan if reward is None else reward, outcome=outcome),
                  extra={} if reward is not None else {"why": "the disk is full"})  # fmt: skip


class Now:
    """Plays at once, in this thread: rewards(group's number, attempt) → reward, None for an infrastructure failure."""

    def __init__(self, rewards):
        self.rewards, self.version = rewards, 0

    def submit(self, attempt):
        future: Future = Future()
        try:
            future.set_result(played(attempt, self.rewards(int(attempt.plan.name[1:]), attempt), self.version))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self):
        pass


def plans(size=4):
    number = iter(range(10_000))
    return lambda: Plan(f"g{next(number)}", "solver", "env", size)


def half(group, attempt):
    return float(attempt.number % 2)


def collector(rewards=half, **settings):
    return Collector(Now(rewards), plans(), CollectSettings(**{"groups": 2, "cap": 8, "oversample": 1.0, **settings}))


def test_groups_without_variation_are_refilled():
    made = collector(lambda group, attempt: 1.0 if group in (0, 2) else half(group, attempt))
    found = made.collect(0)
    assert [g.plan.name for g in found.groups] == ["g1", "g3"]
    assert found.row["dropped"] == {"no-variation": 2}
    assert (found.row["accepted"], found.row["collected"], found.row["begun"], found.row["useful"]) == (2, 4, 4, 0.5)


def test_the_cap_stops_with_the_reason():
    with pytest.raises(
        NothingToLearn, match=r"0 of 2 groups vary after 8 were begun \(cap 8\); dropped: 8 no-variation"
    ):
        collector(lambda group, attempt: 0.0).collect(0)
    one = collector(lambda group, attempt: half(group, attempt) if group == 3 else 0.0).collect(0)
    assert (one.row["accepted"], one.row["short"]) == (1, True)
    with pytest.raises(NothingToLearn, match="1 of 2 groups vary"):
        collector(lambda group, attempt: half(group, attempt) if group == 3 else 0.0, least=2).collect(0)


def test_infrastructure_failures_are_played_again_then_leave_the_group():
    first = collector(lambda group, a: None if a.number == 0 and not a.retry else half(group, a))
    found = first.collect(0)
    assert [r.counts for r in found.groups[0].rollouts] == [True] * 4
    assert found.row["infra"] == 2
    always = collector(lambda group, a: None if a.number == 0 else half(group, a))
    (group, _) = always.collect(0).groups
    assert [r.counts for r in group.rollouts] == [False, True, True, True]
    most = collector(lambda group, a: None if group == 0 and a.number < 3 else half(group, a), minimum=3)
    assert most.collect(0).row["dropped"] == {"too-few": 1}


def test_a_retry_draws_other_numbers():
    seeds = []
    made = collector(
        lambda group, a: seeds.append(a.seed) or (None if not a.retry else half(group, a)),
        groups=1,
        stop_after_infra=1.0,
    )
    made.collect(0)
    assert len(seeds) == len(set(seeds)) == 8


def test_too_many_failures_stop_the_step_with_the_last_message():
    with pytest.raises(InfraBroken, match=r"11 of the last \d+ rollouts .* the disk is full"):
        collector(lambda group, a: None).collect(0)

    def lost(group, attempt):
        raise ConnectionError("the node is gone")

    with pytest.raises(InfraBroken, match="ConnectionError: the node is gone"):
        collector(lost).collect(0)


def test_what_one_node_takes_along_is_one_failure():
    def rewards(group, a):
        if not a.retry:
            raise Lost("the node died", "n1")
        return half(group, a)

    groups = {"groups": 4, "cap": 16, "stop_after_infra": 0.1}  # 16 attempts go down at once
    found = collector(rewards, **groups).collect(0)
    assert (found.row["infra"], len(found.groups)) == (16, 4)

    def each(group, a):
        raise Lost("the node died", a.id)

    with pytest.raises(InfraBroken, match=r"3 of the last \d+ rollouts"):
        collector(each, **groups).collect(0)


def test_surplus_groups_wait_for_the_next_step_and_become_stale():
    made = collector(oversample=2.0, max_staleness=2)
    first = made.collect(0)
    assert (len(first.groups), first.row["queued"], first.row["collected"]) == (2, 2, 4)
    second = made.collect(1)
    assert [g.plan.name for g in second.groups] == ["g2", "g3"]
    assert (second.row["from_queue"], second.row["begun"], second.row["staleness"]) == (2, 0, 1)
    late = collector(oversample=2.0, max_staleness=2)
    late.collect(0)
    late.executor.version = 5
    found = late.collect(5)
    assert found.row["dropped"] == {"stale": 2}, "the two that waited are five updates old"
    assert [g.plan.name for g in found.groups] == ["g4", "g5"]


class Slow:
    """Groups after the first one wait at a gate: they are unfinished when the batch is full."""

    def __init__(self):
        self.gate, self.version, self.seen = threading.Event(), 0, []

    def play(self, attempt):
        if int(attempt.plan.name[1:]) > 0:
            self.gate.wait(20)
        self.seen.append(attempt.id)
        return played(attempt, half(0, attempt), version=self.version)


def test_unfinished_groups_go_on_while_weights_move():
    slow = Slow()
    made = Collector(Threads(slow.play, 8), plans(), CollectSettings(groups=1, cap=4, oversample=2.0))
    first = made.collect(0)
    assert [g.plan.name for g in first.groups] == ["g0"]
    assert (first.row["open_groups"], first.row["unfinished"]) == (1, 4)
    slow.version = 1  # the update happens here, with four attempts in flight
    slow.gate.set()
    second = made.collect(1)
    assert [g.plan.name for g in second.groups] == ["g1"], "the carried group completes first"
    assert second.row["carried"] == 1
    assert {v for r in second.rollouts for s in r.segments for v in s.versions if v >= 0} == {1}
    made.executor.close()
    assert len(slow.seen) == len(set(slow.seen)), "nothing is played twice"


def test_a_queued_group_survives_a_checkpoint():
    made = collector(oversample=2.0)
    made.collect(0)
    group = made.queue[0]
    again = group_from_row(group_to_row(group))
    assert again.rollouts == group.rollouts
    assert (again.plan, again.version) == (group.plan, group.version)


def test_settings_that_can_never_be_filled_are_refused():
    with pytest.raises(ValueError, match="cap"):
        CollectSettings(groups=8, cap=4)


def test_retention_is_a_ratio_of_sums_and_means_trail():
    rows = [{"accepted": 1, "collected": 1}, {"accepted": 1, "collected": 9}]
    assert retention(rows) == pytest.approx(0.2)
    assert math.isnan(retention([]))
    assert trailing_mean([1, 2, 6, 1], 3) == pytest.approx([1, 1.5, 3, 3])
