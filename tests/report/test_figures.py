from __future__ import annotations

import pandas as pd
import pytest
from report_rows import HOSTILE

from workbench.report import figures
from workbench.report.tables import admission_table
from workbench.statistics import mean_std


def measured(admissions: pd.DataFrame) -> pd.DataFrame:
    table = admission_table(admissions)
    table = table[table["rewards"].map(bool)]
    stats = [mean_std(r) for r in table["rewards"]]
    return table.assign(
        mean=[m for m, _ in stats], std=[s for _, s in stats], kept=list(table["verdict"] == "admitted"), task=HOSTILE
    )


POOL = pd.DataFrame({"round": [1, 1, 1, 2], "status": ["active", "rejected", "rejected", "active"]})
TRIALS = pd.DataFrame(
    {
        "round": [1, 1, 1, 2, 2],
        "group": ["parents", "parents", "new$", "new$", "new$"],
        "reward": [0.0, 1.0, 0.5, 0.25, None],
    }
)


def drawn(admissions: pd.DataFrame) -> dict:
    return {
        "rewards": figures.rewards_per_round(TRIALS),
        "pool": figures.pool_composition(POOL),
        "funnel": figures.validity_funnel(admissions),
        "calibration": figures.calibration_scatter(measured(admissions)),
        "curve": figures.operating_curve(),
        "rates": figures.rate_bars(pd.DataFrame({"rate": [HOSTILE, "b"], "k": [1, 0], "n": [4, 0]})),
    }


def test_every_figure_is_saved_with_its_table_and_the_same_bytes_twice(run, admissions):
    first = {}
    for name, (fig, table) in drawn(admissions).items():
        saved = figures.save_figure(run, name, fig, table)
        first[name] = [p.read_bytes() for p in (saved.png, saved.svg, saved.csv)]
        assert saved._repr_png_().startswith(b"\x89PNG")
        assert len(pd.read_csv(saved.csv)) == len(table)
    for name, (fig, table) in drawn(admissions).items():
        saved = figures.save_figure(run, name, fig, table)
        assert [p.read_bytes() for p in (saved.png, saved.svg, saved.csv)] == first[name], name
        assert b"<dc:date>" not in first[name][1]


def test_the_tables_behind_the_figures(admissions):
    tables = {name: table for name, (_, table) in drawn(admissions).items()}
    assert tables["rewards"].to_dict("records")[1] == {
        "round": 1,
        "group": "parents",
        "n": 2,
        "mean": 0.5,
        "q25": 0.25,
        "q75": 0.75,
    }
    assert list(tables["rewards"]["n"]) == [1, 2, 1]  # a missing reward is left out, never 0
    assert tables["pool"].to_dict("records")[1] == {"round": 1, "status": "rejected", "n": 2}
    assert list(tables["calibration"]["kept"]) == [True, False]
    curve = tables["curve"].set_index("pass_rate")["admitted"]
    assert [round(curve[p], 2) for p in (0.1, 0.25, 0.5, 0.9)] == [0.15, 0.55, 0.84, 0.15]


def test_figures_of_nothing_say_so():
    empty = pd.DataFrame()
    nothing = pd.DataFrame(columns=["task", "mean", "std", "kept"])
    for fig, table in (
        figures.rewards_per_round(empty),
        figures.pool_composition(empty),
        figures.validity_funnel(empty),
        figures.calibration_scatter(nothing),
    ):
        assert table.empty
        assert "no data" in [t.get_text() for t in fig.axes[0].texts]


def test_a_figures_name_cannot_leave_the_run(run):
    fig, table = figures.operating_curve()
    with pytest.raises(ValueError, match="plain name"):
        figures.save_figure(run, "../x", fig, table)
