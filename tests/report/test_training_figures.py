from __future__ import annotations

import math

import pandas as pd
import pytest
from training_rows import evaluation_row, proposer_row, rollout_row, update_row, write

from workbench.report import published
from workbench.report import training_figures as figures
from workbench.report import training_figures_arms as arms_at
from workbench.report import training_figures_rows as rows
from workbench.report import training_figures_tables as tables
from workbench.report.figures import save_figure
from workbench.report.paper_figures_sources import settings_of
from workbench.runs import new_run

FULL = {"a": [0.0, 1.0], "b": [1.0, 1.0]}


@pytest.fixture
def arms(tmp_path, monkeypatch):
    """Two finished arms: full learns and keeps half of its groups, the static pool keeps a quarter and takes twice the time."""
    monkeypatch.delenv("WORKBENCH_RUN", raising=False)
    made = []
    for arm, accepted, seconds in (("full", 2, 60.0), ("static-pool", 1, 120.0)):
        run = new_run(
            "40_flywheel", {"arm": arm, "group": 4, "learning_rate": 1e-3, "reward": "fraction"}, results=tmp_path
        ).begin()
        phase = {3: proposer_row(4), 5: proposer_row(8)} if arm == "full" else {}
        last = 6 if arm == "full" else 5
        write(run, "update", [update_row(s, arm, accepted=accepted, dropped=4 - accepted, seconds=seconds, proposer=phase.get(s)) for s in range(1, last + 1)])  # fmt: skip
        scores = [
            (0, {"a": [0.0, 0.0], "b": [0.0, 1.0]}),
            (4, FULL if arm == "full" else {"a": [0.0, 0.0], "b": [1.0, 1.0]}),
        ]
        write(run, "evaluation", [evaluation_row(step, found, arm) for step, found in scores])
        made.append(run)
    write(made[0], "evaluation", [evaluation_row(6, {"a": [1.0, 1.0], "b": [1.0, 1.0]}, "full")])
    yield made
    for run in made:
        run.close()


def test_trailing_means_begin_short_and_skip_what_is_missing():
    assert figures.trailing([1, 2, 3, 4], 3) == [1, 1.5, 2, 3]
    assert figures.trailing([1.0, math.nan, 3.0], 2) == [1.0, 1.0, 3.0]
    assert math.isnan(figures.trailing([math.nan], 3)[0])


def test_collection_has_3_and_5_step_means_and_a_ratio_of_sums(arms):
    table = rows.updates(arms)
    assert list(table.columns) == list(rows.UPDATES)
    _, drawn = figures.collection(table)
    one = drawn[drawn["arm"] == "full"].reset_index(drop=True)
    assert one["useful_trailing"].tolist() == [0.5] * 6
    assert one["minutes_trailing"].tolist() == [1.0] * 6
    cells = figures.collection_summary(table).set_index(["row", "column"])
    assert cells.loc[("full", "useful-group rate"), "value"] == 50.0
    assert cells.loc[("full against static pool (Tmax)", "useful-group rate"), "value"] == 2.0
    assert cells.loc[("full against static pool (Tmax)", "collection time"), "value"] == -50.0
    assert cells.loc[("full", "collection time"), "note"] == "updates 1 to 5"  # those that both arms have


def test_retention_is_no_mean_of_ratios():
    steps = [update_row(1, accepted=1, dropped=9), update_row(2, accepted=2, dropped=0)]
    frame = pd.DataFrame(
        [
            ["r", "full", s["step"], s["collect"]["accepted"], s["collect"]["collected"], s["collect"]["useful"], 1.0]
            for s in steps
        ],
        columns=["run", "arm", "step", "accepted", "collected", "useful", "minutes"],
    )
    cells = figures.collection_summary(frame).set_index("column")
    assert cells.loc["useful-group rate", "value"] == 25.0  # 3 of 12, not the mean of 10 % and 100 %


def test_a_step_written_twice_counts_once(arms):
    before = len(rows.updates(arms))
    write(arms[0], "update", [update_row(3, accepted=4, dropped=0)])
    table = rows.updates(arms)
    assert len(table) == before
    assert table[(table["arm"] == "full") & (table["step"] == 3)]["accepted"].item() == 4


