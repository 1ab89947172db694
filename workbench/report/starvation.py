"""How many groups of rollouts teach nothing: (1-p)^G under terminal reward (Tev §3.1, appendix B), and what was measured.

A group is wasted when its rewards are all the same: its advantages (Eq. 2) are then 0. Under terminal reward those are the groups in which
every rollout fails, and, rarely where p is small, the ones in which every rollout passes. Under progressive reward (Eq. 4) a group is
wasted only when terminal rewards and final Phi are all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.report.figures import label, new_figure
from workbench.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LAMBDA = 0.25  # Tev §3.3
COLUMNS = ["population", "groups", "rollouts", "group_size", "p", "expected", "all_fail", "all_fail_low", "all_fail_high", "terminal", "progressive"]  # fmt: skip


def wasted(p: float, size: int) -> float:
    """(1-p)^G: the probability that every one of `size` rollouts fails. ValueError unless p is in [0, 1] and size at least 1."""
    if not 0 <= p <= 1 or size < 1:
        raise ValueError(f"p={p}, G={size}: a probability and a group of at least one are needed")
    return (1 - p) ** size


def wasted_table(trials: pd.DataFrame, lam: float = LAMBDA) -> pd.DataFrame:
    """A row a population. trials: columns population, group, passed, submitted, phi, outcome; what does not count is left out, and so is a
    group that is left with one rollout.

    p: share of rollouts that pass and submit. expected: (1-p)^G at that p and the mean G; a population whose groups differ in p wastes more
    (Jensen). all_fail with Wilson's 95 % interval; terminal, progressive: shares of groups without any variance of reward.
    """
    import pandas as pd

    rows = []
    counted = trials[trials["outcome"].isin(("graded", "policy"))] if len(trials) else trials
    for population, part in counted.groupby("population", sort=True) if len(counted) else ():
        part = part.assign(
            terminal=(part["passed"].fillna(False).astype(bool) & part["submitted"].astype(bool)).astype(float)
        )
        part = part.assign(shaped=part["terminal"] + lam * part["phi"].fillna(0.0).astype(float))
        groups = [group for _, group in part.groupby("group") if len(group) > 1]
        if not groups:
            continue
        n, size = len(groups), sum(map(len, groups)) / len(groups)
        p = sum(g["terminal"].sum() for g in groups) / sum(map(len, groups))
        fails = sum(not g["terminal"].any() for g in groups)
        low, high = wilson(fails, n)
        same = {name: sum(g[name].nunique() == 1 for g in groups) / n for name in ("terminal", "shaped")}
        rows.append([population, n, sum(map(len, groups)), size, p, (1 - p) ** size, fails / n, low, high, same["terminal"], same["shaped"]])  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def wasted_figure(table: pd.DataFrame, sizes: Sequence[int] = (8, 16, 24)) -> tuple[Figure, pd.DataFrame]:
    """The curve (1-p)^G for each size, and the measured shares of wasted groups at the measured p: under terminal and progressive reward."""
    fig, ax = new_figure("Wasted groups", "pass rate p of a rollout", "share of groups without signal")
    grid = [i / 400 for i in range(201)]
    for size, shade in zip(sizes, ("#333333", "#777777", "#AAAAAA"), strict=False):
        ax.plot(grid, [wasted(p, size) for p in grid], color=shade, lw=1.2, label=f"(1-p)^{size}")
    if len(table):
        errors = [
            (table["all_fail"] - table["all_fail_low"]).clip(lower=0),
            (table["all_fail_high"] - table["all_fail"]).clip(lower=0),
        ]
        ax.errorbar(
            table["p"],
            table["all_fail"],
            yerr=errors,
            fmt="o",
            color="#CC0000",
            capsize=3,
            label=f"all fail, measured (G={_sizes(table)})",
        )
        ax.plot(table["p"], table["progressive"], "s", color="#009E73", label="no variance, progressive, measured")
        for row in table.to_dict("records"):
            ax.annotate(
                label(f"{row['groups']} groups"),
                (row["p"], row["all_fail"]),
                xytext=(6, 3),
                textcoords="offset points",
                fontsize=6,
            )
    ax.set_xlim(-0.01, max([0.5, *(table["p"] + 0.05)]))
    ax.set_ylim(-0.03, 1.03)
    ax.legend(loc="upper right", fontsize=7, frameon=False)
    return fig, table


def _sizes(table: pd.DataFrame) -> str:
    low, high = table["group_size"].min(), table["group_size"].max()
    return f"{low:g}" if math.isclose(low, high) else f"{low:g} to {high:g}"
