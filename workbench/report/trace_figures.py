"""Labelled traces as tables and figures: the path through read, build, write and test over a density field with numbered
moments (the form of AutoEnvScaling's Fig. 8, 23 and 24), and where runs spend their turns (Fig. 3, right).

The path comes from labels by hand only; the keyword classifier makes the field (appendix I.1).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from workbench.report.figures import STYLE, new_figure
from workbench.report.label_session import COLOURS
from workbench.runs.progress import clean
from workbench.traces.labels import LABELS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {"read": "o", "build": "s", "write": "^", "test": "D"}  # shape as well as colour
_GRID, _LANE = 240, 24  # of the field: columns in all, rows a label
_WIDTH, _LINE, _CHARACTERS = 5.2, 0.125, 46  # of a figure and a caption's line, in inches; characters of such a line


def field(positions: Sequence[float], guesses: Sequence[str], at: Sequence[float], bandwidth: float) -> np.ndarray:
    """Where the turns of a label lie: [labels, len(at)] shares that add up to 1 in each column, by a Gaussian kernel.

    positions: of the turns, in [0, 1]; bandwidth: its standard deviation in the same unit."""
    import numpy as np

    gaps = (np.asarray(at, float)[None, :] - np.asarray(positions, float)[:, None]) / bandwidth
    weights = np.exp(-0.5 * gaps**2) + 1e-12  # far from every turn: their mean
    hits = np.array([[guess == each for guess in guesses] for each in LABELS], float)
    return (hits @ weights) / weights.sum(axis=0)


def label_paths(
    table: pd.DataFrame,
    moments: pd.DataFrame | None = None,
    *,
    names: Mapping[str, str] | None = None,
    field_of: pd.DataFrame | None = None,
    bandwidth: float = 0.05,
    title: str = "",
) -> tuple[Figure, pd.DataFrame]:
    """One panel an episode: the path through its labels over the field of the classifier's guesses.

    table: see workbench.report.labelled.turn_table; panels in its order. moments: columns episode, step, call, text; numbered within a panel and
    told below it. names: of the panels, by episode. field_of: the turns of the field when it is not the drawn
    episode's own (all runs of the proposer): `episode` names the panel, `position` is relative. A turn without a label
    breaks the path. The table that comes back has a row a turn, with the number of its moment (0: none).
    """
    numbered = _numbered(table, moments)
    parts = {e: numbered[numbered["episode"] == e] for e in dict.fromkeys(table["episode"])}
    captions = {e: _captions(part) for e, part in parts.items()}
    fig, axes = _panels([len(max(columns, key=len)) for columns in captions.values()], bool(title))
    with _styled():
        for ax, (episode, drawn) in zip(axes, parts.items(), strict=True):
            source = drawn if field_of is None else field_of[field_of["episode"] == episode]
            _draw_field(ax, source, len(drawn), bandwidth)
            _draw_path(ax, drawn)
            _draw_moments(ax, drawn)
            _draw_captions(ax, captions[episode])
            name = (names or {}).get(episode, episode)
            ax.set_title(f"{label(name)} · {len(drawn)} turns", fontsize=8.5, pad=4)
        if title and parts:
            fig.text(0.015, 1 - 0.13 / fig.get_figheight(), label(title, 80), fontsize=10, va="center")
    return fig, numbered


def spent_turns(
    table: pd.DataFrame, by: str = "label", names: Mapping[str, str] | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Shares of each episode's turns by label, as stacked bars with the counts in them, and all episodes together last.
    table: see workbench.report.labelled.turn_table; by: "label" or "guess". Returns (figure, table of episode, label, n, share)."""
    import pandas as pd

    labelled = table[table[by].isin(LABELS)]
    groups = [(e, labelled[labelled["episode"] == e]) for e in dict.fromkeys(table["episode"])]
    groups += [("all", labelled)] if len(groups) > 1 else []
    rows = [
        {"episode": name, "label": each, "n": n, "share": n / len(part) if len(part) else 0.0}
        for name, part in groups
        for each, n in ((each, int((part[by] == each).sum())) for each in LABELS)
    ]
    shares = pd.DataFrame(rows, columns=["episode", "label", "n", "share"])
    fig, ax = new_figure("Where runs spend their turns", "share of turns", "")
    fig.set_size_inches(5.2, 0.8 + 0.24 * max(3, len(groups)))
    _draw_shares(ax, shares, [name for name, _ in groups], names or {})
    return fig, shares


