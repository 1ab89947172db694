"""Arms at their common last update: the table of scores, and gains over a static pool as bars (AutoEnvScaling Fig. 1, Table 3, G.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.report import published
from workbench.report.figures import label
from workbench.report.style import COLUMN, below, looks, panels, styled
from workbench.report.training_figures_rows import common_step

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def gains(name: str, ours: Sequence[Mapping[str, Any]], measure: str) -> tuple[Figure, pd.DataFrame]:
    """Fig. 1, middle and right: bars of arms in groups; published left, ours right when there are any.
    name: of the published figure. ours: rows with row (the group), column (the arm) and value in percent.
    Columns: whose, row, arm, percent."""
    import pandas as pd

    rows = [
        ["published", c["row"], c["column"], c["number"]]
        for _, c in published.load(name).iterrows()
        if c["unit"] == "%"
    ]
    rows += [["ours", r["row"], r["column"], float(r["value"])] for r in ours]
    table = pd.DataFrame(rows, columns=["whose", "row", "arm", "percent"])
    whose = list(dict.fromkeys(table["whose"]))
    fig, axes = panels(len(whose), width=COLUMN * len(whose), height=2.6)
    for ax, side in zip(axes, whose, strict=True):
        _grouped_bars(ax, table[table["whose"] == side])
        ax.set_title(side, fontsize=8.5, loc="left")
    axes[0].set_ylabel(measure)
    below(fig, axes)
    return fig, table


def _grouped_bars(ax: Axes, part: pd.DataFrame) -> None:
    groups, arms = list(dict.fromkeys(part["row"])), looks(list(part["arm"]))
    width = 0.8 / max(1, len(arms))
    with styled():
        for i, (arm, look) in enumerate(arms.items()):
            own = part[part["arm"] == arm]
            x = [groups.index(row) + (i - (len(arms) - 1) / 2) * width for row in own["row"]]
            bars = ax.bar(
                x,
                own["percent"],
                width * 0.92,
                color=look.colour,
                hatch=look.hatch,
                edgecolor="white",
                lw=0.5,
                label=arm,
            )
            ax.bar_label(bars, fmt="%.1f", fontsize=6.5, padding=1)
        ax.set_xticks(range(len(groups)), [label(g) for g in groups], fontsize=7.5)
        ax.margins(y=0.12)
        ax.grid(axis="x", visible=False)


def at_common_step(evaluations: pd.DataFrame, name: str | None = None) -> pd.DataFrame:
    """The evaluations of all arms at their common last update, one row an arm and set (mean over runs): set, arm, step, percent, runs."""
    import pandas as pd

    rows = []
    for set_, part in evaluations.groupby("set", sort=False):
        step = common_step(part) if name in (None, set_) else None
        for arm, own in part[part["step"] == step].groupby("arm", sort=False) if step is not None else ():
            rows.append([set_, arm, step, 100 * own["avg"].mean(), own["run"].nunique()])
    return pd.DataFrame(rows, columns=["set", "arm", "step", "percent", "runs"])
