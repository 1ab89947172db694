"""Tables of a flywheel's rounds, from the journal alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.runs.folder import Run

if TYPE_CHECKING:
    import pandas as pd

POOL_COLUMNS = (
    "id", "round", "parent", "direction", "status", "reasons", "message", "mean", "std", "rewards", "proposer_reward",
)  # fmt: skip


def pool_table(run: Run) -> pd.DataFrame:
    """Every environment that was proposed, with its standing now: the last `review` of it, else its `standing`.

    Columns: POOL_COLUMNS. mean and std (population) are of the latest rewards; reasons are the gate's kinds, joined.
    """
    import pandas as pd

    latest = {row["id"]: row for row in run.rows("standing")} | {row["id"]: row for row in run.rows("review")}
    rows = [{**{c: row.get(c) for c in POOL_COLUMNS}, "reasons": ", ".join(row["reasons"])} for row in latest.values()]
    return pd.DataFrame(rows, columns=list(POOL_COLUMNS))


def rollout_table(run: Run) -> pd.DataFrame:
    """One row a rollout that counts: round, group ("parents" or "admitted"), task, reward."""
    import pandas as pd

    rows = [[r["round"], r["group"], r["task"], reward] for r in run.rows("rollouts") for reward in r["rewards"]]
    return pd.DataFrame(rows, columns=["round", "group", "task", "reward"])


def calibration_table(run: Run) -> pd.DataFrame:
    """One row a calibrated environment: task, n, mean, std, posterior (that the true mean is in the band), kept, rewards,
    and fresh_mean: the mean of its later rollouts, which did not decide its admission (None without any)."""
    import pandas as pd

    fresh = {r["digest"]: r["rewards"] for r in run.rows("rollouts") if r["group"] == "admitted"}
    rows = []
    for row in run.rows("admission"):
        found = (row.get("report") or {}).get("calibration")
        if found:
            later = fresh.get(row["digest"])
            rows.append({"task": row["task"], "n": found["n"], "mean": found["mean"], "std": found["std"],
                         "posterior": found["posterior"], "kept": found["keep"], "rewards": found["rewards"],
                         "fresh_mean": sum(later) / len(later) if later else None})  # fmt: skip
    return pd.DataFrame(rows, columns=["task", "n", "mean", "std", "posterior", "kept", "rewards", "fresh_mean"])
