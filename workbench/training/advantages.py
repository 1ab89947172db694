"""From rewards to advantages of tokens (AutoEnvScaling Eq. 3, §3.3, G.1). Pure functions, no torch.

Choices that the papers leave open: a group trains only when at least `minimum` of its rollouts count, since a mean of
very few says little; rollouts that infrastructure failed or a broken task ended leave the group before mean and size
are taken; a group counts as varied when its rewards differ by more than 1e-9, so that rounding is no signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from workbench.training.records import Rollout

VARIES = 1e-9

Credit = Callable[[Sequence[Rollout]], Mapping[str, Sequence[float]]]
"""A group's rollouts → for each id the advantage of each turn; its last value stands for later turns too."""


def centred(rewards: Sequence[float]) -> list[float]:
    """Eq. 3: each reward minus the mean of its group; not divided by the standard deviation. Units: the reward's."""
    mean = fmean(rewards) if rewards else 0.0
    return [r - mean for r in rewards]


def varies(rewards: Iterable[float]) -> bool:
    """Whether a group says anything: its rewards are not all the same (DAPO's filter, AutoEnvScaling §3.3)."""
    rewards = list(rewards)
    return bool(rewards) and max(rewards) - min(rewards) > VARIES


def wasted_fraction(p: float, size: int) -> float:
    """(1 − p)^G: the share of groups of `size` rollouts in which all fail, with pass probability p (Tev §3.1)."""
    if not 0.0 <= p <= 1.0 or size < 1:
        raise ValueError(f"p must lie in [0, 1] and the group hold at least one rollout, not p={p}, size={size}")
    return (1.0 - p) ** size


@dataclass(frozen=True)
class Selection:
    """Groups sorted by whether they train. kept: group → its rollouts that count. dropped: group → "too-few" (after
    infrastructure failures left), "no-variation" or "stale". excluded: ids of rollouts that left their group."""

    kept: dict[str, list[Rollout]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    excluded: tuple[str, ...] = ()

    @property
    def retention(self) -> float:
        """Accepted over collected groups (AutoEnvScaling G.1, Fig. 7); 0 when nothing was collected."""
        return len(self.kept) / max(1, len(self.kept) + len(self.dropped))


def plain_return(rollout: Rollout) -> float:
    """The reward as it was graded."""
    return rollout.reward


def select_groups(
    rollouts: Sequence[Rollout],
    minimum: int = 2,
    value: Callable[[Rollout], float] | Mapping[str, Callable[[Rollout], float]] = plain_return,
    *,
    version: int = 0,
    max_staleness: int | None = None,
) -> Selection:
    """Sort complete groups into those that train and those that do not.

    minimum: rollouts that must count, at least 2. value: what must vary, for all or by role (pprs.group_value for shaped
    rewards). max_staleness: updates between a token's policy and `version` beyond which its *whole group* is dropped:
    to drop the old rollout alone would take the long ones out of the mean. Raises ValueError when a group mixes roles.
    """
    if minimum < 2:
        raise ValueError(f"a group needs at least 2 rollouts to have a baseline, not minimum={minimum}")
    chosen = Selection(excluded=tuple(r.id for r in rollouts if not r.counts))
    for name, members in by_group(rollouts).items():
        counted = [r for r in members if r.counts]
        measure = value if callable(value) else value.get(members[0].role, plain_return)
        if len(counted) < minimum:
            chosen.dropped[name] = "too-few"
        elif max_staleness is not None and max(r.staleness(version) for r in counted) > max_staleness:
            chosen.dropped[name] = "stale"
        elif not varies(measure(r) for r in counted):
            chosen.dropped[name] = "no-variation"
        else:
            chosen.kept[name] = counted
    return chosen


def by_group(rollouts: Iterable[Rollout]) -> dict[str, list[Rollout]]:
    """Group name → its rollouts, in the order in which they came."""
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group, []).append(rollout)
    for name, members in groups.items():
        if len({r.role for r in members}) > 1:
            raise ValueError(f"group {name!r} mixes roles: baselines are per role (AutoEnvScaling §3.3)")
        if len({r.id for r in members}) != len(members):
            raise ValueError(f"group {name!r} holds one rollout twice: it would count twice in its own mean")
    return groups


def whole_rollout(members: Sequence[Rollout]) -> dict[str, list[float]]:
    """Eq. 3 as a Credit: one advantage a trajectory, the same for each of its turns."""
    return {r.id: [a] for r, a in zip(members, centred([r.reward for r in members]), strict=True)}


def per_token(rollout: Rollout, turns: Sequence[float]) -> list[list[float]]:
    """Spread advantages over tokens: for each segment one value a token, that of its turn where the policy sampled it
    and 0.0 elsewhere (G.1: a trajectory's advantage is applied to the tokens that the model generates).

    turns: the advantage of each turn; a single value holds for all turns. Raises ValueError when a token's turn has none.
    """
    if len(turns) > 1 and len(turns) < rollout.turns:
        raise ValueError(f"rollout {rollout.id}: {len(turns)} advantages for {rollout.turns} turns")
    last = len(turns) - 1
    return [
        [float(turns[min(turn, last)]) if drawn else 0.0 for drawn, turn in zip(s.sampled, s.turns, strict=True)]
        for s in rollout.segments
    ]


def token_advantages(
    groups: Mapping[str, Sequence[Rollout]], credit: Mapping[str, Credit]
) -> list[tuple[Rollout, list[list[float]]]]:
    """Every kept rollout with the advantages of its tokens. credit: role → how its groups are credited, say
    {"solver": pprs.credit(), "proposer": whole_rollout}."""
    out = []
    for members in groups.values():
        given = credit[members[0].role](members)
        out += [(r, per_token(r, given[r.id])) for r in members]
    return out
