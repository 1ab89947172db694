"""What one run of the flywheel with learning came to: words, tables and figures from its journal alone.

A run without updates (`learn: false`) gives empty tables, and figures that say so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workbench.report import training_figures
from workbench.report.figures import Saved, new_figure, save_figure
from workbench.report.style import below, looks
from workbench.report.training_figures_rows import evaluations, phases, updates
from workbench.runs.folder import Run
from workbench.statistics import bootstrap_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

    from workbench.report.trace_viewer import TraceViewer

NO_CHANGE = "no detectable change"
OUTCOME = ("set", "tasks", "attempts", "before", "after", "difference", "low", "high", "verdict", "ungraded")
PROPOSER = ("phase", "asked", "verdicts", "malformed", "valid", "out_of_band", "admitted", "mean_reward")


def outcome(run: Run) -> pd.DataFrame:
    """One row a held-out set, columns OUTCOME: avg@k of the first and of the last evaluation, their difference paired by task with its
    95 % bootstrap interval over tasks, and what that says. Rewards of ungraded attempts are left out."""
    import pandas as pd

    rows = []
    evaluations = {row["id"]: row for row in run.rows("evaluation")}.values()
    for name in dict.fromkeys(row["set"] for row in evaluations):
        found = [row for row in evaluations if row["set"] == name]
        first, last = found[0], found[-1]
        pairs = _pairs(first["scores"], last["scores"])
        low, high = bootstrap_interval(pairs)
        ungraded = first["ungraded"] + last["ungraded"]
        rows.append(
            [
                name,
                len(pairs),
                first["attempts"],
                first["avg"],
                last["avg"],
                _mean(pairs),
                low,
                high,
                _verdict(low, high, found),
                ungraded,
            ]
        )
    return pd.DataFrame(rows, columns=list(OUTCOME))


def _pairs(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[float]:
    old = {s["digest"]: _mean(s["rewards"]) for s in before if s["rewards"]}
    return [_mean(s["rewards"]) - old[s["digest"]] for s in after if s["rewards"] and s["digest"] in old]


def _verdict(low: float, high: float, found: list[Any]) -> str:
    if len(found) < 2 or math.isnan(low):
        return "nothing to compare"
    return "rose" if low > 0 else "fell" if high < 0 else NO_CHANGE


def proposer(run: Run) -> pd.DataFrame:
    """One row a proposer phase and one for all, columns PROPOSER; counts are of answers with a verdict. Empty without phases."""
    import pandas as pd

    table = phases([run])
    rows = [[int(r["step"]), *(r[name] for name in PROPOSER[1:])] for r in table.to_dict("records")]
    if rows:
        sums = [sum(row[i] for row in rows) for i in range(1, 7)]
        weighted = sum(row[2] * row[7] for row in rows if row[2]) / sums[1] if sums[1] else math.nan
        rows.append(["all", *sums, weighted])
    return pd.DataFrame(rows, columns=list(PROPOSER))


def words(run: Run) -> str:
    """The result in sentences: whether the held-out reward rose, and what the proposer's answers were worth."""
    lines = []
    for row in outcome(run).to_dict("records"):
        change = f"{row['difference']:+.3f}, 95 % interval [{row['low']:+.3f}, {row['high']:+.3f}]"
        lines.append(
            f"{row['set']}: solver reward {row['before']:.3f} before, {row['after']:.3f} after, on {row['tasks']} paired tasks: {change}: {row['verdict']}"
        )
    for row in proposer(run).to_dict("records")[-1:]:
        n = row["verdicts"]
        shares = ", ".join(
            f"{name.replace('_', ' ')} {row[name]}/{n} {_interval(row[name], n)}"
            for name in ("malformed", "out_of_band", "admitted")
        )
        lines.append(f"proposer: {shares}; mean r_P {row['mean_reward']:+.3f}; {_first_and_last(run)}")
    stops = [row["reason"] for row in run.rows("stop")][-1:]
    return (
        "\n".join([*lines, *(f"stopped early: {reason}" for reason in stops)])
        or "no updates in this run (learn: false)"
    )


def _interval(k: int, n: int) -> str:
    low, high = wilson(int(k), int(n))
    return f"[{low:.2f}, {high:.2f}]"


def _first_and_last(run: Run) -> str:
    table = proposer(run)[:-1]
    parts = [f"{r['mean_reward']:+.3f} at update {r['phase']}" for r in table.to_dict("records")]
    return "r_P by phase: " + ", ".join(parts)


def figure(run: Run, name: str) -> Saved | str:
    """One figure, saved in the run. name: "solver" (reward of each step), "collection" (AutoEnvScaling Fig. 7) or "validity" (Fig. 20)."""
    table = phases([run]) if name == "validity" else updates([run])
    if not len(table):
        return "no proposer phases in this run" if name == "validity" else "no updates in this run (learn: false)"
    made = {
        "solver": lambda t: solver_reward(t, evaluations([run])),
        "collection": training_figures.collection,
        "validity": training_figures.proposer_validity,
    }
    return save_figure(run, f"learning_{name}", *made[name](table))


def one_trial(run: Run) -> TraceViewer | str:
    """The viewer of the last trial of a policy that left its turns behind."""
    from workbench.report.trace_viewer import TraceViewer

    rows = [
        r["id"] for r in run.rows() if r["kind"] == "rollout" or (r["kind"] == "trial" and r["agent"] == "terminal")
    ]
    kept = [i for i in rows if (run.folder / "traces" / f"{i}.json").is_file()]
    return TraceViewer.of_trial(run, kept[-1]) if kept else "no trial of this run left its turns"


def solver_reward(
    table: pd.DataFrame, held_out: pd.DataFrame | None = None, window: int = 5
) -> tuple[Any, pd.DataFrame]:
    """Mean reward of the rollouts of each step, all groups, with a trailing mean; held-out sets with 95 % intervals (bootstrap over tasks)
    where they were evaluated. The pool changes under its line: what was learned is told by the held-out sets.

    table: of `updates`; held_out: of `evaluations`. The figure's table has columns panel, step, reward, trailing, low, high, n."""
    import pandas as pd

    pool = pd.DataFrame({"panel": "pool", "step": table["step"], "reward": table["reward"], "n": table["rollouts"]})
    pool["trailing"] = training_figures.trailing(list(pool["reward"]), window)
    fig, ax = new_figure("Solver reward", "solver update", "mean reward")
    ax.plot(pool["step"], pool["reward"], lw=0.7, alpha=0.4, color="#666666")
    ax.plot(pool["step"], pool["trailing"], color="#666666", label=f"pool, {window}-step mean")
    parts = [pool]
    if held_out is not None and len(held_out):
        sets = held_out.rename(columns={"set": "panel", "avg": "reward", "attempts": "n"})
        parts.append(sets[["panel", "step", "reward", "low", "high", "n"]])
        for name, look in looks(list(held_out["set"])).items():
            part = sets[sets["panel"] == name].sort_values("step")
            error = [part["reward"] - part["low"], part["high"] - part["reward"]]
            ax.errorbar(part["step"], part["reward"], error, color=look.colour, ls=look.line, marker=look.marker, ms=4,
                        capsize=2, label=f"{name} ({int(part['n'].iloc[0])})")  # fmt: skip
    ax.set_ylim(-0.02, 1.02)
    below(fig, [ax], ncols=2)
    return fig, pd.concat(parts, ignore_index=True).reindex(
        columns=["panel", "step", "reward", "trailing", "low", "high", "n"]
    )


def _mean(values: Any) -> float:
    values = list(values)
    return math.fsum(values) / len(values) if values else math.nan
