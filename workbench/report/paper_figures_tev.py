"""Figures of Tev that follow from its published tables, recomputed: the ranking (Fig. 2) and how far a subset speaks for its
benchmark (Tables 14–16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.report import published
from workbench.report.figures import label
from workbench.report.style import COLUMN, WIDE, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BASES = {"Tev-27B": "Qwen3.8-27B", "Tev-320B": "GLM-5.3-Flash"}
PAIRS = {
    "tev_table_14": (("subset P@1", "full P@1", "P@1"), ("subset P@5", "full P@5", "P@5")),
    "tev_table_15": (("subset P@1", "full P@1", "P@1"), ("subset P@5", "full P@5", "P@5")),
    "tev_table_16": (("split S@1", "full score", "score"), ("split P@1", "full pass rate", "pass rate")),
}
PANEL_POINTS = 160.0  # how long an axis of Tables 14–16 is, in typographic points
SIDES = ((0, 8), (0, -8), (8, 0), (-8, 0), (8, 8), (-8, 8), (8, -8), (-8, -8))  # above is best


def ranking() -> tuple[Figure, pd.DataFrame]:
    """Fig. 2: every model of Table 3 by P@1 on TB 4.0-CM; an arrow from each base to the model trained from it, with the relative gain.
    Columns: model, percent, base, gain (percent of the base's score, None without a base)."""
    import pandas as pd

    table = published.load("tev_table_03")
    scores = table[table["column"] == "TB 4.0 All P@1"].set_index("row")["number"]
    rows = []
    for model, score in scores.sort_values(ascending=False, kind="stable").items():
        base = BASES.get(str(model), "")
        gain = round(100 * (score / scores[base] - 1)) if base else None
        rows.append([model, 100 * score, base, gain])
    ranked = pd.DataFrame(rows, columns=["model", "percent", "base", "gain"])
    fig, (ax,) = panels(1, width=COLUMN, height=3.4)
    ours = ranked["model"].isin(BASES)
    with styled():
        pale = ranked["model"].isin(BASES.values())
        colours = ["#0072B2" if own else "#9CC8E3" if base else "#BBBBBB" for own, base in zip(ours, pale, strict=True)]
        ax.barh(ranked.index, ranked["percent"], 0.68, color=colours)
        for place, row in ranked.iterrows():
            told = f" {row['percent']:.0f}" + (f" (+{row['gain']:.0f} %)" if row["base"] else "")
            ax.text(row["percent"], place, told, va="center", fontsize=6.5)
        for tuned, base in BASES.items():
            ends = ranked.set_index("model")["percent"]
            place = ranked.index[ranked["model"] == tuned][0]
            ax.annotate(
                "",
                (ends[tuned], place),
                (ends[base], place),
                arrowprops={"arrowstyle": "->", "color": "white", "lw": 1.2},
            )
        ax.set_yticks(ranked.index, [label(m) for m in ranked["model"]], fontsize=7)
        ax.invert_yaxis()
        ax.set_xlabel("Pass@1 (%), TB 4.0-CM, published")
        ax.set_xlim(0, 62)
        ax.grid(axis="y", visible=False)
    return fig, ranked


def representativeness(name: str) -> tuple[Figure, pd.DataFrame]:
    """Tables 14–16: a subset's scores against the whole benchmark's, with Pearson's and Spearman's coefficient computed here from the
    published cells. Columns: measure, model, subset, full; and below them rows of the coefficients (model "Pearson" or "Spearman",
    subset: computed, full: published)."""
    import pandas as pd

    cells = published.load(name)
    wide = cells[cells["unit"] == "fraction"].pivot(index="row", columns="column", values="number")
    fig, axes = panels(2, width=WIDE, height=3.0)
    rows = []
    for ax, (subset, full, measure) in zip(axes, PAIRS[name], strict=True):
        both = wide[[subset, full]].dropna()
        found = correlations(both[subset], both[full])
        rows += [[measure, model, *values] for model, values in zip(both.index, both.to_numpy().tolist(), strict=True)]
        rows += [
            [measure, kind, round(r, 4), published.value(name, "all models", f"{kind} {measure}")]
            for kind, r in found.items()
        ]
        top = 1.08 * both.to_numpy().max()
        ax.plot([0, top], [0, top], color="#BBBBBB", lw=0.8, zorder=0)
        ax.scatter(both[full], both[subset], s=18)
        places = _places(both, full, subset, list(wide.index))
        for (place, numbers), offset in zip(places.items(), free_sides(list(places), top / PANEL_POINTS), strict=True):
            ax.annotate(", ".join(map(str, numbers)), place, xytext=offset, textcoords="offset points", fontsize=6.5,
                        ha="center", va="center")  # fmt: skip
        told = ", ".join(f"{kind} {r:.2f}" for kind, r in found.items())
        with styled():
            ax.set_title(f"{measure}: {told}", fontsize=8.5)
        ax.set(xlabel="whole benchmark", ylabel="subset", xlim=(0, top), ylim=(0, top))
    _names(fig, list(wide.index))
    return fig, pd.DataFrame(rows, columns=["measure", "model", "subset", "full"])


def correlations(x: pd.Series, y: pd.Series) -> dict[str, float]:
    """Pearson's coefficient of the values, and of their ranks (ties share their mean rank: Spearman's)."""
    return {"Pearson": float(x.corr(y)), "Spearman": float(x.rank().corr(y.rank()))}


def free_sides(points: Sequence[tuple[float, float]], unit: float) -> list[tuple[float, float]]:
    """For each point where its number goes, as an offset in typographic points: the first of SIDES at which it lies on no point and on
    no earlier number, else the first. unit: how much of the axes is one typographic point."""
    taken = [(x / unit, y / unit) for x, y in points]
    chosen = []
    for x, y in taken[: len(points)]:
        ways = [(dx, dy) for dx, dy in SIDES if not any(abs(x + dx - a) < 6 and abs(y + dy - b) < 6 for a, b in taken)]
        chosen.append(ways[0] if ways else SIDES[0])
        taken.append((x + chosen[-1][0], y + chosen[-1][1]))
    return chosen


def _places(both: pd.DataFrame, x: str, y: str, models: list[str]) -> dict[tuple[float, float], list[int]]:
    """Numbers of the models at each point: two models may share one."""
    found: dict[tuple[float, float], list[int]] = {}
    for model, point in zip(both.index, both[[x, y]].to_numpy().tolist(), strict=True):
        found.setdefault((point[0], point[1]), []).append(models.index(model) + 1)
    return found


def _names(fig: Figure, models: list[str]) -> None:
    """Which number is which model, beside the panels."""
    from matplotlib.lines import Line2D

    with styled():
        handles = [Line2D([], [], lw=0, label=f"{i}  {label(m)}") for i, m in enumerate(models, 1)]
        fig.legend(handles=handles, loc="outside right upper", handlelength=0, handletextpad=0, fontsize=7)
