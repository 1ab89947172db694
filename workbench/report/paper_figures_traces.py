"""Traced rollouts, the form of Tev's Figs. 5 and 7–9 with Table 17: what each of several agents did at one task, decision by
decision, and what it came to. Drawn from labelled episodes (data/labels): their chosen moments are the decisions."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from workbench.report.labelled import Labelled
from workbench.report.style import WIDE, styled
from workbench.report.trace_figures import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WRAP, _LINE = 44, 0.135  # characters of a line, inches of a line
GREY = "#555555"


def decisions(found: Labelled, case: str) -> pd.DataFrame:
    """The chosen moments of every episode that started from one task, in order; an episode without any has no row.
    Columns: episode, name, role, outcome, score, step, label, text."""
    import pandas as pd

    turns = {(t["episode"], int(t["step"]), int(t["call"])): t["label"] for t in found.turns.to_dict("records")}
    rows = []
    for episode in found.episodes[found.episodes["case"] == case].to_dict("records"):
        name = episode["manner"] or f"{episode['role']}s the task"
        head = [episode["episode"], name, episode["role"], episode["outcome"], float(episode["reward"])]
        told = found.moments[found.moments["episode"] == episode["episode"]].to_dict("records")
        for moment in told:
            key = (episode["episode"], int(moment["step"]), int(moment["call"]))
            rows.append([*head, int(moment["step"]), turns.get(key, ""), moment["text"]])
    return pd.DataFrame(rows, columns=["episode", "name", "role", "outcome", "score", "step", "label", "text"])


def traced(found: Labelled, case: str) -> tuple[Figure, pd.DataFrame]:
    """One box a rollout: who, its score, and its decisions with the step of each. The table: see `decisions`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    table = decisions(found, case)
    boxes = [(name, part) for name, part in table.groupby("episode", sort=False)]
    texts = [_lines(part) for _, part in boxes]
    pairs = [texts[i : i + 2] for i in range(0, len(texts), 2)]
    heights = [_LINE * (2.6 + max(map(len, pair))) for pair in pairs]
    total = sum(heights) + 0.3
    with styled():
        fixed = PlaceHolderLayoutEngine(
            adjust_compatible=True, colorbar_gridspec=False
        )  # "none" would be undone by saving
        fig = Figure(figsize=(WIDE, max(1.0, total)), layout=fixed)
        FigureCanvasAgg(fig)
        top = total - 0.3
        for i, (_, part) in enumerate(boxes):
            _box(fig, part, texts[i], 0.012 + 0.5 * (i % 2), top, total)
            top -= heights[i // 2] if i % 2 or i == len(boxes) - 1 else 0
        fig.text(
            0.012,
            1 - 0.17 / total,
            label(f"{len(boxes)} rollouts that started from {case}", 80),
            fontsize=9.5,
            va="center",
        )
    return fig, table


def _lines(part: pd.DataFrame) -> list[tuple[str, str]]:
    """(step, line of text) of each line of a box; the step only on a decision's first line."""
    out = []
    for step, text in zip(part["step"], part["text"], strict=True):
        wrapped = textwrap.wrap(label(text, 160), _WRAP)
        out += [(f"t{step}" if not i else "", line) for i, line in enumerate(wrapped)]
    return out


def _box(fig: Figure, part: pd.DataFrame, lines: list[tuple[str, str]], x: float, top: float, total: float) -> None:
    one = part.iloc[0]
    fig.text(x, (top - _LINE) / total, label(str(one["name"])), fontsize=8, weight="bold", va="center")
    fig.text(x + 0.46, (top - _LINE) / total, f"score {one['score']:.2f}", fontsize=8, va="center", ha="right")
    for number, (step, line) in enumerate(lines, 2):
        y = (top - _LINE * (number + 0.2)) / total
        fig.text(x + 0.028, y, step, fontsize=7, va="center", ha="right", color=GREY)
        fig.text(x + 0.036, y, line, fontsize=7, va="center")


def traced_scores(found: Labelled) -> pd.DataFrame:
    """Table 17 of ours: the score of each traced rollout. Columns: task, rollout, role, outcome, score, turns."""
    turns = found.turns.groupby("episode")["turns"].first()
    table = found.episodes[["case", "manner", "role", "outcome", "reward", "episode"]].copy()
    table["rollout"] = [m or e for m, e in zip(table["manner"], table["episode"], strict=True)]
    table["turns"] = [int(turns.get(e, 0)) for e in table["episode"]]
    table = table.rename(columns={"case": "task", "reward": "score"})
    return (
        table[["task", "rollout", "role", "outcome", "score", "turns"]]
        .sort_values(["task", "role"], kind="stable")
        .reset_index(drop=True)
    )
