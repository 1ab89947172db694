"""The progress potential along the reference and along a group of rollouts (Tev Fig. 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.report.figures import label, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

APART = 0.005  # between the lines of two rollouts of equal Phi, in the picture only

# marker and words of how a rollout ended, as in Tev Fig. 4
ENDS = {
    "passed": ("*", "submitted, passed"),
    "incomplete": ("o", "submitted, incomplete"),
    "complete": ("D", "workspace complete, never submitted"),
    "exhausted": ("x", "budget used up, or given up"),
}


def reference_table(grades: Sequence[tuple[str, float, Mapping[str, float]]]) -> pd.DataFrame:
    """Phi after each stage of the reference. grades: (stage, Phi, credit of each node); `completes`: nodes that reach 1 there."""
    import pandas as pd

    rows, done = [], set()
    for stage, phi, nodes in grades:
        now = {name for name, credit in nodes.items() if credit == 1}
        rows.append({"stage": stage, "phi": phi, "completes": ", ".join(n for n in nodes if n in now - done)})
        done = now
    return pd.DataFrame(rows, columns=["stage", "phi", "completes"])


def reference_figure(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Phi along the reference trajectory, stage by stage: it starts at 0 and rises to 1 (the progress-validity gate)."""
    fig, ax = new_figure("Φ along the reference", "stage of the workflow", "Φ")
    values = [0.0, *table["phi"]]
    ax.step(range(len(values)), values, where="post", marker="o", color="#0072B2")
    for place, text in enumerate(table["completes"], 1):
        if text:
            ax.annotate(
                label(text), (place, values[place]), xytext=(-4, 5), textcoords="offset points", ha="right", fontsize=6
            )
    ax.set_xticks(range(len(values)), ["start", *map(label, table["stage"])], rotation=20, ha="right", fontsize=7)
    ax.set_ylim(-0.03, 1.08)
    return fig, table


def ending(trial: Mapping[str, Any]) -> str:
    """A key of ENDS. trial: a row of a run's journal (passed, submitted, phi)."""
    if trial["submitted"]:
        return "passed" if trial["passed"] else "incomplete"
    return "complete" if trial["phi"] is not None and trial["phi"] >= 1 else "exhausted"


def rollouts_table(trials: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a turn: rollout, name, turn (0: the untouched workspace, where Phi is 0), phi, and on the last turn how it ended."""
    import pandas as pd

    rows = []
    for number, trial in enumerate(trials, 1):
        phis = [0.0, *(trial.get("progress") or ())]
        for turn, phi in enumerate(phis):
            end = ending(trial) if turn == len(phis) - 1 else ""
            rows.append({"rollout": number, "name": trial["agent"], "turn": turn, "phi": phi, "end": end})
    return pd.DataFrame(rows, columns=["rollout", "name", "turn", "phi", "end"])


def rollouts_figure(
    trials: Sequence[Mapping[str, Any]], plateaus: Mapping[str, float] | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Phi turn by turn along each rollout of a group, as in Tev Fig. 4; terminal reward beside it in red.

    trials: rows of a run's journal. plateaus: words -> Phi, drawn as horizontal lines (of the reference's stages, say).
    """
    table = rollouts_table(trials)
    won = sum(ending(trial) == "passed" for trial in trials)
    fig, ax = new_figure(f"Φ after every turn of {len(trials)} rollouts", "turn t", "Φ(s_t)")
    fig.set_size_inches(7.0, 4.0)
    for words, phi in (plateaus or {}).items():
        ax.axhline(phi, color="#BBBBBB", lw=0.8, ls="--", zorder=0)
        ax.text(
            1.005, phi, label(words), transform=ax.get_yaxis_transform(), fontsize=6.5, va="center", color="#666666"
        )
    for number, part in table.groupby("rollout"):
        raised = part["phi"] + APART * (
            int(number) - (len(trials) + 1) / 2
        )  # so that equal ones do not hide each other
        line = ax.plot(part["turn"], raised, drawstyle="steps-post", lw=1.2, alpha=0.8)[0]
        end = ENDS[part["end"].iloc[-1]][0]
        ax.plot(
            part["turn"].iloc[-1], raised.iloc[-1], end, color=line.get_color(), ms=6, mew=1.4, zorder=3 + int(number)
        )
    longest = max(table["turn"], default=0)
    ax.hlines(0, 0, longest, color="#CC0000", lw=2.0, label=f"terminal reward: 1 for {won} of {len(trials)}")
    for end, (marker, words) in ENDS.items():
        if count := int((table["end"] == end).sum()):
            ax.plot([], [], marker, color="#333333", label=f"{words} ({count})")
    ax.set_ylim(-0.04, 1.06)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=7, frameon=False)
    return fig, table


def plateaus(reference: pd.DataFrame, smallest: float = 0.02) -> dict[str, float]:
    """The levels of Phi that the reference stands on, by the stage that reaches them; levels nearer than `smallest` share a line."""
    found = list(zip(reference["stage"], reference["phi"], strict=True))
    kept = found[:1] + [after for before, after in pairwise(found) if after[1] - before[1] >= smallest]
    return {f"after {stage}": float(phi) for stage, phi in kept if phi > 0}
