"""What 60_worlds shows: each table against numbers worked out by hand, each figure with the table that it draws."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from workbench.report import difficulty_table, horizon, starvation, world_corpus, world_phi, world_view


def stage(name: str, *requires: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, kind="load", work=3, requires=requires)


def test_a_preview_is_one_line_of_text_or_bytes():
    assert world_view.preview(b"a,b\n1,2\n") == "a,b ⏎ 1,2"
    assert world_view.preview(b"\x89PNG\x00") == "89 50 4e 47 00"
    assert world_view.preview(b"") == "(empty)"
    assert world_view.preview(("é" * 400).encode()).startswith("éé")
    assert "\x1b" not in world_view.preview(b"\x1b[31mred")


def test_files_name_their_damage_and_defects_hide_what_undoes_them():
    defects = [SimpleNamespace(kind="drift", path="input/a.csv", params={"column": "x", "undo": [1]}, note="n")]
    files = world_view.files_table({"input/b.csv": b"1", "input/a.csv": b"22"}, defects)
    assert files["path"].tolist() == ["input/a.csv", "input/b.csv"]
    assert files["corruptions"].tolist() == ["drift", ""]
    assert world_view.defects_table(defects)["parameters"].tolist() == ["column='x'"]


def test_the_workflow_marks_its_critical_path_and_depths():
    stages = [stage("a"), stage("b", "a"), stage("c", "a"), stage("d", "b", "c")]
    fig, table = world_view.workflow_figure(stages, ("a", "b", "d"))
    assert table["depth"].tolist() == [0, 1, 1, 2]
    assert table["critical"].tolist() == [True, True, False, True]
    assert len(fig.axes[0].texts) == 4 + 4  # a box for each stage, an arrow for each dependency


def test_phi_along_the_reference_names_what_each_stage_completes():
    grades = [("s1", 0.25, {"x": 1.0, "y": 0.5}), ("s2", 1.0, {"x": 1.0, "y": 1.0})]
    table = world_phi.reference_table(grades)
    assert table["completes"].tolist() == ["x", "y"]
    assert world_phi.plateaus(table) == {"after s1": 0.25, "after s2": 1.0}
    assert world_phi.reference_figure(table)[1] is table


TRIALS = [
    {"agent": "p", "submitted": True, "passed": True, "phi": 1.0, "progress": (0.5, 1.0)},
    {"agent": "i", "submitted": True, "passed": False, "phi": 0.5, "progress": (0.5,)},
    {"agent": "c", "submitted": False, "passed": True, "phi": 1.0, "progress": (1.0, 1.0)},
    {"agent": "e", "submitted": False, "passed": False, "phi": 0.0, "progress": ()},
]


def test_rollouts_start_at_zero_and_say_how_they_ended():
    assert [world_phi.ending(t) for t in TRIALS] == ["passed", "incomplete", "complete", "exhausted"]
    fig, table = world_phi.rollouts_figure(TRIALS, {"after s1": 0.5})
    assert table[table["turn"] == 0]["phi"].tolist() == [0.0] * 4
    assert table["phi"].tolist() == [0, 0.5, 1.0, 0, 0.5, 0, 1.0, 1.0, 0]
    assert table[table["end"] != ""]["end"].tolist() == ["passed", "incomplete", "complete", "exhausted"]
    texts = [t.get_text() for t in fig.axes[0].get_legend().get_texts()]
    assert "terminal reward: 1 for 1 of 4" in texts


def test_the_wasted_share_is_that_of_the_paper():
    from workbench.report.published import value

    for p, size in ((0.05, 8), (0.01, 8), (0.05, 16)):
        printed = value("tev_fig_04", "wasted groups", f"p = {p:g}, G = {size}")
        assert round(100 * starvation.wasted(p, size)) == printed
    with pytest.raises(ValueError, match="p=2"):
        starvation.wasted(2, 8)


def rollout(
    group: str, passed: bool = False, submitted: bool = True, phi: float = 0.0, outcome: str = "graded"
) -> dict:
    return {"population": "w", "group": group, "passed": passed, "submitted": submitted, "phi": phi, "outcome": outcome}


def test_wasted_groups_under_terminal_and_progressive_reward():
    rows = [
        rollout("g1", phi=0.2), rollout("g1", phi=0.4),  # all fail, Phi tells them apart
        rollout("g2", phi=0.3), rollout("g2", phi=0.3),  # wasted either way
        rollout("g3", True, phi=1.0), rollout("g3", phi=0.1),  # a signal either way
        rollout("g4", True, False, phi=1.0), rollout("g4", phi=0.1),  # complete but never submitted: fails
        rollout("g5", outcome="infra"), rollout("g5", phi=0.1),  # one is left: no group
    ]  # fmt: skip
    table = starvation.wasted_table(pd.DataFrame(rows))
    row = table.iloc[0]
    assert (row["groups"], row["rollouts"], row["group_size"]) == (4, 8, 2)
    assert row["p"] == pytest.approx(1 / 8)
    assert row["expected"] == pytest.approx((7 / 8) ** 2)
    assert (row["all_fail"], row["terminal"], row["progressive"]) == (0.75, 0.75, 0.25)
    assert starvation.wasted_figure(table)[1] is table
    assert starvation.wasted_table(pd.DataFrame()).empty


def row(name: str, domain: str, tier: str = "unit", **more) -> dict:
    known = {"id": f"{name}-r1-{tier}-s0", "generator": name, "domain": domain, "tier": tier, "stages": 6, "input_files": 4, "input_bytes": 2000,
             "corruptions": ["a", "b"], "formats": ["csv"], "nodes": ["n"], "components": ["c", "d"], "prompt_words": 100, "seconds": 0.5,
             "gates": {"reward_causality": True}}  # fmt: skip
    return {**known, **more}


def test_composition_and_statistics_stand_beside_the_papers():
    category = {"category": "ML", "environments": 3, "stages": 5, "input_files": 9, "corruptions": 2, "formats": 4, "base_pass_at_1": None,
                "frontier_pass_at_1": None}  # fmt: skip
    table = horizon.composition([category]).set_index(["row", "column"])
    assert table.loc[("ML", "environments"), ["published", "ours"]].tolist() == ["242", 3]
    assert table.loc[("ML", "base P@1"), ["published", "ours"]].tolist() == ["0.03", ""]
    shares = {
        "category": {"balance": 0.5, "counts": {"ML": 2}},
        "domain": {"balance": 0.25, "counts": {"a": 1, "b": 1}},
    }
    told = horizon.statistics([row("a", "9.1"), row("b", "9.2", "small", stages=8)], shares).set_index(
        ["row", "column"]
    )
    assert told.loc[("corpus", "stages median"), ["published", "ours"]].tolist() == ["6", 7.0]
    assert told.loc[("unit", "input size"), ["published", "ours"]].tolist() == ["51", 2.0]
    assert told.loc[("corpus", "base fully solved"), "ours"] == ""
    assert told.loc[("corpus", "balance of domains"), "note"] == "exp(H)/K, K = 7; ours: K = 2"
    assert len(horizon.scale_figure([row("a", "9.1")])[1]) == 1


def test_coverage_counts_pairs_of_axes():
    pair = [(("tier", "unit"), ("kind", "a")), (("tier", "unit"), ("kind", "b")), (("tier", "full"), ("role", "x"))]
    table = world_corpus.pairs_table(pair, pair[:1])
    assert table["valid"].tolist() == [2, 1]
    assert table["covered"].tolist() == [1, 1]
    fig, _ = world_corpus.coverage_figure(table, ("tier", "kind", "role"))
    assert "2 of 3 valid pairs" in fig.axes[0].get_title(loc="left")
    assert world_corpus.uncovered_table(pair[:1]).iloc[0].tolist() == ["tier", "unit", "kind", "a"]
    assert world_corpus.axes_table({"tier": ("unit", "full")})["values"].tolist() == [2]


def test_gates_count_what_ran_and_a_broken_construction_is_one():
    generators = {"g": {"gates": [{"gate": "similarity_gate", "passed": False}]}}
    rejected = [
        row("g", "9.1", gates={"reward_causality": False}),
        {"id": "g-r1-unit-s7", "messages": ["construction: x"]},
    ]
    table = world_corpus.gates_table(("reward_causality", "similarity_gate"), generators, [row("g", "9.1")], rejected)
    found = {r["gate"]: (r["passed"], r["of"]) for r in table.to_dict("records")}
    assert found == {"reward_causality": (1, 2), "similarity_gate": (0, 1), "construction": (0, 1)}
    assert world_corpus.gates_figure(table)[1] is table


def test_balance_and_overlap_tables():
    shares = {
        "category": {"counts": {"ML": 2}, "balance": 1.0},
        "domain": {"counts": {"9.1 SE": 1, "9.3 AI": 1}, "balance": 1.0},
    }
    table = world_corpus.balance_table(shares)
    assert "balance 1.00" in world_corpus.balance_figure(table)[0].axes[0].get_title(loc="left")
    measured = {"evaluation_set": "mine", "calibration": True, "tasks": 3, "hits_13_gram": 1, "hits_8_gram": 2, "max_token_coverage": 0.425,
                "nearest_jaccard_median": 0.2, "nearest_jaccard_max": 0.3}  # fmt: skip
    both = world_corpus.overlap_frame([measured])
    assert both.iloc[0][["row", "max token coverage"]].tolist() == ["calibration | mine vs. itself", 42.5]
    assert (both["corpus"] == "Tev-Gym").sum() == 9


def test_difficulty_stands_above_the_papers_rows():
    summary = {"corpus": "mine", "evaluator": "me", "agent_minutes_median": 1.0, "agent_minutes_mean": 2.0, "pass_at_1": 0.25, "pass_at_k": 0.5,
               "k": 4}  # fmt: skip
    table = difficulty_table.corpora_table([summary], {"mine": (60, 7)})
    assert table.iloc[0][["P@1", "P@k", "k", "size"]].tolist() == [25.0, 50.0, 4, 60]
    assert table[table["corpus"] == "Tev-Gym"]["P@k"].tolist() == ["40"]
    tasks = [{"task": "b", "pass_at_1": 0.5, "phi": 0.6}, {"task": "a", "pass_at_1": 0.0, "phi": 0.3}]
    assert difficulty_table.tasks_figure(tasks)[1]["task"].tolist() == ["a", "b"]
