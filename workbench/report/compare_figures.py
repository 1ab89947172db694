"""Figures of a comparison of proposers: each takes tables of compare_tables or compare_paired and returns (figure, its table).

Published values stand beside ours as hollow diamonds, where the text of the paper gives them; the table says which is which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workbench.report import published
from workbench.report.compare_tables import plain_entries
from workbench.report.figures import STYLE, label, new_figure
from workbench.report.figures import _legend as legend
from workbench.report.tables import records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {"prompt": "Prompt", "feedback": "Prompt + Env Feedback", "harness": "AutoEnvScaling"}  # → the paper's names
SHOWN = {"prompt": "prompt", "feedback": "prompt + feedback", "harness": "harness", "world": "latent worlds (no model)",
         "program": "seeded program (no model)"}  # fmt: skip
COLOURS = {"prompt": "#999999", "feedback": "#E69F00", "harness": "#0072B2", "world": "#009E73", "program": "#CC79A7"}
NAMES = {"valid_paper": "valid environments (builds, oracle 1, no-op < 0.5)", "validated": "validated environments",
         "admitted": "admitted environments"}  # fmt: skip


def validity_by_model(rates: pd.DataFrame, column: str = "valid_paper") -> tuple[Figure, pd.DataFrame]:
    """Rate of each model and method with Wilson's 95 % interval (Fig. 4 left), published rates below ours."""
    ours = plain_entries(rates[rates["column"] == column])[["model", "method", "k", "n", "share", "low", "high"]]
    table = _with_published(ours.assign(source="this run"), column)
    fig, ax = _lines(len(set(zip(table["source"], table["model"], strict=True))), f"Rate of {NAMES[column]}", "", 0.55)
    groups = list(dict.fromkeys(zip(table["source"], table["model"], strict=True)))
    for row in records(table):
        y = groups.index((row["source"], row["model"])) + _shift(row["method"])
        _point(ax, row, y)
        if row["source"] == "this run":
            ax.text(
                1.02, y, f"{row['k']:.0f}/{row['n']:.0f}", va="center", fontsize=7, transform=ax.get_yaxis_transform()
            )
    names = [label(m) + ("" if s == "this run" else " (published)") for s, m in groups]
    ax.set_yticks(range(len(groups)), names)
    ax.set_xlim(-0.03, 1.03)
    _method_legend(ax, table)
    return fig, table


def _with_published(ours: pd.DataFrame, column: str) -> pd.DataFrame:
    """Fig. 4's values belong to `valid_paper` alone: they are set beside no other column."""
    import pandas as pd

    if column != "valid_paper":
        return ours
    back = {v: k for k, v in METHODS.items()}
    rows = []
    for cell in records(published.load("autoenvscaling_fig_04")):
        model, _, method = cell["row"].partition(" | ")
        if cell["column"] == "valid-environment rate" and cell["number"] is not None:
            rows.append(
                {"model": model, "method": back[method], "share": cell["number"] / 100, "source": cell["place"]}
            )
    return pd.concat([ours, pd.DataFrame(rows)], ignore_index=True)


