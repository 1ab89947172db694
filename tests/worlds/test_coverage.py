"""Coverage axes, the greedy covering choice, balance, tables, overlap with held-out tasks, partitions."""

from __future__ import annotations

import math
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.worlds.building import build_environment
from workbench.worlds.corpus_work import environment_row
from workbench.worlds.coverage import (
    AXES,
    ROLLOUT_AXES,
    UNOBSERVED,
    Sketch,
    band,
    greedy,
    measure,
    pairs,
    sketch,
    valid_pairs,
)
from workbench.worlds.overlap import overlap_row, overlap_table, read_prompts
from workbench.worlds.partitions import PARTITIONS, held_out_generators, partition_of, seeds_in
from workbench.worlds.tables import balance, balances, horizon_table, scale_table


def labelled(**values: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {axis: values.get(axis, (UNOBSERVED,)) for axis in AXES}


def pool_of(*corruptions: tuple[str, ...]) -> list[Sketch]:
    return [
        Sketch("g", seed, "unit", labelled(scale_tier=("unit",), corruption_class=kinds, tool_capability=("sql",)))
        for seed, kinds in enumerate(corruptions)
    ]


def test_nineteen_axes_three_of_which_wait_for_rollouts():
    assert len(AXES) == len(set(AXES)) == 19
    assert set(ROLLOUT_AXES) < set(AXES)


@pytest.mark.parametrize(
    ("axis", "value", "expected"),
    [
        ("semantic_horizon", 99, "<100"),
        ("semantic_horizon", 100, "100-999"),
        ("action_horizon", 6, "6-8"),
        ("operational_horizon", 262144, ">=262144"),
    ],
)
def test_bands(axis, value, expected):
    assert band(axis, value) == expected


def test_a_sketch_labels_what_is_built(make_generator):
    generator = make_generator("sketched")
    row = environment_row(generator, build_environment(generator, 7, "unit"))
    found = sketch(generator, 7, "unit").labels
    assert row["labels"] == found
    assert set(found) == set(AXES)
    assert found["reward_band"] == (UNOBSERVED,)
    assert found["reward_component"] == ("movements", "stock", "summary")
    assert found["generator_revision"] == ("sketched@1",)


def test_pairs_are_of_different_axes_and_observed():
    found = pairs(labelled(scale_tier=("unit",), corruption_class=("a", "b")))
    assert found == {(("scale_tier", "unit"), ("corruption_class", k)) for k in "ab"}


def test_greedy_takes_the_largest_gain_first_and_stops_when_nothing_is_added():
    pool = pool_of(("a",), ("a", "b", "c"), ("d",), ("a", "d"))
    chosen = greedy(pool)
    assert [s.seed for s in chosen] == [1, 2]
    assert measure([s.labels for s in chosen], pool).uncovered == ()
    assert [s.seed for s in greedy(pool, size=1)] == [1]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcdefg"), min_size=1), min_size=1, max_size=12))
def test_greedy_covers_every_valid_pair_and_each_choice_is_the_best(kinds):
    pool = pool_of(*(tuple(sorted(k)) for k in kinds))
    done: set = set()
    for chosen in greedy(pool):
        gain = len(pairs(chosen.labels) - done)
        assert gain == max(len(pairs(s.labels) - done) for s in pool) > 0
        done |= pairs(chosen.labels)
    assert done == valid_pairs(pool)


def test_uncovered_pairs_are_listed():
    pool = pool_of(("a",), ("b",))
    found = measure([pool[0].labels], pool)
    assert found.share == pytest.approx(3 / 5)
    assert "scale_tier=unit x corruption_class=b" in found.to_row()["uncovered"]


def test_balance_by_hand():
    assert balance([5, 5, 5]) == pytest.approx(1.0)
    assert balance([7, 0, 0], buckets=3) == pytest.approx(1 / 3)
    # p = 1/2, 1/4, 1/4: H = 1.5 ln 2, exp(H) = 2^1.5
    assert balance([2, 1, 1]) == pytest.approx(2**1.5 / 3)
    # the counts of Tev Table 8 give its 0.89
    assert balance([264, 242, 664]) == pytest.approx(0.89, abs=0.005)
    assert math.isnan(balance([]))


def test_tables_by_hand():
    def row(domain: str, stages: int, files: int, kinds: str, formats: list[str]) -> dict:
        return {
            "domain": domain, "stages": stages, "input_files": files, "corruptions": list(kinds), "formats": formats,
            "tier": "unit", "input_bytes": 10 * files, "prompt_words": 5, "nodes": [1, 2], "components": [1],
        }  # fmt: skip

    rows = [
        row("9.4", 5, 8, "a", ["csv"]),
        row("9.1", 6, 10, "ab", ["csv", "json"]),
        row("9.6", 8, 20, "abc", ["yaml"]),
    ]
    table = {r["category"]: r for r in horizon_table(rows)}
    assert list(table) == ["Math & Science", "Coding & System", "total"]
    assert table["Coding & System"]["stages"] == 7
    assert table["Coding & System"]["corruptions"] == 2.5
    assert table["total"]["input_files"] == 10
    assert table["total"]["formats"] == 3
    assert table["total"]["base_pass_at_1"] is None
    assert scale_table(rows)[0]["input_bytes"] == 100
    assert balances(rows)["category"]["counts"] == {"Coding & System": 2, "Math & Science": 1}
    assert horizon_table([]) == []


LONG = " ".join(f"word{n}" for n in range(20))


def test_overlap_by_hand():
    held_out = {
        "copied": f"alpha {LONG} omega",
        "part": f"zeta {' '.join(LONG.split()[:8])} eta",
        "own": "nothing alike here",
    }
    row = overlap_row("set", held_out, {"env": LONG})
    assert (row["tasks"], row["hits_13_gram"], row["hits_8_gram"]) == (3, 1, 2)
    assert row["max_token_coverage"] == pytest.approx(20 / 22)
    assert row["nearest_jaccard_max"] == pytest.approx(20 / 22)
    assert row["nearest_jaccard_median"] == pytest.approx(8 / 22)


def test_calibration_leaves_each_task_out_of_its_own_comparison():
    row = overlap_row("set", {"a": LONG, "b": LONG, "c": "else"}, None)
    assert (row["hits_13_gram"], row["nearest_jaccard_max"], row["calibration"]) == (2, 1.0, True)
    assert overlap_row("set", {"a": LONG}, None)["hits_8_gram"] == 0


def test_the_table_ends_with_its_calibration_block():
    rows = overlap_table({"e": "x"}, {"one": {"a": "b"}, "two": {"c": "d"}})
    assert [(r["evaluation_set"], r["calibration"]) for r in rows] == [
        ("one", False),
        ("two", False),
        ("one", True),
        ("two", True),
    ]


def test_prompts_of_a_folder(tmp_path):
    for name, text in {
        "t1/instruction.md": "one",
        "t2/steps/a/instruction.md": "two",
        "t2/steps/b/instruction.md": "three",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "README.md").write_text("not a task")
    (tmp_path / "t3").mkdir()
    (tmp_path / "t3" / "instruction.md").symlink_to("/etc/passwd")
    assert read_prompts(tmp_path) == {"t1": "one", "t2": "two\nthree"}
    with pytest.raises(FileNotFoundError, match="no such folder"):
        read_prompts(tmp_path / "none")
    with pytest.raises(ValueError, match="neither Harbor tasks"):
        read_prompts(tmp_path / "t3")


DOMAINS = {f"g{n}": str(n % 4) for n in range(12)}


@settings(max_examples=30, deadline=None)
@given(salt=st.text(max_size=8), seeds=st.lists(st.integers(0, 10**6), max_size=30))
def test_every_environment_is_in_exactly_one_partition(salt, seeds):
    held_out = held_out_generators(DOMAINS, salt)
    for name in DOMAINS:
        for seed in seeds:
            found = partition_of(name, seed, salt, held_out)
            assert found in PARTITIONS
            assert (found == "held_out_generators") == (name in held_out)
            assert found == partition_of(name, seed, salt, held_out)


@settings(max_examples=20, deadline=None)
@given(salt=st.text(max_size=8))
def test_partitions_are_disjoint_and_complete(salt):
    held_out = held_out_generators(DOMAINS, salt)
    assert len(held_out) == 2, "a fifth of twelve, rounded down"
    assert {DOMAINS[n] for n in DOMAINS if n not in held_out} == set(DOMAINS.values())
    for name in DOMAINS:
        sets = {p: set(islice(seeds_in(name, p, salt, held_out), 40)) for p in PARTITIONS}
        filled = [p for p in PARTITIONS if sets[p]]
        assert filled == (["held_out_generators"] if name in held_out else list(PARTITIONS[:3]))
        assert len(set().union(*sets.values())) == 40 * len(filled)


def test_shares_are_about_what_they_say():
    found = [partition_of("g", seed) for seed in range(5000)]
    assert 0.77 < found.count("training") / 5000 < 0.83
    assert partition_of("g", 1, "a") != partition_of("g", 1, "b") or any(
        partition_of("g", s, "a") != partition_of("g", s, "b") for s in range(50)
    )
    assert held_out_generators({"only": "9.1"}) == frozenset()
    with pytest.raises(ValueError, match="share 1"):
        held_out_generators(DOMAINS, share=1)
