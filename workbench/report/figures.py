"""Figures: each function takes DataFrames and returns (figure, the table that it draws). `save_figure` keeps both.

Nothing here uses pyplot: no global state, no display needed, safe in threads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from workbench.report.tables import funnel, records
from workbench.runs.progress import clean
from workbench.statistics import admission_probability, wilson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("style.mplstyle")
STATUS_COLOURS = {"active": "#009E73", "rejected": "#D55E00", "evicted": "#999999"}


class HasPaths(Protocol):
    """What a figure needs of a run: where its files go."""

    def path(self, kind: str, name: str) -> Path: ...


@dataclass(frozen=True)
class Saved:
    """A saved figure. Shown in a notebook as the picture it is."""

    png: Path
    svg: Path
    csv: Path

    def _repr_png_(self) -> bytes:
        return self.png.read_bytes()

    def __repr__(self) -> str:
        return f"figure {self.png.name} ({self.png.parent})"


def save_figure(run: HasPaths, name: str, fig: Figure, table: pd.DataFrame) -> Saved:
    """Write `name`.png, .svg and .csv below the run's figures/. Equal data give equal bytes (no date, no random ids)."""
    import matplotlib.style

    saved = Saved(*(run.path("figures", f"{name}.{kind}") for kind in ("png", "svg", "csv")))
    with matplotlib.style.context(STYLE):
        fig.savefig(saved.png, metadata={"Software": None})
        fig.savefig(saved.svg, metadata={"Date": None, "Creator": None})
    save_table(run, name, table, "figures")
    return saved


def save_table(run: HasPaths, name: str, table: pd.DataFrame, folder: str = "tables") -> Path:
    """Write a table as CSV below the run's tables/ and return its path."""
    path = run.path(folder, f"{name}.csv")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    table.to_csv(draft, index=False, lineterminator="\n")
    draft.replace(path)
    return path


