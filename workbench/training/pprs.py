"""Progress-potential reward shaping (Tev §3.3, Eq. 4, appendices B and C.1). Pure functions, no torch.

R(τ) = 1[τ passes] + λ Φ(s_T), spread over turns: turn t earns λ(Φ(s_t) − Φ(s_{t−1})), the last one the terminal term too.
Each turn's advantage is its return-to-go (γ = 1) minus the mean of that return over the group's rollouts that reach the
same turn index. Where we deviate or had to choose:
- Tev's Eq. 2 divides by the standard deviation and C.1 says "group-centered advantages": we centre, and divide on request.
- A turn that one rollout alone reaches has itself as its mean, hence advantage 0; `lone_share` says how many tokens that
  silences. `leave_one_out` takes the mean of the *other* rollouts instead; a lone one stays at 0.
- Table 5 writes the direct variant's signal as Φ(s_t) plus the terminal term; λ multiplies Φ here as it does in Eq. 4.
- A rollout without turns (no sampled token) takes part in no turn's mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Literal

from workbench.training.records import Rollout

LAMBDA = 0.25  # Tev §3.3: in every run, not tuned
Variant = Literal["pprs", "terminal", "pooled", "direct"]
VARIANTS: tuple[Variant, ...] = ("pprs", "terminal", "pooled", "direct")
EPSILON = 1e-6  # ε of Eq. 2, whose value Tev does not publish


def terminal(rollout: Rollout) -> float:
    """1.0 when the strict verifier accepted a *submitted* workspace; without submission nothing is graded terminally."""
    return 1.0 if rollout.passed and rollout.submitted else 0.0


def total(rollout: Rollout, lam: float = LAMBDA) -> float:
    """R(τ) of Eq. 4, in [0, 1 + λ]."""
    return terminal(rollout) + lam * (rollout.progress[-1] if rollout.progress else 0.0)


def group_value(variant: Variant = "pprs", lam: float = LAMBDA) -> Callable[[Rollout], float]:
    """What must vary within a group for it to train: R of Eq. 4, or the terminal term alone for "terminal"."""
    _known(variant)
    return terminal if variant == "terminal" else lambda r: total(r, lam)


def turn_rewards(rollout: Rollout, variant: Variant = "pprs", lam: float = LAMBDA) -> list[float]:
    """The reward of each turn, length `rollout.turns`. Their sum is R for "pprs" and "pooled", 1[passes] for "terminal"."""
    turns = rollout.turns
    phi = [*rollout.progress]
    phi += [phi[-1] if phi else 0.0] * (turns - len(phi))  # a turn that was not graded changed nothing that is known
    if variant == "terminal":
        rewards = [0.0] * turns
    elif variant == "direct":
        rewards = [lam * p for p in phi]
    else:
        rewards = [lam * (after - before) for before, after in pairwise([0.0, *phi])]
    if rewards:
        rewards[-1] += terminal(rollout)
    return rewards


def returns_to_go(rewards: Sequence[float], gamma: float = 1.0) -> list[float]:
    """G_t = r_t + γ G_{t+1}."""
    out: list[float] = []
    for reward in reversed(rewards):
        out.append(reward + gamma * (out[-1] if out else 0.0))
    return out[::-1]


def turn_advantages(
    members: Sequence[Rollout],
    variant: Variant = "pprs",
    *,
    lam: float = LAMBDA,
    leave_one_out: bool = False,
    divide: bool = False,
) -> dict[str, list[float]]:
    """Advantages of one group: rollout id → one value a turn.

    "pprs": return-to-go, baseline per turn index. "terminal": the whole rollout's 1[passes] minus its mean. "pooled":
    return-to-go minus the mean of whole-rollout R. "direct": Φ(s_t) with γ = 0, baseline per turn index (Tev Table 5).
    divide: by the population standard deviation of the same returns plus ε, as in Eq. 2.
    """
    _known(variant)
    gamma = 0.0 if variant == "direct" else 1.0
    returns = {r.id: returns_to_go(turn_rewards(r, variant, lam), gamma) for r in members}
    if variant in ("terminal", "pooled"):
        whole = {r.id: group_value(variant, lam)(r) for r in members}
        return {
            i: [_against(g, i, whole, leave_one_out, divide) for g in own] for i, own in returns.items()
        }  # the baseline is of whole rollouts, whatever the turn
    out: dict[str, list[float]] = {i: [] for i in returns}
    for turn in range(max(map(len, returns.values()), default=0)):
        reaching = {i: own[turn] for i, own in returns.items() if turn < len(own)}
        for i, value in reaching.items():
            out[i].append(_against(value, i, reaching, leave_one_out, divide))
    return out


def _against(value: float, own: str, returns: Mapping[str, float], leave_one_out: bool, divide: bool) -> float:
    """`value` minus the baseline of `returns`, of which `own` is one."""
    if len(returns) == 1:
        return 0.0
    others = [r for i, r in returns.items() if i != own] if leave_one_out else list(returns.values())
    advantage = value - fmean(others)
    return advantage / (pstdev(returns.values()) + EPSILON) if divide else advantage


def credit(variant: Variant = "pprs", **options: float | bool) -> Callable[[Sequence[Rollout]], dict[str, list[float]]]:
    """`turn_advantages` with its options, as the Credit that advantages.token_advantages takes."""
    _known(variant)
    return lambda members: turn_advantages(members, variant, **options)


def lone_share(members: Sequence[Rollout]) -> float:
    """The share of the group's sampled tokens in turns that one rollout alone reaches: they train with advantage 0.
    NaN when the group has no tokens. A wider group or `pooled` lowers it."""
    reach = sorted((r.turns for r in members), reverse=True)
    second = reach[1] if len(reach) > 1 else 0
    turns = [t for r in members for s in r.segments for t, drawn in zip(s.turns, s.sampled, strict=True) if drawn]
    return sum(t >= second for t in turns) / len(turns) if turns else math.nan


def _known(variant: str) -> None:
    if variant not in VARIANTS:
        raise ValueError(f"no shaping variant {variant!r}: there are {', '.join(VARIANTS)}")