def spent_over_time(table: pd.DataFrame, by: str = "label", bandwidth: float = 0.06) -> tuple[Figure, pd.DataFrame]:
    """What share of turns has each label from the beginning of the runs to their end; all episodes weigh the same.
    Returns (figure, table of position, read, build, write, test)."""
    import numpy as np
    import pandas as pd

    at = np.linspace(0, 1, 101)
    parts = [part for _, part in table[table[by].isin(LABELS)].groupby("episode")]
    fields = [field(part["position"], list(part[by]), at, bandwidth) for part in parts]
    mean = np.mean(fields, axis=0) if fields else np.zeros((len(LABELS), 0))
    shares = pd.DataFrame({"position": at[: mean.shape[1]], **dict(zip(LABELS, mean, strict=True))})
    fig, ax = new_figure(f"Turns over time ({len(fields)} runs)", "share of the run", "share of turns")
    with _styled():
        if fields:
            ax.stackplot(at, mean, colors=[COLOURS[each] for each in LABELS], labels=LABELS, alpha=0.85, lw=0)
            handles, texts = ax.get_legend_handles_labels()
            ax.legend(handles[::-1], texts[::-1], loc="upper left", bbox_to_anchor=(1, 1))
        ax.set(xlim=(0, 1), ylim=(0, 1))
    return fig, shares


def label(text: object, most: int = 40) -> str:
    """Text from data as a figure may show it: one line of at most `most` characters; no dollar sign starts mathematics."""
    line = clean(str(text))
    return (line if len(line) <= most else line[: most - 1] + "…").replace("$", r"\$")


def _styled():
    import matplotlib.style

    return matplotlib.style.context(STYLE)


def _panels(lines: Sequence[int], titled: bool) -> tuple[Figure, list[Axes]]:
    """A figure with one panel over another, each with room for so many lines of caption below it. Inches throughout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    above, panel, ticks = 0.3, 0.92, 0.2
    needed = [above + panel + ticks + _LINE * n + 0.06 for n in lines]
    height = sum(needed) + (0.25 if titled else 0.0) if lines else 1.5
    with _styled():
        # Not "none": saving would put the style's own layout back.
        fixed = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=False)
        fig = Figure(figsize=(_WIDTH, height), layout=fixed)
        FigureCanvasAgg(fig)
        if not lines:
            fig.text(0.5, 0.5, "no data", ha="center", color="#999999")
        axes, top = [], height - (0.25 if titled else 0.0)
        for inches in needed:
            axes.append(fig.add_axes((0.5 / _WIDTH, (top - above - panel) / height, 1 - 0.58 / _WIDTH, panel / height)))
            top -= inches
    return fig, axes


def _numbered(table: pd.DataFrame, moments: pd.DataFrame | None) -> pd.DataFrame:
    """The table with the number of each turn's moment in its episode (0: none) and its text."""
    told: dict[tuple[str, int, int], str] = {}
    if moments is not None:
        columns = (moments[k] for k in ("episode", "step", "call", "text"))
        told = {(str(e), int(s), int(c)): str(t) for e, s, c, t in zip(*columns, strict=True)}
    numbers, texts, last = [], [], Counter()
    for key in zip(table["episode"], table["step"], table["call"], strict=True):
        last[key[0]] += key in told
        numbers.append(last[key[0]] if key in told else 0)
        texts.append(told.get(key, ""))
    return table.assign(moment=numbers, text=texts)