def method_means(means: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Mean over models of each method with its 95 % interval (Fig. 1 left); scripted designers have bars of their own."""
    fig, ax = new_figure("Valid-environment rate, mean over models (95 % t interval)", "", "share")
    fig.set_size_inches(max(5.2, 1.25 * len(means)), 3.2)
    for n, row in enumerate(records(means)):
        error = None if row["low"] is None else [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
        ax.bar(n, row["mean"], 0.6, yerr=error, capsize=3, color=COLOURS[row["method"]])
    ax.set_xticks(range(len(means)), [f"{SHOWN[r['method']]}\n{r['kind']}, n = {r['n']}" for r in records(means)])
    ax.set_ylim(0, 1.03)
    legend(ax, means)
    return fig, means


def weakening(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Rates as models of one family weaken, strongest at the left (Fig. 4 right)."""
    fig, ax = new_figure("As models weaken", "model, strongest first", "share (95 % Wilson)")
    places = sorted({int(p) for p in table["place"]})
    for method in [m for m in METHODS if m in set(table["method"])]:
        part = table[table["method"] == method]
        x = [places.index(int(p)) + 0.06 * (list(METHODS).index(method) - 1) for p in part["place"]]
        error = [(part["share"] - part["low"]).clip(lower=0), (part["high"] - part["share"]).clip(lower=0)]
        ax.errorbar(x, part["share"], yerr=error, marker="o", capsize=3, color=COLOURS[method], label=SHOWN[method])
    names = {int(r["place"]): label(r["model"]) for r in records(table)}
    ax.set_xticks(range(len(places)), [names[p] for p in places])
    ax.set_ylim(-0.03, 1.03)
    legend(ax, table, loc="upper left", bbox_to_anchor=(1, 1))
    return fig, table


def cost(table: pd.DataFrame, measure: str = "usd_per_valid") -> tuple[Figure, pd.DataFrame]:
    """Cost per valid environment (Table 2): dollars, or sampled tokens or the proposer's seconds. Where it has no value the
    words say why: no valid environment, or a price that is unknown."""
    names = {
        "usd_per_valid": "US dollars",
        "tokens_per_valid": "sampled tokens",
        "seconds_per_valid": "proposer's seconds",
    }
    table = plain_entries(table)
    fig, ax = _lines(len(table), "Cost per valid environment (failures included)", names[measure])
    for n, row in enumerate(records(table)):
        if row[measure] is None:
            why = "price unknown" if row["valid"] else f"none valid of {row['assignments']}"
            ax.text(0, n, f"  {why}", va="center", fontsize=8, color="#D55E00")
        else:
            ax.barh(n, row[measure], 0.6, color=COLOURS[row["method"]])
            ax.text(row[measure], n, f" {row[measure]:.4g}", va="center", fontsize=8)
    ax.set_yticks(range(len(table)), [_name(r) for r in records(table)])
    ax.margins(x=0.15)
    ax.set_xlim(0, None if table[measure].fillna(0).gt(0).any() else 1)  # where all cost nothing, no negative money
    legend(ax, table)
    return fig, table


def richness(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Files, solver turns and solver pass rate of valid environments (Fig. 5); n is written beside each value."""
    import matplotlib.style

    panels = {"files": "files", "solver_turns": "solver turns", "solver_reward": "solver pass rate"}
    table = plain_entries(table[table["measure"].isin(list(panels))])
    fig, first = new_figure("", "", "")
    first.remove()
    entries = list(dict.fromkeys(table["entry"]))
    fig.set_size_inches(8.4, 1.4 + 0.28 * len(entries))
    with matplotlib.style.context(STYLE):
        axes = fig.subplots(1, 3, sharey=True)
    for ax, (measure, title) in zip(axes, panels.items(), strict=True):
        for row in records(table[table["measure"] == measure]):
            y = entries.index(row["entry"])
            if row["mean"] is None:
                ax.text(0.02, y, "n = 0", va="center", fontsize=7, color="#999999", transform=ax.get_yaxis_transform())
                continue
            error = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
            ax.errorbar(row["mean"], y, xerr=error, marker="o", capsize=2, ls="", color=COLOURS[row["method"]])
            ax.text(0.99, y, f"{row['n']}", va="center", ha="right", fontsize=7, transform=ax.get_yaxis_transform())
        _published_lines(ax, measure)
        ax.set_title(title, pad=16)
        ax.set_yticks(range(len(entries)), [_name(r) for r in records(table.drop_duplicates("entry"))])
        ax.margins(x=0.2)
    ax.invert_yaxis()
    return fig, table


def _published_lines(ax: Axes, measure: str) -> None:
    """Fig. 5's values that the text gives, as dashed lines in the method's colour."""
    column, scale = {"solver_turns": ("solver turns", 1.0), "solver_reward": ("solver pass rate", 100.0)}.get(
        measure, ("", 1.0)
    )
    for method, name in METHODS.items() if column else ():
        value = published.value("autoenvscaling_fig_05", name, column)
        if not math.isnan(value):
            ax.axvline(value / scale, color=COLOURS[method], lw=0.9, ls="--")
            place = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom"}  # between frame and title
            ax.text(value / scale, 1.0, f"{value:g}", fontsize=6, color=COLOURS[method], **place)


def turns(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Turns per proposer episode as box plots, outliers omitted (Fig. 22)."""
    table = table.reset_index(drop=True)
    fig, ax = _lines(len(table), "Turns per episode", "turns")
    stats = [{"whislo": r["low"], "q1": r["q1"], "med": r["median"], "q3": r["q3"], "whishi": r["high"], "label": _name(r)}
             for r in records(table)]  # fmt: skip
    if stats:
        ax.bxp(stats, positions=range(len(stats)), orientation="horizontal", showfliers=False, widths=0.5)
        ax.set_yticks(
            range(len(stats)), [f"{s['label']} (n = {r['n']})" for s, r in zip(stats, records(table), strict=True)]
        )
    ax.set_xlim(left=0)
    legend(ax, table)
    return fig, table


def stages(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Share of the environments that entered a stage and passed it, passed/entered written in each cell."""
    table = plain_entries(table).reset_index(drop=True)
    entries, names = list(dict.fromkeys(table["entry"])), list(dict.fromkeys(table["stage"]))
    order = [
        s
        for s in ("files", "build", "oracle", "noop", "repeat", "contamination", "review", "calibration")
        if s in names
    ]
    fig, ax = _lines(len(entries), "Passed of those that entered each stage", "")
    fig.set_size_inches(6.4, fig.get_size_inches()[1])
    for row in records(table):
        x, y = order.index(row["stage"]), entries.index(row["entry"])
        ax.add_patch(_square(x, y, row["share"]))
        ax.text(x, y, f"{row['passed']}/{row['entered']}", ha="center", va="center", fontsize=7)
    ax.grid(visible=False)
    ax.set_xlim(-0.5, max(0.5, len(order) - 0.5))
    ax.set_xticks(range(len(order)), order)
    ax.set_yticks(range(len(entries)), [_name(r) for r in records(table.drop_duplicates("entry"))])
    legend(ax, table)
    return fig, table


def _square(x: float, y: float, share: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, color="#0072B2", alpha=0.08 + 0.5 * (share or 0.0), lw=0)


def paired(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Paired differences on the same assignments with their bootstrap intervals; the discordant pairs and the exact sign test
    stand beside each (Table 13)."""
    table = table.reset_index(drop=True)
    fig, ax = _lines(len(table), "Paired difference of rates on the same assignments", "difference (first − second)")
    for n, row in enumerate(records(table)):
        error = [[row["difference"] - row["low"]], [row["high"] - row["difference"]]]
        ax.errorbar(row["difference"], n, xerr=error, marker="o", capsize=3, color="#0072B2")
        words = f"{row['only_first']} : {row['only_second']} of {row['pairs']}, p = {row['p']:.3g}"
        ax.text(1.02, n, words, va="center", fontsize=7, transform=ax.get_yaxis_transform())
    ax.axvline(0, color="#999999", lw=0.8)
    ax.set_xlim(-1.05, 1.05)
    ax.set_yticks(range(len(table)), [f"{label(r['first'])} −\n{label(r['second'])}" for r in records(table)])
    legend(ax, table)
    return fig, table


def self_check(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """The harness without and with its self-check, one panel of lines for each column of validity (Table 11: admitted)."""
    fig, ax = new_figure("Self-check of the reference solution", "", "share")
    for n, column in enumerate(("valid_paper", "validated", "admitted")):
        for i, row in enumerate(records(table[table["column"] == column])):
            shift = 3 * n + 0.08 * i
            ax.plot([shift, shift + 1], [row["without_check"], row["with_check"]], marker="o", color=f"C{i}",
                    label=label(row["first"]) if n == 0 else None)  # fmt: skip
    ax.set_xticks([3 * n + s for n in range(3) for s in (0, 0.5, 1)],
                  [w for c in ("valid_paper", "validated", "admitted") for w in ("off", f"\n{c}", "on")])  # fmt: skip
    ax.set_ylim(-0.03, 1.03)
    legend(ax, table, loc="upper left", bbox_to_anchor=(1, 1))
    return fig, table


def _lines(count: int, title: str, xlabel: str, height: float = 0.34) -> tuple[Figure, Axes]:
    """Axes for `count` horizontal lines, the first at the top."""
    fig, ax = new_figure(title, xlabel, "")
    fig.set_size_inches(6.2, 1.3 + height * max(2, count))
    ax.set_ylim(max(1, count) - 0.4, -0.6)
    return fig, ax


def _point(ax: Axes, row: dict[str, Any], y: float) -> None:
    colour = COLOURS[row["method"]]
    if row["source"] != "this run":
        ax.plot(row["share"], y, marker="D", mfc="none", color=colour, ls="")
    elif row["share"] is not None:
        error = [[max(0.0, row["share"] - row["low"])], [max(0.0, row["high"] - row["share"])]]
        ax.errorbar(row["share"], y, xerr=error, marker="o", capsize=2, color=colour)


def _shift(method: str) -> float:
    return {"prompt": -0.22, "harness": 0.22}.get(method, 0.0)


def _method_legend(ax: Axes, table: pd.DataFrame) -> None:
    for method in [m for m in COLOURS if m in set(table["method"])]:
        ax.plot([], [], marker="o", color=COLOURS[method], label=SHOWN[method])
    legend(ax, table, loc="upper center", bbox_to_anchor=(0.45, -0.12), ncols=3)


def _name(row: dict[str, Any]) -> str:
    return label(row["entry"])