def test_learning_curves_keep_published_points_apart(arms):
    _, table = figures.learning_curves(rows.evaluations(arms))
    assert list(dict.fromkeys(table["panel"])) == ["published: TB 2.1", "published: TB 4.0", "ours: held-out seeds"]
    ours = table[(table["panel"] == "ours: held-out seeds") & (table["arm"] == "full")]
    assert ours["step"].tolist() == [0, 4, 6]
    assert ours["score"].tolist() == [25.0, 75.0, 100.0]
    best = table[(table["panel"] == "published: TB 2.1") & (table["score"] == 53.3)]
    assert best["step"].isna().all()  # the text does not tell at which update: no place on the axis is made up


def test_arms_are_compared_at_their_common_update(arms):
    common = arms_at.at_common_step(rows.evaluations(arms)).set_index("arm")
    assert common["step"].unique().tolist() == [4]
    assert (common.loc["full", "percent"], common.loc["static pool (Tmax)", "percent"]) == (75.0, 50.0)
    cells = tables.endpoint_scores(common.reset_index())
    beside = published.beside("autoenvscaling_table_03", cells)
    assert set(beside[beside["ours"] != ""]["row"]) == {"ours | held-out seeds"}  # never in a published cell


def test_validity_of_the_proposer_has_wilson_intervals(arms):
    _, table = figures.proposer_validity(rows.phases(arms))
    ours = table[table["whose"] == "ours"]
    assert ours["step"].tolist() == [2, 4]  # the policy before the update
    assert ours["percent"].tolist() == [40.0, 80.0]
    assert ((ours["low"] < ours["percent"]) & (ours["percent"] < ours["high"])).all()
    told = table[table["whose"] == "published"].set_index(["arm", "step"])["percent"]
    assert told[("no proposer training", 160)] == 22.4


def test_figures_of_published_values_alone_say_so():
    fig, table = arms_at.gains("autoenvscaling_fig_01_right", [], "score (%)")
    assert set(table["whose"]) == {"published"}
    assert len(fig.axes) == 1
    fig, table = figures.cold_start_validity(pd.DataFrame(columns=["model", "k", "n"]))
    assert table["percent"].notna().sum() == 2  # the others are named in the table, and have no bar
    assert len(fig.axes[0].patches) == 2


def test_every_training_figure_has_the_same_bytes_twice(arms, run):
    def drawn():
        return {
            "curves": figures.learning_curves(rows.evaluations(arms)),
            "collection": figures.collection(rows.updates(arms)),
            "validity": figures.proposer_validity(rows.phases(arms)),
            "cold": figures.cold_start_validity(pd.DataFrame([["before", 3, 60]], columns=["model", "k", "n"])),
        }

    first = {}
    for name, (fig, table) in drawn().items():
        saved = save_figure(run, name, fig, table)
        first[name] = [p.read_bytes() for p in (saved.png, saved.svg, saved.csv)]
    for name, (fig, table) in drawn().items():
        saved = save_figure(run, name, fig, table)
        assert [p.read_bytes() for p in (saved.png, saved.svg, saved.csv)] == first[name], name


def test_measures_of_tasks_follow_the_definitions():
    scores = [
        {"task": "a", "rewards": [0.0, 1.0], "passes": 1},
        {"task": "b", "rewards": [0.5, 0.5], "passes": 0},
        {"task": "ungraded", "rewards": [], "passes": 0},
    ]
    assert tables.task_measures(scores, 2) == {"S@1": 0.5, "S@2": 0.75, "P@1": 0.25, "P@2": 0.5}
    assert math.isnan(tables.task_measures([], 2)["S@1"])
    three = [{"task": "c", "rewards": [0.0, 0.0, 1.0], "passes": 1}]
    assert tables.task_measures(three, 2)["S@2"] == pytest.approx(2 / 3)  # two of three hold the good one


def test_suites_keep_their_own_rows(arms):
    cells = tables.suite_scores(rows.evaluations(arms))
    full = cells[cells["row"].str.contains("full, after")].set_index("column")["value"]
    assert full["held-out seeds S@1"] == 1.0
    beside = published.beside("tev_table_02", cells)
    assert (beside[beside["published"] != ""]["ours"] == "").all()


def test_the_ablation_tells_time_and_discarded_groups(arms):
    table, scores = rows.updates(arms), rows.evaluations(arms)
    cells = tables.ablation(table, scores, {run.id: "fraction" for run in arms})
    first = cells[cells["row"] == f"ours: fraction | {arms[0].id}"].set_index("column")["value"]
    assert first["minutes per step"] == 2.0
    assert first["groups discarded"] == 50.0
    assert first["S@1"] == 1.0