def _captions(part: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The moments' texts as the lines of two columns."""
    chosen = part[part["moment"] > 0]
    told = [
        textwrap.wrap(f"{n}  {label(text, 120)}", _CHARACTERS, subsequent_indent="    ")
        for n, text in zip(chosen["moment"], chosen["text"], strict=True)
    ]
    half = (len(told) + 1) // 2
    return list(chain(*told[:half])), list(chain(*told[half:]))


def _draw_captions(ax: Axes, columns: tuple[list[str], list[str]]) -> None:
    for x, lines in zip((0.0, 0.5), columns, strict=True):
        for number, line in enumerate(lines):
            ax.annotate(
                line.replace("    ", "\u2003", 1) if line.startswith("    ") else line, (x, 0), (0, -19 - 72 * _LINE * number),
                xycoords="axes fraction", textcoords="offset points", fontsize=6.5, va="top", color="#333333",
            )  # fmt: skip


def _draw_field(ax: Axes, source: pd.DataFrame, turns: int, bandwidth: float) -> None:
    """Grey where the classifier sees turns of a label, darkest where it sees most of them; white where it sees none."""
    import numpy as np

    at = (np.arange(_GRID) + 0.5) / _GRID
    if len(source):
        shares = field(source["position"], list(source["guess"]), at, bandwidth)
        rows = np.arange(len(LABELS) * _LANE) / _LANE - 0.5 + 0.5 / _LANE
        lanes = np.exp(-0.5 * ((rows[:, None] - np.arange(len(LABELS))[None, :]) / 0.26) ** 2)
        picture = lanes @ shares
        ax.imshow(picture, extent=(0.5, turns + 0.5, len(LABELS) - 0.5, -0.5), aspect="auto", cmap="Greys", vmin=0,
                  vmax=1.7 * max(0.3, float(shares.max())), interpolation="bilinear", zorder=0)  # fmt: skip
    ax.set(xlim=(0.5, turns + 0.5), ylim=(len(LABELS) - 0.35, -0.75))
    ax.set_yticks(range(len(LABELS)), [each.capitalize() for each in LABELS])
    ax.tick_params(length=2, labelsize=7.5)
    ax.grid(False)


def _draw_path(ax: Axes, drawn: pd.DataFrame) -> None:
    import numpy as np

    place = {each: i for i, each in enumerate(LABELS)}
    x = drawn["index"].to_numpy() + 1
    y = np.array([place.get(each, np.nan) for each in drawn["label"]], float)
    ax.plot(x, y, color="#222222", lw=0.8, zorder=2, solid_joinstyle="round")
    for each, i in place.items():
        ax.scatter(x[y == i], y[y == i], s=11, color=COLOURS[each], marker=MARKERS[each], lw=0, zorder=3)


def _draw_moments(ax: Axes, drawn: pd.DataFrame) -> None:
    """Numbers in circles above their turns."""
    place = {each: i for i, each in enumerate(LABELS)}
    chosen = drawn[(drawn["moment"] > 0) & drawn["label"].isin(LABELS)]
    for _, row in chosen.iterrows():
        ax.annotate(
            str(row["moment"]), (row["index"] + 1, place[row["label"]]), xytext=(0, 7.5), textcoords="offset points",
            ha="center", va="center", fontsize=5.5, color="white", zorder=5,
            bbox={"boxstyle": "circle,pad=0.22", "fc": "#222222", "ec": "white", "lw": 0.5},
        )  # fmt: skip


def _draw_shares(ax: Axes, shares: pd.DataFrame, order: Sequence[str], names: Mapping[str, str]) -> None:
    with _styled():
        left = dict.fromkeys(order, 0.0)
        for each in LABELS:
            part = shares[shares["label"] == each].set_index("episode")
            widths = [float(part["share"][name]) for name in order]
            bars = ax.barh(range(len(order)), widths, 0.72, left=list(left.values()), color=COLOURS[each], label=each)
            texts = [str(int(part["n"][n])) if w > 0.05 else "" for n, w in zip(order, widths, strict=True)]
            dark = each in ("build", "test")  # white is legible on the darker two only
            ax.bar_label(bars, texts, label_type="center", fontsize=6.5, color="#222222" if dark else "white")
            left = {name: left[name] + w for name, w in zip(order, widths, strict=True)}
        ax.set_yticks(range(len(order)), [label(names.get(name, name)) for name in order])
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.grid(axis="y", visible=False)
        if order:
            ax.legend(ncols=len(LABELS), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
            ax.set_title(ax.get_title(loc="left"), pad=20)
