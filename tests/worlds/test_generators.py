"""Every registered generator passes every gate and gives the same bytes everywhere."""

from __future__ import annotations

import os

import pytest

from workbench.worlds import build, catalog
from workbench.worlds.corruption import invert_all
from workbench.worlds.gates import environment_gates, run
from workbench.worlds.grading import grade
from workbench.worlds.replay import CONDITIONS, digests, finish, start

NAMES = catalog.names()


def smallest(name: str) -> str:
    return catalog.get(name).spec.tiers[0]


def told(results) -> str:
    return "\n".join(str(result) for result in results if not result.passed)


def test_every_folder_is_complete():
    assert {name: catalog.missing(folder) for name, folder in catalog.folders().items()} == {name: [] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_all_gates_on_one_seed(name):
    assert not told(run(name, (1,), (smallest(name),)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if "small" in catalog.get(n).spec.tiers])
def test_gates_of_a_small_environment(name):
    assert not told(environment_gates(catalog.get(name), build(name, 2, "small")))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_gates_on_twenty_seeds_of_all_tiers(name):
    assert not told(run(name, range(1, 21)))


def parts(name: str, only: int | None = None) -> None:
    """With no corruption, and with each kind alone (or the first `only` kinds), the solvers still earn everything."""
    whole = build(name, 3, smallest(name))
    clean = invert_all(whole.public, whole.defects)
    generator = catalog.get(name)
    for kinds in [(), *((kind,) for kind in dict.fromkeys(d.kind for d in whole.defects))][:only]:
        part = build(name, 3, smallest(name), kinds)
        assert part.world_id == whole.world_id
        assert part.task_id != whole.task_id
        assert (part.public == clean) == (not kinds)
        graded = grade(generator, part, part.output)
        assert graded.passed, (kinds, graded)
        assert graded.phi == 1
        again = grade(generator, part, generator.alternative.solve(dict(part.public)))
        assert again.passed, (kinds, again)


@pytest.mark.parametrize("name", NAMES)
def test_without_damage_the_answer_can_still_be_had(name):
    parts(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_part_of_the_plan_still_has_an_answer(name):
    parts(name)


def test_the_same_bytes_in_another_process():
    triples = [(name, 5, smallest(name)) for name in NAMES]
    processes = [start(triples, conditions) for conditions in CONDITIONS]
    here = digests(triples)
    there = [finish(process) for process in processes]
    for conditions, found in zip(CONDITIONS, there, strict=True):
        assert [t for t, a, b in zip(triples, here, found, strict=True) if a != b] == [], conditions


@pytest.mark.slow
def test_a_thousand_environments_are_the_same_in_another_process():
    pairs = [(name, tier) for name in NAMES for tier in catalog.get(name).spec.tiers if tier != "full"]
    triples = [(*pairs[i % len(pairs)], i) for i in range(1000)]
    triples = [(name, seed, tier) for name, tier, seed in triples]
    processes = [start(triples, conditions) for conditions in CONDITIONS]
    first, second = (finish(process) for process in processes)
    assert [t for t, a, b in zip(triples, first, second, strict=True) if a != b] == []


def test_building_leaves_the_process_as_it_was():
    before = dict(os.environ), os.getcwd()  # noqa: PTH109
    digests([(NAMES[0], 1, smallest(NAMES[0]))])
    assert (dict(os.environ), os.getcwd()) == before  # noqa: PTH109
