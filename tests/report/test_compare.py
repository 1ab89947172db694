"""Tables and figures of a comparison, from records whose answers are known by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from report_rows import admission

from workbench.report import compare_figures, compare_paired, compare_tables, figures
from workbench.runs import new_run

ENTRIES = [
    ("deep-prompt", "prompt", "deep", True, False), ("deep-feedback", "feedback", "deep", True, False),
    ("deep-harness", "harness", "deep", True, False), ("deep-harness-unchecked", "harness", "deep", False, False),
    ("deep-harness-optimized", "harness", "deep", True, True), ("world", "world", "world", True, False),
]  # fmt: skip
VALID = {"deep-prompt": "1000", "deep-feedback": "1100", "deep-harness": "0111", "deep-harness-unchecked": "0001",
         "deep-harness-optimized": "1111", "world": "1111"}  # fmt: skip


def verdict(valid: bool, admitted: bool | None) -> dict:
    stage = "calibration" if valid and not admitted else "admitted" if valid else "oracle"
    return {"stage": stage, "valid_paper": valid, "validated": valid, "admitted": admitted if valid else False, "reward": -1.0,
            "infra": False, "reasons": []}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    with new_run("20_try", {}, results=tmp_path) as run:
        for place, (id, method, model, check, optimized) in enumerate(ENTRIES):
            row = {"method": method, "model": model, "self_check": check, "optimized": optimized, "agent": "", "family": "f",
                   "place": place}  # fmt: skip
            run.record("entry", row, id=id)
            for n, mark in enumerate(VALID[id]):
                unit, valid = f"{id}-r1-a{n:03d}", mark == "1"
                known = valid if id == "deep-prompt" else None
                found = verdict(valid, n == 3)
                answer = {**row, "entry": id, "assignment": f"r1-a{n:03d}", "reward": -1.0, "first_reward": -1.0, "turns": n + 1,
                          "first_turns": n + 1, "usd": math.nan if id == "deep-feedback" else 0.5, "seconds": 1.0, "files": 8,
                          "data_files": 2, "known": known, "submissions": [unit], "first": found, "last": found}  # fmt: skip
                run.record("answer", answer, id=unit)
                run.record("proposal", {"tokens": 10}, id=unit)
                refused = {"kind": "oracle-fails"} if not valid else {}
                run.record("admission", admission("t", "admitted" if valid else "oracle", **refused), id=unit)
                for i in range(2 if valid else 0):
                    run.record(
                        "trial", {"turns": 4 + i, "reward": float(i), "outcome": "graded"}, id=f"{unit}-solver-{i}"
                    )
        run.record(
            "unanswered", {"entry": "world", "assignment": "r1-a004", "why": "cap", "message": "m"}, id="world-r1-a004"
        )
        run.record(
            "unanswered",
            {"entry": "world", "assignment": "r1-a000", "why": "infra", "message": "m"},
            id="world-r1-a000",
        )
        run.record("optimization", {"entry": "deep-harness", "started": 0, "version": 1, "changed": ["memory/x"], "fixed": True,
                                    "diff": ""}, id="deep-harness-optimized")  # fmt: skip
        yield run


@pytest.fixture
def frame(run):
    return compare_tables.answers(run)


def test_three_columns_each_with_its_denominator(run, frame):
    rates = compare_tables.validity(frame, run)
    of = {(r.entry, r.column): (r.k, r.n) for r in rates.itertuples()}
    assert of["deep-harness", "valid_paper"] == (3, 4)
    assert of["deep-harness", "admitted"] == (1, 4)
    assert of["deep-prompt", "admitted"] == (0, 4)
    assert set(rates[rates["entry"] == "world"]["no_verdict"]) == {1}  # answered later: no longer missing
    assert list(compare_tables.unanswered(run)["assignment"]) == ["r1-a004"]


def test_without_calibration_nothing_is_said_of_admitted(frame):
    frame["first_admitted"] = [None if v else False for v in frame["first_valid_paper"]]
    rates = compare_tables.validity(frame)
    assert set(rates[rates["column"] == "admitted"]["n"]) == {0}
    assert set(rates[rates["column"] == "valid_paper"]["n"]) == {4}


def test_models_and_scripted_designers_are_averaged_apart(frame):
    rates = compare_tables.validity(frame)
    means = compare_tables.method_means(rates)
    assert list(means["kind"]) == ["scripted"] * 3
    assert list(means["mean"]) == [0.25, 0.5, 0.75]
    assert means["low"].isna().all()
    more = pd.concat(
        [
            rates,
            rates.assign(entry="x", model="x", kind="model"),
            rates.assign(entry="y", model="y", kind="model", share=1.0),
        ]
    )
    (model, *_) = compare_tables.method_means(more)[lambda m: m["kind"] == "model"].to_dict("records")
    assert (model["n"], model["mean"]) == (2, 0.625)
    assert compare_tables.t_half_width([0.0, 1.0]) == pytest.approx(12.7062 * 0.5, rel=1e-4)
    assert compare_tables.t_half_width([0.1, 0.2, 0.3, 0.4]) == pytest.approx(3.1824 * 0.1290994 / 2, rel=1e-4)


def test_costs_count_failures_and_an_unknown_price_is_unknown(frame):
    costs = compare_tables.costs(frame).set_index("entry")
    assert costs.loc["deep-prompt", "usd_per_valid"] == 2.0
    assert costs.loc["deep-prompt", "tokens_per_valid"] == 40
    assert math.isnan(costs.loc["deep-feedback", "usd_per_valid"])
    assert costs.loc["deep-feedback", "valid"] == 2


def test_richness_is_of_valid_environments(frame):
    rich = compare_tables.richness(frame).set_index(["entry", "measure"])
    assert tuple(rich.loc[("deep-harness", "solver_turns"), ["n", "mean"]]) == (3, 4.5)
    assert tuple(rich.loc[("deep-prompt", "solver_reward"), ["n", "mean"]]) == (1, 0.5)


def test_turns_are_quartiles_with_whiskers(frame):
    turns = compare_tables.turns(frame).set_index("entry")
    assert tuple(turns.loc["world", ["n", "low", "q1", "median", "q3", "high"]]) == (4, 1, 1.75, 2.5, 3.25, 4)


def test_pairs(frame):
    table = compare_paired.paired(frame, compare_paired.method_pairs(frame))
    row = table.set_index(["first", "second"]).loc[("deep-harness", "deep-prompt")]
    assert tuple(row[["pairs", "both", "only_first", "only_second", "neither"]]) == (4, 0, 3, 1, 0)
    assert (row["difference"], row["p"]) == (0.5, 0.625)
    assert -1 <= row["low"] <= 0.5 <= row["high"] <= 1
    check = compare_paired.self_check(frame).set_index("column")
    assert tuple(check.loc["valid_paper", ["without_check", "with_check"]]) == (0.25, 0.75)


def test_the_sign_test_of_the_paper_s_counts():
    assert compare_paired.sign_test(32, 6) == pytest.approx(2.434e-5, rel=1e-3)
    assert compare_paired.sign_test(0, 0) == 1.0 == compare_paired.sign_test(3, 3)
    assert compare_paired.sign_test(5, 0) == 2 / 32


def test_known_stages_and_optimization(run, frame):
    assert compare_tables.known(frame).to_dict("records") == [
        {"entry": "deep-prompt", "n": 4, "known_valid": 1, "measured_valid": 1, "differ": 0}
    ]
    stages = compare_tables.stages(frame, run).set_index(["entry", "stage"])
    assert tuple(stages.loc[("deep-prompt", "oracle"), ["entered", "passed"]]) == (4, 1)
    (row,) = compare_paired.optimizations(run, frame).to_dict("records")
    assert (row["from_version"], row["to_version"], row["difference"], row["pairs"]) == (0, 1, 0.25, 4)


def test_every_figure_is_saved_with_its_data(run, frame):
    rates, costs = compare_tables.validity(frame, run), compare_tables.costs(frame)
    drawn = {
        "valid": compare_figures.validity_by_model(rates), "admitted": compare_figures.validity_by_model(rates, "admitted"),
        "means": compare_figures.method_means(compare_tables.method_means(rates)),
        "weak": compare_figures.weakening(compare_tables.weakening(rates)), "usd": compare_figures.cost(costs),
        "tokens": compare_figures.cost(costs, "tokens_per_valid"), "rich": compare_figures.richness(compare_tables.richness(frame)),
        "turns": compare_figures.turns(compare_tables.turns(frame)), "stages": compare_figures.stages(compare_tables.stages(frame, run)),
        "paired": compare_figures.paired(compare_paired.paired(frame, compare_paired.method_pairs(frame))),
        "check": compare_figures.self_check(compare_paired.self_check(frame)),
    }  # fmt: skip
    for name, (fig, table) in drawn.items():
        saved = figures.save_figure(run, name, fig, table)
        assert saved.png.stat().st_size > 5_000
        assert len(pd.read_csv(saved.csv)) == len(table) > 0


def test_published_values_stand_beside_one_column_only(frame):
    rates = compare_tables.validity(frame)
    _, table = compare_figures.validity_by_model(rates)
    printed = table[table["source"] != "this run"]
    assert list(zip(printed["model"], printed["method"], printed["share"], strict=True)) == [
        ("DeepSeek-V4-Flash", "prompt", 0.035), ("DeepSeek-V4-Flash", "harness", 0.89),
    ]  # fmt: skip
    assert set(printed["source"]) == {"§4.1"}
    _, admitted = compare_figures.validity_by_model(rates, "admitted")
    assert set(admitted["source"]) == {"this run"}


def test_an_empty_comparison_draws_no_data(tmp_path):
    with new_run("20_try", {}, results=tmp_path) as run:
        frame = compare_tables.answers(run)
        assert len(compare_tables.turns(frame)) == 0
        compare_figures.turns(compare_tables.turns(frame))
        assert len(compare_paired.self_check(frame)) == 0


def test_money_is_never_negative_where_everything_is_free():
    costs = pd.DataFrame([{"entry": "a-prompt", "kind": "scripted", "model": "a", "method": "prompt", "self_check": True, "optimized": False,
                           "assignments": 4, "valid": 2, "usd_per_valid": usd} for usd in (0.0, None)])  # fmt: skip
    for table, right in ((costs, 1), (costs.fillna(3.0), 3)):
        fig, _ = compare_figures.cost(table)
        left, end = fig.axes[0].get_xlim()
        assert left == 0
        assert end >= right
