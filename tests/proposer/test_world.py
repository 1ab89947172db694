"""The library of latent worlds, and the proposer that answers with one."""

from __future__ import annotations

import threading
import tomllib
from pathlib import Path

import pytest

from workbench.proposer import Assignment, Proposer, get_proposer
from workbench.proposer.latent import LatentWorlds
from workbench.proposer.tools import WorldLibrary
from workbench.proposer.world import Rung, WorldProposer, rung_of
from workbench.tasks import load_task
from workbench.worlds import build
from workbench.worlds.building import planned_kinds
from workbench.worlds.draw import Draw
from workbench.worlds.export import export_environment
from workbench.worlds.partitions import partition_of

KINDS = ("duplicate_records", "orphan_records", "stale_copy")


def library(**more):
    return LatentWorlds(**{"generators": ("micro_shelf", "retail_warehouse"), **more})


def assignment(parent: Path, direction="harder", pass_rate=0.8, failure="", id="a"):
    return Assignment(id, "run", 0.0, 1, "org/parent", str(parent), "", direction, pass_rate, failure)


def world_in(path: Path) -> dict:
    return tomllib.loads((path / "task.toml").read_text())["metadata"]["workbench"]["world"]


def test_both_are_what_they_say(tmp_path):
    tool: WorldLibrary = library()
    assert "micro_shelf (9.2 shelf): tiers micro; corruptions duplicate_records" in tool.list()
    assert isinstance(get_proposer("world", tiers=("micro",)), Proposer)


@pytest.mark.parametrize("kinds", [(), ("stale_copy",), ("duplicate_records", "orphan_records"), KINDS])
def test_a_composed_world_has_the_corruptions_asked_for_and_a_training_seed(tmp_path, kinds):
    path = library().compose("micro_shelf", "micro", kinds, tmp_path / "t")
    world = world_in(load_task(path).path)
    assert partition_of("micro_shelf", world["seed"]) == "training"
    found = set(world.get("kinds") or planned_kinds("micro_shelf", world["seed"], "micro"))
    assert found == set(kinds) if kinds else found


def test_compositions_differ_and_equal_libraries_repeat_them(tmp_path):
    first, again = library(seed=3), library(seed=3)
    seeds = [world_in(first.compose("micro_shelf", "micro", (), tmp_path / f"a{n}"))["seed"] for n in range(4)]
    assert len(set(seeds)) == 4
    assert seeds == [world_in(again.compose("micro_shelf", "micro", (), tmp_path / f"b{n}"))["seed"] for n in range(4)]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (("nothing", "micro", ()), "choose of micro_shelf, retail_warehouse"),
        (("micro_shelf", "unit", ()), "has no tier 'unit'"),
        (("micro_shelf", "micro", ("rust",)), "has no corruption rust"),
        (("micro_shelf", "micro", ("../../etc",)), "has no corruption"),
    ],
)
def test_a_wrong_choice_says_what_there_is(tmp_path, choice, words):
    with pytest.raises(ValueError, match=words):
        library().compose(*choice, tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_what_is_held_out_cannot_be_composed(tmp_path):
    kept = library(held_out=("retail_warehouse",))
    assert "retail_warehouse" not in kept.list()
    with pytest.raises(ValueError, match="no generator"):
        kept.compose("retail_warehouse", "unit", (), tmp_path / "t")
    with pytest.raises(ValueError, match="is for training"):
        library(held_out=("micro_shelf", "retail_warehouse"))


def test_many_threads_draw_different_worlds(tmp_path):
    shared, paths = library(), [tmp_path / str(n) for n in range(12)]
    threads = [threading.Thread(target=shared.compose, args=("micro_shelf", "micro", (), p)) for p in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({world_in(path)["seed"] for path in paths}) == 12


def test_the_ladder_goes_up_and_down(tmp_path):
    proposer = WorldProposer(library())
    seed = next(s for s in range(200) if set(planned_kinds("micro_shelf", s, "micro")) == set(KINDS[:2]))
    parent = export_environment(build("micro_shelf", seed, "micro"), tmp_path / "parent")
    assert rung_of(parent) == Rung("micro_shelf", "micro", KINDS[:2])
    up = proposer.propose(assignment(parent), tmp_path / "up", seed=1)
    assert rung_of(Path(up.path)) == Rung("micro_shelf", "micro", KINDS)
    down = proposer.propose(assignment(parent, "simpler", 0.2), tmp_path / "down", seed=1)
    assert len(rung_of(Path(down.path)).kinds) == 1
    assert down.usd == 0.0


def test_a_bigger_tier_and_other_generators_follow_when_no_kind_is_left(tmp_path):
    proposer = WorldProposer(library())
    parent = export_environment(build("retail_warehouse", 1, "unit"), tmp_path / "parent")
    rung = Rung("retail_warehouse", "unit", proposer.library.kinds("retail_warehouse", "unit"))
    draw = Draw("t")
    assert proposer._harder(rung, draw).tier == "small"
    assert (
        proposer._simpler(Rung("retail_warehouse", "unit", ("x",)), assignment(parent), draw).generator == "micro_shelf"
    )
    assert proposer._simpler(Rung("retail_warehouse", "small", ("x",)), assignment(parent), draw).tier == "unit"


def test_any_parent_will_do_and_the_same_question_gets_the_same_answer(tmp_path):
    proposer = WorldProposer(library(generators=("micro_shelf",)))
    first = proposer.propose(assignment(tmp_path / "no-such"), tmp_path / "a", seed=5)
    again = WorldProposer(library(generators=("micro_shelf",))).propose(
        assignment(tmp_path / "no-such"), tmp_path / "b", seed=5
    )
    assert load_task(first.path).digest == load_task(again.path).digest
    other = proposer.propose(assignment(tmp_path / "no-such"), tmp_path / "c", seed=6)
    assert load_task(other.path).digest != load_task(first.path).digest
