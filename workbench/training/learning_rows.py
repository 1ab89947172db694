"""Rows and lines that a flywheel with learning writes down (docs/flywheel.md lists their fields)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from workbench.training.collect import Collected
from workbench.training.groups import Group


def update_row(
    collected: Collected, proposed: Sequence[Group], update: Mapping[str, Any], dropped: Mapping[str, str]
) -> dict[str, Any]:
    """The part of an `update` row that a step's groups give."""
    rewards = [r.reward for g in collected.seen for r in g.rollouts if r.counts]
    names = {"groups": [g.plan.name for g in collected.groups], "seen": [g.plan.name for g in collected.seen]}
    overhead = [p.extra.get("overhead", 0.0) for g in collected.seen for p in g.results]
    return {
        "update": dict(update), "collect": {**collected.row, **names}, "update_dropped": dict(dropped),
        "solver_reward": fmean(rewards) if rewards else math.nan, "rollouts": len(rewards), "overhead_seconds": math.fsum(overhead),
        "proposer": proposer_row(proposed) if proposed else None,
    }  # fmt: skip


def proposer_row(groups: Sequence[Group]) -> dict[str, Any]:
    """Of one proposer phase: how many were asked, malformed, valid, out of band, admitted, and mean r_P. Shares are of those with a verdict."""
    played = [p for g in groups for p in g.results if p.rollout.outcome != "infra"]
    verdicts = [p.extra["admission"] for p in played]
    rewards = [p.rollout.reward for p in played]
    return {
        "asked": sum(g.plan.size for g in groups), "verdicts": len(played), "malformed": sum(v["malformed"] for v in verdicts),
        "valid": sum(bool(v["validated"]) for v in verdicts), "out_of_band": sum(r == -0.25 for r in rewards),
        "admitted": sum(bool(v["admitted"]) for v in verdicts), "mean_reward": fmean(rewards) if rewards else math.nan,
    }  # fmt: skip


def summary_line(row: Mapping[str, Any]) -> str:
    collect, proposer = row["collect"], row["proposer"]
    text = (f"reward {row['solver_reward']:.3f} over {row['rollouts']}, {collect['accepted']} of {collect['accepted'] + sum(collect['dropped'].values())} groups useful, "
            f"pool {row['pool']}, {row['step_seconds']:.1f} s")  # fmt: skip
    if proposer:
        text += (f"; proposer r_P {proposer['mean_reward']:+.2f}: {proposer['malformed']} malformed, {proposer['out_of_band']} out of band, "
                 f"{proposer['admitted']} admitted of {proposer['verdicts']}")  # fmt: skip
    return text


def score_line(row: Mapping[str, Any]) -> str:
    low, high = row["avg_interval"]
    return f"avg@{row['k']} {row['avg']:.3f} [{low:.3f}, {high:.3f}], pass@1 {row['pass@1']:.3f} on {row['tasks']} tasks, {row['ungraded']} ungraded"
