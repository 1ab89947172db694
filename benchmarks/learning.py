"""Learning runs over seeds fixed in advance: the arms against each other, and progressive against terminal reward.

    python -m benchmarks.learning [--part arms|rewards] [--publish]      # hours on two cores; stopped, it goes on where it was

Each run is notebook 40 in profile `arms` or `rewards`: 12 updates of 32 rollouts, 3 proposer phases of 16, 64 held-out tasks (the same for
all) evaluated every 6 updates. ARMS are AutoEnvScaling's (§4.3); REWARDS are Tev's terminal-only reward and PPRS (§4.4), on a static
pool of worlds of `micro_gate`, which the policy has not seen and seldom solves whole. What is compared is the paired gain of a
seed: reward after minus before on the same tasks. All seeds count, whatever they show.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.runs.folder import Run

SEEDS = (1, 2, 3, 4, 5)
ARMS = ("full", "no-proposer-training", "static-pool", "no-feedback")
REWARDS = ("terminal", "pprs")
PARTS = {"arms": ("arm", ARMS), "rewards": ("reward", REWARDS)}  # profile → what varies
COLUMNS = (
    "variant", "seed", "updates", "before", "after", "gain", "useful_groups", "rollouts", "valid", "admitted", "mean_reward", "minutes",
)  # fmt: skip


def run() -> list[dict[str, object]]:
    """Rows of `comparison`, after all runs that are missing."""
    return comparison(outcomes(play(PARTS))).to_dict("records")


def play(parts: Iterable[str]) -> list[Run]:
    """All runs, one at a time: a run uses the whole of a small machine."""
    from workbench.runs.batch import run_grid
    from workbench.runs.folder import open_run

    runs, lost = [], []
    for part in parts:
        name, values = PARTS[part]
        batch = run_grid("40_flywheel", {name: list(values), "seed": list(SEEDS)}, {"profile": part}, jobs=1)
        runs += [open_run(row["run"]) for row in batch.rows]
        lost += [batch.summary()] if batch.exit_code else []
    if lost:
        raise RuntimeError("\n".join([*lost, "start it again: what is done is not repeated"]))
    return runs


def variant(run: Run) -> str:
    """The run's arm, or its reward when it is of the rewards' profile."""
    given = run.params["parameters"]
    return str(given["reward"]) if run.profile == "rewards" else str(given["arm"])


def outcomes(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a run: COLUMNS. before, after: mean held-out reward; useful_groups: share of judged groups that vary; rollouts: that
    counted; valid, admitted: shares of the proposer's verdicts; mean_reward: its r_P."""
    import pandas as pd

    return pd.DataFrame([_outcome(run) for run in runs], columns=list(COLUMNS))


def _outcome(run: Run) -> list[Any]:
    from workbench.report.training_figures_rows import evaluations, phases, updates

    steps, asked = updates([run]), phases([run])
    scores = evaluations([run]).sort_values("step")
    before, after = float(scores["avg"].iloc[0]), float(scores["avg"].iloc[-1])
    stops = run.rows("stop")  # of the step that could not be filled: its groups count too
    useful = steps["accepted"].sum() + sum(row["accepted"] for row in stops)
    judged = useful + steps["dropped"].sum() + sum(row["dropped"] for row in stops)
    verdicts = asked["verdicts"].sum()
    proposed = [asked[name].sum() / verdicts if verdicts else float("nan") for name in ("valid", "admitted")]
    price = (asked["mean_reward"] * asked["verdicts"]).sum() / verdicts if verdicts else float("nan")
    return [variant(run), run.params["parameters"]["seed"], len(steps), before, after, after - before, useful / judged,
            int(steps["rollouts"].sum()), *proposed, price, float(steps["step_minutes"].sum())]  # fmt: skip


def comparison(table: pd.DataFrame) -> pd.DataFrame:
    """One row a variant: its mean gain, and its gain minus that of the variant it stands against (the full arm; terminal reward),
    paired by seed, each with a 95 % bootstrap interval over seeds; means of the other columns."""
    import pandas as pd

    from workbench.statistics import bootstrap_interval

    rows = []
    for name, part in table.groupby("variant", sort=False):
        against = "terminal" if name in REWARDS else "full"
        own = part.set_index("seed")["gain"]
        other = table[table["variant"] == against].set_index("seed")["gain"]
        pairs = (own - other).dropna()
        low, high = bootstrap_interval(list(own))
        less, more = bootstrap_interval(list(pairs)) if name != against and len(pairs) else (float("nan"),) * 2
        rows.append({"variant": name, "seeds": len(part), "before": part["before"].mean(), "gain": own.mean(), "low": low, "high": high,
                     "against": against if name != against else "", "difference": pairs.mean() if name != against else float("nan"),
                     "difference_low": less, "difference_high": more, "useful_groups": part["useful_groups"].mean(),
                     "valid": part["valid"].mean(), "admitted": part["admitted"].mean(), "minutes": part["minutes"].mean()})  # fmt: skip
    return pd.DataFrame(rows)


def publish(runs: list[Run], folder: Path) -> None:
    """The tables, and a picture of each part, to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = outcomes(runs)
    table.round(4).to_csv(folder / "runs.csv", index=False)
    comparison(table).round(4).to_csv(folder / "comparison.csv", index=False)
    for name, (_, chosen) in PARTS.items():
        if len(part := table[table["variant"].isin(chosen)]):
            picture(part).savefig(folder / f"{name}.png", dpi=200)


def picture(table: pd.DataFrame) -> Figure:
    """Each run's gain and its share of useful groups, a point a seed, seeds joined; bars: means with 95 % intervals over seeds."""
    from workbench.report.style import below, looks, panels
    from workbench.statistics import bootstrap_interval

    names = list(dict.fromkeys(table["variant"]))
    fig, axes = panels(2, width=6.5, height=2.8)
    for ax, column, title in zip(
        axes, ("gain", "useful_groups"), ("held-out reward, after - before", "groups that vary"), strict=True
    ):
        for _, own in table.groupby("seed"):
            at = [names.index(name) for name in own["variant"]]
            ax.plot(at, own[column], color="#999999", lw=0.7, marker=".", ms=4, zorder=1)
        for at, (name, look) in enumerate(looks(names).items()):
            values = list(table[table["variant"] == name][column])
            mean, (low, high) = sum(values) / len(values), bootstrap_interval(values)
            ax.errorbar([at], [mean], [[mean - low], [high - mean]], color=look.colour, marker=look.marker, ms=6, capsize=4, lw=1.6,
                        label=f"{name}, {len(values)} seeds")  # fmt: skip
        ax.set_xticks(range(len(names)), names)
        ax.set_xlim(-0.5, len(names) - 0.5)
        ax.set_title(title, fontsize=8.5, loc="left")
    axes[0].axhline(0, color="#bbbbbb", lw=0.8, zorder=0)
    below(fig, axes)
    return fig


def main() -> int:
    from workbench import paths

    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument(
        "--publish", action="store_true", help="write the tables and figures to results/published/learning"
    )
    parser.add_argument("--part", choices=list(PARTS), help="only this part")
    given = parser.parse_args()
    runs = play([given.part] if given.part else PARTS)
    print(comparison(outcomes(runs)).round(3).to_string(index=False))
    if given.publish:
        publish(runs, (paths.CHECKOUT or paths.PACKAGE) / "results" / "published" / "learning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
