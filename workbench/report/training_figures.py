"""Figures of training: learning curves, useful groups and collection time, validity of the proposer, gains over a static pool.

Each takes tables of workbench.report.training_figures_rows and returns (figure, the table that it draws), published values
beside ours in a panel or with hollow marks of their own. Sources: AutoEnvScaling Figs. 1, 6, 7, 20, 21 and appendices G, H.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.report import published
from workbench.report.figures import label
from workbench.report.style import COLUMN, PUBLISHED, WIDE, below, looks, panels
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATE_WINDOW, TIME_WINDOW = 3, 5  # trailing means of Fig. 7, in steps


def trailing(values: Sequence[float], window: int) -> list[float]:
    """Mean of each value and the ones before it, at most `window` in all; NaN values are left out."""
    kept = [[v for v in values[max(0, i + 1 - window) : i + 1] if not math.isnan(v)] for i in range(len(values))]
    return [math.fsum(part) / len(part) if part else math.nan for part in kept]


def learning_curves(evaluations: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Fig. 6: held-out score during training, one panel a set, one line an arm (mean of its runs; faint: each run, where there are several).
    The published points are in a panel of their own: other tasks, another model. Columns of the table: panel, arm, run, step, score, low, high."""
    import pandas as pd

    rows = _published_curve("autoenvscaling_fig_06", "TB 2.1") + _published_curve("autoenvscaling_fig_06", "TB 4.0")
    for _, row in evaluations.sort_values(["set", "arm", "run", "step"]).iterrows():
        rows.append(
            [
                f"ours: {row['set']}",
                row["arm"],
                row["run"],
                row["step"],
                100 * row["avg"],
                100 * row["low"],
                100 * row["high"],
            ]
        )
    table = pd.DataFrame(rows, columns=["panel", "arm", "run", "step", "score", "low", "high"])
    names = list(dict.fromkeys(table["panel"]))
    fig, axes = panels(len(names), width=WIDE, height=2.7)
    for ax, name in zip(axes, names, strict=True):
        _curves(ax, table[table["panel"] == name], solid=name.startswith("ours"))
        ax.set_title(label(name), fontsize=8.5, loc="left")
        _update_axis(ax)
    axes[0].set_ylabel("score (%)")
    below(fig, axes)
    return fig, table


def _published_curve(name: str, suite: str) -> list[list[Any]]:
    """The told points of one suite; a point whose update is not told stands at none and is left out of the drawing."""
    rows = []
    for _, cell in published.load(name).iterrows():
        if cell["row"].startswith(suite) and not math.isnan(cell["number"]):
            step = float(cell["column"]) if cell["column"].isdigit() else math.nan
            rows.append(
                [f"published: {suite}", cell["row"].split(" | ")[1], "", step, cell["number"], math.nan, math.nan]
            )
    return rows


def _curves(ax: Axes, part: pd.DataFrame, solid: bool) -> None:
    for arm, look in looks(list(part["arm"])).items():
        lines = part[(part["arm"] == arm) & part["step"].notna()].sort_values("step")
        mean = lines.groupby("step", as_index=False)["score"].mean()
        face = look.colour if solid else "none"
        line = look.line if solid else ""  # between two told points nothing is known
        ax.plot(mean["step"], mean["score"], color=look.colour, ls=line, marker=look.marker, ms=4, mfc=face, label=arm)
        for at, score in () if solid else mean[["step", "score"]].to_numpy().tolist():
            ax.annotate(f"{score:g}", (at, score), xytext=(0, 5), textcoords="offset points", fontsize=6.5, ha="center")
        runs = [r for _, r in lines.groupby("run")]
        for one in runs if len(runs) > 1 else ():
            ax.plot(one["step"], one["score"], color=look.colour, lw=0.6, alpha=0.3)
        if len(runs) == 1 and lines["low"].notna().any():
            ax.fill_between(lines["step"], lines["low"], lines["high"], color=look.colour, alpha=0.12, lw=0)


