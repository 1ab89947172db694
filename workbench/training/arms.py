"""The arms of a comparison, each one parameter (AutoEnvScaling §4.2, §4.3 and Table 3), and how they are compared.

Arms are matched on solver updates, not on time or tokens, and compared at the last update that all of them reached (G.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arm:
    """proposes: new environments come in every k steps. trains_proposer: proposer trajectories enter the update. reviews: what
    left the band leaves the pool. feedback: assignments and workspaces say how the solver did. external: a proposer with fixed
    weights answers instead of the policy; it improves through its harness only (`refresh` each round)."""

    name: str
    proposes: bool = True
    trains_proposer: bool = True
    reviews: bool = True
    feedback: bool = True
    external: bool = False


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("full"),
        Arm("no-proposer-training", trains_proposer=False),
        Arm("static-pool", proposes=False, trains_proposer=False, reviews=False),
        Arm("no-feedback", feedback=False),
        Arm("external", trains_proposer=False, external=True),
    )
}


def get_arm(name: str) -> Arm:
    """Raises ValueError with the names there are."""
    if name not in ARMS:
        raise ValueError(f"no arm {name!r}: there are {', '.join(ARMS)}")
    return ARMS[name]


def common_endpoint(evaluations: Mapping[str, Sequence[Mapping[str, Any]]]) -> int:
    """The last solver update at which every arm was evaluated. evaluations: arm → its `evaluation` rows. ValueError without one."""
    reached = [{int(row["version"]) for row in rows} for rows in evaluations.values()]
    both = set.intersection(*reached) if reached else set()
    if not both:
        raise ValueError(
            f"no update at which all of {', '.join(evaluations)} were evaluated: give them the same evaluate_every"
        )
    return max(both)


def compare(evaluations: Mapping[str, Sequence[Mapping[str, Any]]], measure: str = "avg") -> list[dict[str, Any]]:
    """One row an arm at the common endpoint, with its best update before it. measure: a key of the rows, say "avg" or "pass@1"."""
    end = common_endpoint(evaluations)
    out = []
    for arm, rows in evaluations.items():
        upto = {int(r["version"]): r for r in rows if int(r["version"]) <= end}
        best = max(upto, key=lambda v: (upto[v][measure], -v))
        out.append({"arm": arm, "updates": end, measure: upto[end][measure], "interval": upto[end].get(f"{measure}_interval"),
                    "best": upto[best][measure], "best_at": best})  # fmt: skip
    return out
