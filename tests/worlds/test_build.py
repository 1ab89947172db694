"""An environment is a pure function of generator, revision, seed, tier and kinds; what is built holds together."""

from __future__ import annotations

import dataclasses
import sqlite3

import pytest

from workbench.worlds import WorldError, build
from workbench.worlds.building import build_environment, clean_tree, task_id
from workbench.worlds.canonical import canonical_tree, differences
from workbench.worlds.gate_hygiene import public_hygiene
from workbench.worlds.grading import grade
from workbench.worlds.identity import canonical, tree_digest, world_id
from workbench.worlds.probes import NAMED_BY_TEV, PROBES


@pytest.fixture
def depot(make_generator):
    return make_generator("depot")


def test_the_same_again_and_another_for_another_seed_or_tier(depot):
    first, again = build_environment(depot, 4, "unit"), build_environment(depot, 4, "unit")
    assert first == again
    others = [build_environment(depot, 5, "unit"), build_environment(depot, 4, "small")]
    assert len({first.world_id, *(o.world_id for o in others)}) == 3
    assert len({tree_digest(e.public) for e in (first, *others)}) == 3


def test_building_in_another_order_changes_nothing(depot):
    forward = [build_environment(depot, seed, "unit").world_id for seed in (1, 2, 3)]
    backward = [build_environment(depot, seed, "unit").world_id for seed in (3, 2, 1)]
    assert forward == backward[::-1]


def test_what_an_agent_sees_is_damaged_and_can_be_undone(depot):
    environment = build_environment(depot, 2, "unit")
    assert clean_tree(environment) == dict(sorted(depot.world.render(environment.world).items()))
    assert clean_tree(environment) != environment.public
    assert depot.world.recover(clean_tree(environment)) == environment.world


def test_the_prompt_states_the_whole_contract(depot):
    prompt = build_environment(depot, 1, "unit").prompt
    for part in ("## Inputs", "## Outputs", "## Requirements", "## Authority", "## Tools", "Available: python3"):
        assert part in prompt
    for output in depot.spec.outputs:
        assert f"`{output.path}` ({output.format})" in prompt
    assert "`movement_id` string, `day` date" in prompt
    assert '{"movements": "integer"' in prompt
    assert "1. Read every movement file." in prompt


def test_kinds_keep_a_part_of_the_plan(depot):
    environments = (build_environment(depot, seed, "unit") for seed in range(20))
    whole = next(e for e in environments if len(e.defects) == 3)
    part = build_environment(depot, whole.seed, "unit", ("date_format_drift",))
    assert [d.kind for d in part.defects] == ["date_format_drift"]
    assert part.world == whole.world
    assert part.task_id.startswith(f"{whole.task_id}-k")
    assert task_id(depot.spec, 1, "unit", ("a", "b")) == task_id(depot.spec, 1, "unit", ("b", "a"))
    none = build_environment(depot, whole.seed, "unit", ())
    assert none.public == clean_tree(whole)
    with pytest.raises(WorldError, match="the plan has no bit_rot: it has category_drift, date_format_drift"):
        build_environment(depot, whole.seed, "unit", ("bit_rot",))


def test_wrong_asking_says_what_there_is(depot):
    with pytest.raises(WorldError, match="depot has no tier 'micro': unit, small, full"):
        build_environment(depot, 1, "micro")
    with pytest.raises(KeyError, match=r"no generator 'nothing'.*there are"):
        build("nothing", 1)


def test_a_world_has_one_identity():
    @dataclasses.dataclass(frozen=True)
    class World:
        b: tuple
        a: dict

    world = World((1, b"\x00", frozenset({"x", "y"})), {"k": 1.5, "j": None})
    assert world_id(world) == world_id(World((1, b"\x00", frozenset({"y", "x"})), {"j": None, "k": 1.5}))
    assert world_id(world) != world_id(World((1, b"\x01", frozenset({"x", "y"})), {"j": None, "k": 1.5}))
    assert canonical({(1, 2): 3}) == '{"(1, 2)": 3}'


def test_trees_are_compared_by_meaning():
    def base(rows):
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.commit()
        return connection.serialize()

    left = {
        "output/a.json": b'{"x": 1, "y": [true]}',
        "output/b.db": base([(1, "p"), (2, "q")]),
        "output/c.csv": b"a\n1\n",
    }
    right = {
        "output/a.json": b'{"y":[true],"x":1.0}',
        "output/b.db": base([(2, "q"), (1, "p")]),
        "output/c.csv": b"a\n1\n",
    }
    assert canonical_tree(left) == canonical_tree(right)
    assert differences(left, right) == []
    assert "output/a.json" in differences(left, {**right, "output/a.json": b'{"y":[1],"x":1}'})[0], "true is not 1"
    assert "line 2" in differences(left, {**right, "output/c.csv": b"a\n2\n"})[0]
    assert "only the first" in differences(left, {"output/a.json": b"{}"})[-1]
    assert "b.db" in differences(left, {**right, "output/b.db": base([(1, "p")])})[0]


def test_fourteen_probes_six_of_them_named_by_the_paper(depot):
    assert len(PROBES) == 14
    assert set(NAMED_BY_TEV) < set(PROBES)
    environment, other = build_environment(depot, 1, "unit"), build_environment(depot, 2, "unit")
    trees = {name: probe(environment, other) for name, probe in PROBES.items()}
    assert trees["empty_output"] == {}
    assert trees["minimal_schema_valid"]["output/stock.csv"] == b"sku,quantity,value_cents\n"
    assert trees["minimal_schema_valid"]["output/summary.json"].startswith(b'{"movements": 0')
    assert trees["copied_input"]["output/movements.csv"] in environment.public.values()
    assert trees["single_seed_hard_coding"] == other.output
    assert all(path not in trees["misplaced_content"] for path in environment.output)
    assert b"null" in trees["null_filled"]["output/summary.json"]
    assert b"Infinity" in trees["non_finite_numbers"]["output/summary.json"]
    assert len({repr(sorted(tree.items())) for tree in trees.values()}) == 14, "all different"
    for name, tree in trees.items():
        assert grade(depot, environment, tree).phi == 0, name


def test_hygiene_sees_answers_in_inputs_and_code(depot):
    environment = build_environment(depot, 1, "unit")
    assert public_hygiene(depot, environment) == []

    def leaking(path: str, data: bytes) -> list[str]:
        return public_hygiene(depot, dataclasses.replace(environment, public={**environment.public, path: data}))

    assert (
        "holds the whole of output/summary.json"
        in leaking("input/old.json", environment.output["output/summary.json"])[0]
    )
    assert (
        "holds the whole of output/stock.csv"
        in leaking("input/n.txt", b"see:\n" + environment.output["output/stock.csv"])[0]
    )
    code = (depot.folder / "verify.py").read_bytes()
    assert any("lines of verify.py" in text for text in leaking("input/notes.txt", code))
    assert "'truth.json'" in leaking("input/notes.txt", b"the key is in truth.json")[0]