def collection(updates: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Fig. 7: useful-group rate (3-step trailing mean) and collection time (5-step) of each arm; faint: single steps.
    Columns: run, arm, step, accepted, collected, useful, useful_trailing, minutes, minutes_trailing."""
    import pandas as pd

    parts = []
    for _, part in updates.sort_values(["arm", "run", "step"]).groupby(["arm", "run"], sort=False):
        part = part[["run", "arm", "step", "accepted", "collected", "useful", "minutes"]].copy()
        part.insert(6, "useful_trailing", trailing(list(part["useful"]), RATE_WINDOW))
        part["minutes_trailing"] = trailing(list(part["minutes"]), TIME_WINDOW)
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    fig, axes = panels(2, width=WIDE, height=2.6)
    for ax, column, factor, title in (
        (axes[0], "useful", 100, f"useful groups (%), {RATE_WINDOW}-step mean"),
        (axes[1], "minutes", 1, f"collection (minutes), {TIME_WINDOW}-step mean"),
    ):
        for arm, look in looks(list(table["arm"])).items():
            for number, (_, one) in enumerate(table[table["arm"] == arm].groupby("run")):
                ax.plot(one["step"], factor * one[column], color=look.colour, lw=0.6, alpha=0.3)
                ax.plot(
                    one["step"],
                    factor * one[f"{column}_trailing"],
                    color=look.colour,
                    ls=look.line,
                    label=None if number else arm,
                )
        ax.set_title(title, fontsize=8.5, loc="left")
        _update_axis(ax)
        ax.set_ylim(bottom=0)
    below(fig, axes)
    return fig, table


def collection_summary(updates: pd.DataFrame, baseline: str = "static pool (Tmax)") -> pd.DataFrame:
    """Retention (accepted over collected groups, a ratio of sums) and mean minutes of each arm over the updates that all arms have
    (G.1), and both against the baseline. Columns row, column, value, note as workbench.report.published.beside takes them."""
    import pandas as pd

    reached = [set(part["step"]) for _, part in updates.groupby("arm")]
    same = updates[updates["step"].isin(set.intersection(*reached))] if reached else updates
    note = f"updates {same['step'].min()} to {same['step'].max()}" if len(same) else ""
    rows, rate, minutes = [], {}, {}
    for arm, part in same.groupby("arm", sort=False):
        rate[arm] = part["accepted"].sum() / part["collected"].sum() if part["collected"].sum() else math.nan
        minutes[arm] = part["minutes"].mean()
        rows.append([arm, "useful-group rate", round(100 * rate[arm], 2), note])
        rows.append([arm, "collection time", round(minutes[arm], 4), note])
    for arm in rate if baseline in rate else ():
        if arm != baseline:
            against = f"{arm} against {baseline}"
            rows.append(
                [
                    against,
                    "useful-group rate",
                    round(rate[arm] / rate[baseline], 3) if rate[baseline] else math.nan,
                    note,
                ]
            )
            rows.append([against, "collection time", round(100 * (minutes[arm] / minutes[baseline] - 1), 1), note])
    return pd.DataFrame(rows, columns=["row", "column", "value", "note"])


def proposer_validity(phases: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Fig. 20: share of valid environments of the shared policy as proposer, by solver update; bars: Wilson, 95 %.
    Hollow: the published points that the text tells. Columns: whose, arm, run, step, k, n, percent, low, high."""
    import pandas as pd

    rows = []
    for _, cell in published.load("autoenvscaling_fig_20").iterrows():
        if cell["column"].isdigit():
            rows.append(
                [
                    "published",
                    cell["row"],
                    "",
                    int(cell["column"]),
                    math.nan,
                    math.nan,
                    cell["number"],
                    math.nan,
                    math.nan,
                ]
            )
    for _, row in phases.sort_values(["arm", "run", "step"]).iterrows():
        rows.append(
            [
                "ours",
                row["arm"],
                row["run"],
                row["step"],
                row["valid"],
                row["verdicts"],
                *_percent(row["valid"], row["verdicts"]),
            ]
        )
    table = pd.DataFrame(rows, columns=["whose", "arm", "run", "step", "k", "n", "percent", "low", "high"])
    whose = [name for name in ("published", "ours") if (table["whose"] == name).any()]
    fig, axes = panels(len(whose), width=COLUMN * len(whose), height=2.6, sharey=True)
    for ax, name in zip(axes, whose, strict=True):
        part = table[table["whose"] == name]
        shift = 0.012 * (part["step"].max() - part["step"].min()) if name == "ours" else 0.0  # equal points stay apart
        beside = {arm: i * shift for i, arm in enumerate(dict.fromkeys(part["arm"]))}
        for arm, look in looks(list(part["arm"])).items():
            for number, (_, one) in enumerate(part[part["arm"] == arm].groupby("run")):
                face = "none" if name == "published" else look.colour
                line = "" if name == "published" else look.line
                err = None if name == "published" else [one["percent"] - one["low"], one["high"] - one["percent"]]
                ax.errorbar(one["step"] + beside[arm], one["percent"], yerr=err, color=look.colour, ls=line, marker=look.marker, mfc=face, ms=5,
                            capsize=2, label=None if number else arm)  # fmt: skip
        ax.set_title(name, fontsize=8.5, loc="left")
        _update_axis(ax)
        ax.set_ylim(-3, 103)
    axes[0].set_ylabel("valid environments (%)")
    below(fig, axes)
    return fig, table


def cold_start_validity(measured: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Fig. 21: share of valid environments before and after Cold-Start, and of others where they were measured; Wilson, 95 %.
    measured: columns model, k, n. Published models whose bar the text does not tell are in the table, and not drawn.
    Columns: whose, model, k, n, percent, low, high."""
    import pandas as pd

    rows = [["published", c["row"], math.nan, math.nan, c["number"], math.nan, math.nan]
            for _, c in published.load("autoenvscaling_fig_21").iterrows() if c["column"] == "valid-environment rate"]  # fmt: skip
    rows += [["ours", r["model"], r["k"], r["n"], *_percent(r["k"], r["n"])] for _, r in measured.iterrows()]
    table = pd.DataFrame(rows, columns=["whose", "model", "k", "n", "percent", "low", "high"])
    drawn = table[table["percent"].notna()].reset_index(drop=True)
    fig, (ax,) = panels(1, width=COLUMN, height=0.9 + 0.34 * len(drawn))
    own = drawn["whose"] == "ours"
    for chosen, colour, hatch, text in ((~own, "white", "//", "published"), (own, "#0072B2", "", "ours")):
        part = drawn[chosen]
        err = [part["percent"] - part["low"], part["high"] - part["percent"]] if text == "ours" else None
        if len(part):
            ax.barh(part.index, part["percent"], 0.6, color=colour, edgecolor=PUBLISHED if text == "published" else colour, hatch=hatch,
                    xerr=err, capsize=2, label=text)  # fmt: skip
    ax.set_yticks(drawn.index, [label(m) for m in drawn["model"]], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlim(0, 103)
    ax.set_xlabel("valid environments (%)")
    below(fig, [ax])
    return fig, table


def _update_axis(ax: Axes) -> None:
    ax.set_xlabel("solver update")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.margins(y=0.12)


def _percent(k: float, n: float) -> tuple[float, float, float]:
    low, high = wilson(int(k), int(n))
    return (100 * k / n if n else math.nan), 100 * low, 100 * high
