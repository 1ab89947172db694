"""Each gate catches its own class of failure, and no other gate needs to; a correct generator passes all."""

from __future__ import annotations

import re
import shutil

import pytest

from workbench.worlds import WorldError, catalog
from workbench.worlds.building import build_environment
from workbench.worlds.gates import CONSTRUCTION, FAILURE_CLASSES, GATES, environment_gates, run, scaffold
from workbench.worlds.scaffold import copy_template

from .broken import BROKEN

OTHERS = ()  # a copy of the scaffold is compared with nothing, or the similarity gate would refuse it each time


def failed(generator, tiers=("unit",), others=OTHERS, seeds=(1,)) -> dict[str, str]:
    """gate -> its messages, of those that are not passed."""
    out: dict[str, str] = {}
    for result in run(generator, seeds, tiers, others):
        if not result.passed:
            out[result.gate] = out.get(result.gate, "") + "\n".join(result.messages)
    return out


def test_there_are_nine_gates():
    assert len(GATES) == 9
    assert all(FAILURE_CLASSES[gate] for gate in GATES)


def test_every_gate_has_a_broken_generator():
    assert {b.gate for b in BROKEN} | {"similarity_gate"} == set(GATES)


def test_the_scaffold_passes_all_gates(make_generator):
    assert failed(make_generator("correct"), ("unit", "small", "full"), seeds=(1, 2)) == {}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.name)
def test_only_its_own_gate_refuses_it(make_generator, broken):
    found = failed(make_generator(broken.name, broken.patches))
    assert set(found) == {broken.gate}, found
    assert broken.says in found[broken.gate]


def test_a_near_duplicate_is_refused_by_the_similarity_gate_alone(make_generator):
    words = [
        ("world.py", '"bolt", "valve"', '"apple", "pear"'),
        ("world.py", "Depot stock count", "Orchard harvest count"),
    ]
    found = failed(make_generator("orchard", words), others=(scaffold(),))
    assert set(found) == {"similarity_gate"}
    assert "of its code is that of template" in found["similarity_gate"]
    assert "design a world of its own" in found["similarity_gate"]


def test_results_say_gate_class_place_and_what_to_do(make_generator):
    broken = next(b for b in BROKEN if b.name == "pays_for_form")
    results = [r for r in run(make_generator(broken.name, broken.patches), (4,), ("unit",), OTHERS) if not r.passed]
    [result] = results
    row = result.to_row()
    assert row["seed"] == 4
    assert row["tier"] == "unit"
    assert row["passed"] is False
    assert "exploit_resistance (verifier loophole, shortcut acceptance): pays_for_form seed 4 unit: probe" in str(
        result
    )
    assert "earn nothing until enough content facts match" in str(result)


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (
            ("world.py", "return World(items, tuple(moves))", "return World(items, tuple(moves[1:]))"),
            "recover.*movements",
        ),
        (("world.py", '("read-ledgers",)),', '("nowhere",)),'), "requires .*nowhere"),
        (
            ("world.py", "    known = {item.sku", "    raise WorldError('no such depot')\n    known = {item.sku"),
            "no such depot",
        ),
        (("reference.py", 'yield "count-stock"', 'yield "count-all"'), "goes through"),
        (("reference.py", "KINDS[row", "KIND[row"), "NameError.*reference.py line"),
        (
            ("world.py", 'tree[f"input/movements-{month}.csv"]', 'tree[f"in/movements-{month}.csv"]'),
            "no path below input/",
        ),
        (("world.py", '{"column": "day"', '{"column": "dy"'), "no column 'dy'"),
    ],
)
def test_what_can_not_be_built_fails_construction_and_says_where(make_generator, patch, says):
    generator = make_generator("unbuildable", [patch])
    found: dict[str, str] = {}
    for seed in range(6):  # not every seed has every defect
        found = found if CONSTRUCTION in found else failed(generator, seeds=(seed,))
    assert CONSTRUCTION in found
    assert re.search(says, found[CONSTRUCTION], re.S)


def test_a_missing_module_is_named(tmp_path):
    copy_template(tmp_path / "half")
    (tmp_path / "half" / "hidden.py").unlink()
    with pytest.raises(WorldError, match=r"lacks hidden\.py"):
        catalog.at(tmp_path / "half")


def test_generators_are_found_beside_the_package(tmp_path, monkeypatch):
    copy_template(tmp_path / "elsewhere_found")
    monkeypatch.setenv(catalog.GENERATORS_ENV, str(tmp_path))
    assert "elsewhere_found" in catalog.names()
    assert catalog.get("elsewhere_found").spec.name == "elsewhere_found"
    shutil.rmtree(tmp_path / "elsewhere_found")
    with pytest.raises(KeyError, match="no generator 'elsewhere_found'"):
        catalog.get("elsewhere_found")


def test_a_folder_and_its_spec_have_one_name(tmp_path):
    copy_template(tmp_path / "one_name")
    (tmp_path / "one_name").rename(tmp_path / "another_name")
    with pytest.raises(WorldError, match=r"SPEC\.name is 'one_name'"):
        catalog.at(tmp_path / "another_name")


def test_a_hidden_suite_that_raises_fails_the_gate_that_asks_it(make_generator):
    patch = ("hidden.py", "    last = world", "    last = [][0]\n    last = world")
    found = failed(make_generator("raising", [patch]))
    assert set(found) == {"metamorphic_invariance"}
    assert "IndexError" in found["metamorphic_invariance"]
    assert "hidden.py line" in found["metamorphic_invariance"]


def test_gates_of_an_environment_can_be_asked_alone(make_generator):
    generator = make_generator("alone")
    results = environment_gates(generator, build_environment(generator, 3, "unit"))
    assert len(results) == 6
    assert all(r.passed and r.seed == 3 for r in results)
