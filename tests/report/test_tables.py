from __future__ import annotations

import math

import pandas as pd
import pytest

from workbench.report.tables import admission_table, funnel, rates, trial_table


def test_admission_table_says_why(admissions):
    table = admission_table(admissions).set_index("task")
    assert dict(table["verdict"]) == {
        "good": "admitted", "no-build": "refused", "weak": "refused", "easy": "refused", "broken": "no verdict",
    }  # fmt: skip
    assert table.loc["weak", "reason"] == "noop-passes"
    assert table.loc["weak", "message"] == "noop-passes at noop"
    assert table.loc["good", "rewards"] == [0.0, 1.0, 0.5, 0.5]
    assert table.loc["no-build", "seconds"] == pytest.approx(1.0)


def test_the_three_rates_have_their_denominators(admissions):
    table = rates(admissions, usd=1.0).set_index("rate")
    # broken has no verdict; no-build and weak are not valid; easy is validated and not admitted
    assert list(zip(table["k"], table["n"], strict=True)) == [(2, 4), (2, 4), (1, 4)]
    assert set(table["no_verdict"]) == {1}
    assert table.loc["valid_paper", "usd_per_valid"] == 0.5
    assert (table["low"] < table["share"]).all()
    assert (table["share"] < table["high"]).all()


def test_without_calibration_nothing_is_admitted_of_nothing(admissions):
    rows = admissions[admissions["task"].isin(["no-build", "weak"])]
    assert tuple(rates(rows).set_index("rate").loc["admitted", ["k", "n"]]) == (0, 0)
    assert math.isnan(rates(rows).set_index("rate").loc["admitted", "share"])


def test_funnel_by_hand(admissions):
    table = funnel(admissions).set_index("stage")
    entered = {"files": 4, "build": 4, "oracle": 3, "noop": 3, "repeat": 2, "calibration": 2}
    assert dict(table["entered"]) == entered
    assert dict(table["passed"]) == {"files": 4, "build": 3, "oracle": 3, "noop": 2, "repeat": 2, "calibration": 1}
    assert table.loc["calibration", "of_all"] == 0.25


def test_trials_that_do_not_count_are_told_apart():
    rows = [
        {
            "task": "t",
            "agent": "a",
            "model": "m",
            "outcome": "graded",
            "reward": 1.0,
            "turns": 2,
            "seconds": 1.0,
            "usd": 0.1,
        },
        {
            "task": "t",
            "agent": "a",
            "model": "m",
            "outcome": "policy",
            "reward": 0.0,
            "turns": 1,
            "seconds": 1.0,
            "usd": 0.1,
        },
        {
            "task": "t",
            "agent": "a",
            "model": "m",
            "outcome": "infra",
            "reward": None,
            "turns": 0,
            "seconds": 1.0,
            "usd": None,
        },
    ]
    row = trial_table(pd.DataFrame(rows)).iloc[0]
    assert (row["n"], row["mean"], row["std"], row["policy"], row["not_counted"]) == (2, 0.5, 0.5, 1, 1)
    assert row["seconds"] == 3.0
    assert math.isnan(row["usd"])  # one price is unknown, so the sum is


def test_empty_frames_give_empty_tables():
    empty = pd.DataFrame()
    for table in (admission_table(empty), funnel(empty), trial_table(empty)):
        assert table.empty
        assert len(table.columns) > 0
    assert list(rates(empty)["n"]) == [0, 0, 0]