def test_settings_stand_under_the_published_names(arms):
    cells = tables.settings(tables.SHARED_MODEL, *settings_of(arms[0])).set_index("row")["value"]
    assert (cells["rollouts per solver group"], cells["learning rate"]) == (4, 1e-3)
    assert set(tables.SHARED_MODEL) <= set(published.load("autoenvscaling_table_12")["row"])
    assert set(tables.TEV_RECIPE) <= set(published.load("tev_table_11")["row"])


def cold_start_run(folder):
    run = new_run("30_cold_start", {}, results=folder).begin()
    verdicts = {"before": [False, False, True, False], "after": [True, True, False, True]}
    for when, found in verdicts.items():
        proposals = [
            {"id": f"{when}-{n}", "valid": v, "admitted": v, "reward": 1.0 if v else -1.0} for n, v in enumerate(found)
        ]
        write(run, "proposal", [*proposals, {"id": f"{when}-4", "valid": False, "admitted": False, "reward": None}])
    for when, passes in (
        ("before", {"a": [0.0] * 5, "b": [1.0, 0, 0, 0, 0]}),
        ("after", {"a": [1.0, 0, 0, 0, 0], "b": [1.0, 0, 0, 0, 0]}),
    ):
        row = evaluation_row(0, passes, name=when)
        del row["step"], row["arm"]
        write(run, "evaluation", [row | {"id": when}])
    return run


def test_cold_start_is_compared_on_the_same_assignments(tmp_path):
    with cold_start_run(tmp_path) as run:
        pairs, solving = rows.cold_start_pairs([run]), rows.cold_start_solving([run])
        assert len(pairs) == 4  # without a verdict on both sides there is no pair
        cells = tables.paired_acceptance(pairs).set_index(["row", "column"])
        assert cells.loc[("acceptance", "for Cold-Start"), "value"] == 3
        assert cells.loc[("acceptance", "for the base"), "value"] == 1
        assert cells.loc[("acceptance", "disagreements"), "note"] == "sign test p = 0.625"  # 2·(1 + 4)/16
        assert cells.loc[("ours: after Cold-Start", "acceptance rate"), "value"] == 75.0
        solved = tables.paired_solving(solving).set_index(["row", "column"])
        assert solved.loc[("solving", "mean paired change"), "value"] == 10.0
        assert solved.loc[("pass@5", "p"), "value"] == 1.0
        assert rows.cold_start([run]).to_numpy().tolist() == [["before Cold-Start", 1, 4], ["after Cold-Start", 3, 4]]
        assert rows.evaluations([run]).empty  # they belong to no update


def test_the_published_split_of_disagreements_has_a_tiny_p():
    """32 for Cold-Start and 6 for the base (appendix H)."""
    pairs = pd.DataFrame(
        {
            "assignment": range(60),
            "before": [False] * 32 + [True] * 28,
            "after": [True] * 32 + [False] * 6 + [True] * 22,
        }
    )
    cells = tables.paired_acceptance(pairs).set_index(["row", "column"])["note"]
    assert float(cells[("acceptance", "disagreements")].split("= ")[1]) < 1e-4


def test_groups_with_progress_leave_out_lone_and_failed_attempts(tmp_path):
    with new_run("40_flywheel", {}, results=tmp_path).begin() as run:
        write(run, "rollout", [rollout_row("g1-0", "g1", [0.1, 0.4]), rollout_row("g1-1", "g1", [0.2], submitted=True)])
        write(run, "rollout", [rollout_row("g1-2", "g1", [0.9], outcome="infra"), rollout_row("g2-0", "g2", [0.5])])
        write(run, "rollout", [rollout_row("g3-0", "g3", []), rollout_row("g3-1", "g3", [])])
        (group,) = rows.groups_with_progress([run])
        assert [r["phi"] for r in group] == [0.4, 0.2]


def test_runs_without_training_give_empty_tables(run):
    for table in (
        rows.updates([run]),
        rows.evaluations([run]),
        rows.phases([run]),
        rows.cold_start([run]),
        rows.cold_start_pairs([run]),
    ):
        assert table.empty
    assert arms_at.at_common_step(rows.evaluations([run])).empty
