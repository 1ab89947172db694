"""Figures of the Cold-Start: loss, pass rate against examples, both roles before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.report.figures import new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def loss(losses: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """SFT loss against optimizer steps. losses: columns step, loss (mean cross-entropy in nats a learned token)."""
    fig, ax = new_figure("Cold-Start: loss of the model's own tokens", "optimizer step", "cross-entropy [nats a token]")
    ax.plot(losses["step"], losses["loss"])
    ax.set_yscale("log")
    return fig, losses


def pass_rate(checks: pd.DataFrame, low: float, high: float) -> tuple[Figure, pd.DataFrame]:
    """Pass rate on calibration worlds against examples seen, with the band in which training stops. checks: columns examples,
    expert_probability, passed (missing where no sandbox was asked)."""
    table = checks[["step", "examples", "expert_probability", "passed"]]
    fig, ax = new_figure("Cold-Start: calibration worlds", "examples seen", "share of episodes")
    ax.axhspan(low, high, alpha=0.15, label=f"stops at {low:g} to {high:g}")
    ax.plot(table["examples"], table["expert_probability"], "--", label="expert's words, probability")
    measured = table.dropna(subset=["passed"])
    ax.plot(measured["examples"], measured["passed"].astype(float), "o", label="passed, in sandboxes")
    ax.set_ylim(-0.02, 1.02)
    ax.legend()
    return fig, table


def before_after(comparison: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Mean reward of both roles before and after, with 95 % bootstrap intervals. comparison: columns role, when, reward, low, high."""
    fig, ax = new_figure("Cold-Start: the same tasks and assignments", "", "mean reward")
    roles, whens = list(dict.fromkeys(comparison["role"])), list(dict.fromkeys(comparison["when"]))
    for shift, when in enumerate(whens):
        rows = comparison[comparison["when"] == when].set_index("role").loc[roles]
        spread = [rows["reward"] - rows["low"], rows["high"] - rows["reward"]]
        at = [number + 0.2 * shift - 0.1 for number in range(len(roles))]
        ax.errorbar(
            at, rows["reward"], yerr=[s.clip(lower=0).to_numpy() for s in spread], fmt="o", capsize=4, label=when
        )
    ax.set_xticks(range(len(roles)), roles)
    ax.axhline(0, linewidth=0.5, color="black")
    ax.legend()
    return fig, comparison
