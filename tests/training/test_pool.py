"""The pool: who is active, and why not; nearness never touches the proposer's reward."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.proposer.latent import LatentWorlds
from workbench.proposer.program import draw, write_task
from workbench.tasks import load_task
from workbench.training.pool import PoolEntry, near_check, nearness, review, world_of

ENTRY = PoolEntry(
    "r1-a000", "run", 0.0, 1, "t", "p", "d", "parent", "harder", "active", rewards=(0.0, 1.0), proposer_reward=1.0
)


@pytest.mark.parametrize(
    ("rewards", "status", "reasons"),
    [
        ([0, 1, 0, 1], "active", ()),
        ([0, 0, 0, 0], "evicted", ("too-hard",)),
        ([1, 1, 1, 1], "evicted", ("too-easy",)),
        ([0.5, 0.5, 0.5, 0.5], "evicted", ("no-spread",)),
        ([0.25, 0.25, 0.25, 0.25 + 0.4], "active", ()),
    ],
)
def test_fresh_rollouts_evict_what_left_the_band(rewards, status, reasons):
    fresh = review(ENTRY, rewards)
    assert (fresh.status, fresh.reasons) == (status, reasons)
    assert fresh.rewards == tuple(rewards)


def test_a_near_copy_stays_outside_but_keeps_its_reward(tmp_path):
    write_task(draw(4, 1), tmp_path / "one", "one")
    write_task(draw(8, 2), tmp_path / "two", "two")
    one, two = load_task(tmp_path / "one"), load_task(tmp_path / "two")
    assert nearness(one, [("same", one), ("other", two)]) == (1.0, "same")
    assert nearness(one, [("other", two)])[0] < 0.98
    refused = near_check(ENTRY, one, [("same", one)], 0.98)
    assert (refused.status, refused.reasons, refused.proposer_reward) == ("rejected", ("too-near",), 1.0)
    assert near_check(ENTRY, two, [("same", one)], 0.98) == ENTRY
    assert near_check(replace(ENTRY, status="rejected"), None, [], 0.98).status == "rejected"


def test_worlds_of_one_generator_are_near_only_when_they_are_the_same_world(tmp_path):
    library = LatentWorlds(generators=["micro_shelf"], tiers=("micro",))
    made = [
        load_task(library.compose("micro_shelf", "micro", (), tmp_path / str(i), draw=d))
        for i, d in enumerate((1, 2, 1))
    ]
    assert nearness(made[0], [("other", made[1])])[0] == 0.0, "the same words, another world"
    assert nearness(made[0], [("other", made[1]), ("same", made[2])]) == (1.0, "same")
    write_task(draw(4, 1), tmp_path / "program", "program")
    program = load_task(tmp_path / "program")
    assert world_of(program) is None
    assert 0 <= nearness(made[0], [("program", program)])[0] < 0.98, (
        "a world and another task are compared by their words"
    )