def rewards_per_round(trials: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Mean solver reward of each round and group with the range of the middle half of its trials.

    trials: columns round (int), group (what is measured, say "parents" or "admitted"), reward. Rows without a reward
    (infrastructure) are left out, and the table says how many count.
    """
    import pandas as pd

    rows = []
    counted = trials.dropna(subset=["reward"]) if len(trials) else trials
    for (round_, group), part in counted.groupby(["round", "group"], sort=True) if len(counted) else ():
        q = part["reward"].astype(float).quantile([0.25, 0.75])
        rows.append([round_, group, len(part), part["reward"].astype(float).mean(), q.iloc[0], q.iloc[1]])
    table = pd.DataFrame(rows, columns=["round", "group", "n", "mean", "q25", "q75"])
    fig, ax = new_figure("Solver reward by round", "round", "reward (mean, middle half)")
    groups = list(dict.fromkeys(table["group"]))
    for i, group in enumerate(groups):
        part = table[table["group"] == group]
        x = part["round"].astype(float) + 0.08 * (i - (len(groups) - 1) / 2)
        low = (part["mean"] - part["q25"]).clip(lower=0)
        high = (part["q75"] - part["mean"]).clip(lower=0)
        ax.errorbar(x, part["mean"], yerr=[low, high], marker="o", capsize=3, label=label(group))
    ax.set_ylim(-0.03, 1.03)
    _whole_ticks(ax, table["round"])
    _legend(ax, table)
    return fig, table


def pool_composition(pool: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Environments by round and standing. pool: records with columns round, status (active, rejected, evicted)."""
    import pandas as pd

    counts = pool.groupby(["round", "status"]).size().reset_index(name="n") if len(pool) else None
    table = counts if counts is not None else pd.DataFrame(columns=["round", "status", "n"])
    fig, ax = new_figure("Environments by round and standing", "round", "environments")
    rounds = sorted(set(table["round"]))
    bottom = dict.fromkeys(rounds, 0)
    for status, colour in STATUS_COLOURS.items():
        heights = {r: int(table[(table["round"] == r) & (table["status"] == status)]["n"].sum()) for r in rounds}
        if any(heights.values()):
            bars = ax.bar(rounds, list(heights.values()), 0.6, bottom=list(bottom.values()), color=colour, label=status)
            ax.bar_label(
                bars, [str(h) if h else "" for h in heights.values()], label_type="center", fontsize=8, color="w"
            )
        bottom = {r: bottom[r] + heights[r] for r in rounds}
    _whole_ticks(ax, table["round"])
    ax.yaxis.get_major_locator().set_params(integer=True)
    _legend(ax, table)
    return fig, table


def validity_funnel(admissions: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Environments that entered (pale) and passed (full) each stage, with passed/entered written at each bar."""
    table = funnel(admissions)
    fig, ax = new_figure("Through the gate", "environments", "")
    places = range(len(table))
    ax.barh(places, table["entered"], color="#CFE3EF", label="entered")
    ax.barh(places, table["passed"], color="#0072B2", label="passed")
    for i, row in enumerate(records(table)):
        ax.text(row["entered"], i, f" {row['passed']}/{row['entered']}", va="center", fontsize=8)
    ax.set_yticks(list(places), list(table["stage"]))
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.xaxis.get_major_locator().set_params(integer=True)
    infra = sum(bool(r.get("infra")) for r in records(admissions))
    if infra:
        ax.set_title(f"Through the gate ({infra} without a verdict left out)")
    _legend(ax, table, loc="upper left", bbox_to_anchor=(1, 1))
    return fig, table


def calibration_scatter(
    measured: pd.DataFrame, *, low: float = 0.25, high: float = 0.75, min_std: float = 0.1
) -> tuple[Figure, pd.DataFrame]:
    """Mean against standard deviation of each environment's rewards, with the band that is kept.

    measured: columns task, mean, std (population), kept (bool); rows without a mean are left out.
    """
    table = measured[["task", "mean", "std", "kept"]].dropna(subset=["mean", "std"]).reset_index(drop=True)
    table["mean"], table["std"] = table["mean"].astype(float), table["std"].astype(float)
    kept = table["kept"].fillna(False).astype(bool)
    fig, ax = new_figure("Calibration", "mean reward", "standard deviation")
    ax.fill_between([low, high], min_std, 0.55, color="#009E73", alpha=0.1, lw=0, label="band")
    grid = [i / 100 for i in range(101)]
    ax.plot(grid, [(m * (1 - m)) ** 0.5 for m in grid], color="#999999", lw=0.8, label="largest possible")
    for chosen, marker, colour, text in ((kept, "o", "#009E73", "kept"), (~kept, "x", "#D55E00", "not kept")):
        ax.scatter(
            table["mean"][chosen],
            table["std"][chosen],
            marker=marker,
            color=colour,
            label=f"{text} ({chosen.sum()})",
            s=28,
        )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.02, 0.55)
    _legend(ax, table, loc="upper left", bbox_to_anchor=(1, 1))
    return fig, table


def operating_curve(
    *, first: int = 4, total: int = 8, low: float = 0.25, high: float = 0.75, margin: float = 0.15, min_std: float = 0.1
) -> tuple[Figure, pd.DataFrame]:
    """Probability that calibration keeps a task, by its true pass rate (binary rewards, exact enumeration)."""
    import pandas as pd

    rule = {"first": first, "total": total, "low": low, "high": high, "margin": margin, "min_std": min_std}
    rates = [i / 100 for i in range(101)]
    table = pd.DataFrame({"pass_rate": rates, "admitted": [admission_probability(p, **rule) for p in rates]})
    fig, ax = new_figure(f"What the gate keeps ({first} rollouts, {total} near an edge)", "true pass rate", "P(kept)")
    ax.axvspan(low, high, color="#009E73", alpha=0.1, lw=0, label="band")
    ax.plot(table["pass_rate"], table["admitted"], label="kept")
    ax.set_ylim(-0.02, 1.02)
    _legend(ax, table)
    return fig, table


def rate_bars(table: pd.DataFrame, title: str = "Rates") -> tuple[Figure, pd.DataFrame]:
    """Shares k of n with Wilson's 95 % interval. table: columns rate, k, n."""
    table = table[["rate", "k", "n"]].copy()
    bounds = [wilson(int(k), int(n)) for k, n in zip(table["k"], table["n"], strict=True)]
    table["share"] = [k / n if n else 0.0 for k, n in zip(table["k"], table["n"], strict=True)]
    table["low"], table["high"] = [b[0] for b in bounds], [b[1] for b in bounds]
    fig, ax = new_figure(title, "", "share")
    errors = [(table["share"] - table["low"]).clip(lower=0), (table["high"] - table["share"]).clip(lower=0)]
    ax.bar(range(len(table)), table["share"], 0.6, yerr=errors, capsize=3)
    names = [f"{label(r['rate'])}\n{r['k']}/{r['n']}" for r in records(table)]
    ax.set_xticks(range(len(table)), names)
    ax.set_ylim(0, 1.03)
    return fig, table


def new_figure(title: str, xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """One pair of axes in the one style."""
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.style.context(STYLE):
        fig = Figure()
        FigureCanvasAgg(fig)
        ax = fig.subplots()
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return fig, ax


def label(text: object) -> str:
    """Text from data as a figure may show it: one short line, and no dollar sign starts mathematics."""
    line = clean(str(text))
    return (line if len(line) <= 40 else line[:39] + "…").replace("$", r"\$")


def _whole_ticks(ax: Axes, values: Any) -> None:
    ticks = sorted({int(v) for v in values})
    if ticks:
        ax.set_xticks(ticks)
        ax.set_xlim(ticks[0] - 0.6, ticks[-1] + 0.6)


def _legend(ax: Axes, table: pd.DataFrame, **where: Any) -> None:
    """A legend, or the plain words that there is nothing to draw."""
    import matplotlib.style

    with matplotlib.style.context(STYLE):
        if len(table) == 0:
            ax.text(0.5, 0.5, "no data", ha="center", va="center", transform=ax.transAxes, color="#999999")
        elif ax.get_legend_handles_labels()[0]:
            ax.legend(**where)
