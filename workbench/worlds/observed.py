"""What rollouts add to an environment's labels: reward band, outcome and failure category (Tev A.3; the paper names these axes, no values).

The values are ours. A row is a trial's row of a journal; rollouts that do not count (infrastructure, a broken task) say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from workbench.worlds.coverage import ROLLOUT_AXES, UNOBSERVED, Labels

Row = Mapping[str, Any]


def observed(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Values of the three axes from an environment's rollouts; `unobserved` without any, and no failure category when all pass."""
    counted = [row for row in rows if row["outcome"] in ("graded", "policy")]
    if not counted:
        return dict.fromkeys(ROLLOUT_AXES, (UNOBSERVED,))
    failures = {failure(row) for row in counted if not _passes(row)} or {"none"}
    return {
        "reward_band": (reward_band(fmean(row["reward"] for row in counted)),),
        "outcome_category": tuple(sorted({outcome(row) for row in counted})),
        "failure_category": tuple(sorted(failures)),
    }


def reward_band(mean: float) -> str:
    """Of a mean reward: nothing, below, within or above the calibration band [0.25, 0.75], everything."""
    if mean in (0.0, 1.0):
        return f"{mean:g}"
    return "<0.25" if mean < 0.25 else ">0.75" if mean > 0.75 else "0.25-0.75"


def outcome(row: Row) -> str:
    """passed, submitted-incomplete, complete-unsubmitted, or what ended it: ended-turns, ended-context, …"""
    if _passes(row):
        return "passed"
    if row["submitted"]:
        return "submitted-incomplete"
    return "complete-unsubmitted" if row["passed"] else f"ended-{row['ended_by']}"


def failure(row: Row) -> str:
    """How Phi stands at the end of a rollout that did not pass: not-submitted (1), nothing-right (0), regressed (below its best), stalled."""
    phi, best = row["phi"], max(row.get("progress") or (0.0,))
    if phi is None:
        return "ungraded"
    if phi == 1:
        return "not-submitted"
    if phi < best:
        return "regressed"
    return "nothing-right" if phi == 0 else "stalled"


def relabelled(labels: Labels, rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """An environment's labels with the three axes as its rollouts fill them."""
    return {**{axis: tuple(values) for axis, values in labels.items()}, **observed(rows)}


def _passes(row: Row) -> bool:
    return bool(row["passed"] and row["submitted"])
