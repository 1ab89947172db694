"""What a running flywheel looks like, folded from its journal record by record: plain numbers, within a fixed memory.

What is kept grows with the number of environments (a word each) and of trials (eight bytes each), never with the size of what
they say: all else are counts, sums, and the last few of a thing.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.report.live_journal import Entry
from workbench.report.live_trials import TrialIndex
from workbench.report.widget import visible

POINTS = 240  # of a line that is drawn
LATEST = 12  # rejections that are kept
WINDOW = 100  # attempts in the reward "now"
TEXT = 300  # characters of anything that is shown
KINDS = 100  # of records that are told apart
NOT_SOLVERS = ("oracle", "noop")
SHOWN = ("trial", "diagnostic", "rollout")  # what can be opened
COUNTED = ("graded", "policy")  # outcomes that are the solver's own
TOLD = 24  # numbers of the last update and evaluation that are shown


class Line:
    """A series of any length as at most POINTS means, each over equally many neighbours (a power of two)."""

    def __init__(self) -> None:
        self.width, self._means, self._open, self._n = 1, [], 0.0, 0

    def add(self, value: float) -> None:
        self._open, self._n = self._open + value, self._n + 1
        if self._n < self.width:
            return
        self._means.append(self._open / self._n)
        self._open, self._n = 0.0, 0
        if len(self._means) == 2 * POINTS:
            self._means = [(a + b) / 2 for a, b in zip(self._means[::2], self._means[1::2], strict=True)]
            self.width *= 2

    @property
    def values(self) -> list[float]:
        return [*self._means, *([self._open / self._n] if self._n else [])]


class LiveState:
    """Fold records with `fold`; read the attributes.

    counts: records by kind. lines: reward (of the solver's attempts), valid and admitted (0 or 1 a verdict), useful (a group's
    or an update's share), pool (active environments). standing: environment id → active, rejected or evicted. rejected: the
    last ones, newest first. usd: what was paid and is known; unpriced: records whose price is unknown. tokens: read and
    written. last: numbers of the last update and evaluation.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.lines = {name: Line() for name in ("reward", "valid", "admitted", "useful", "pool")}
        self.rewards: deque[float] = deque(maxlen=WINDOW)
        self.verdicts: Counter[str] = Counter()
        self.groups = self.useful = 0
        self.standing: dict[str, str] = {}
        self.pool: Counter[str] = Counter()
        self.rejected: deque[dict[str, str]] = deque(maxlen=LATEST)
        self.trials = TrialIndex()
        self.usd, self.unpriced, self.tokens = 0.0, 0, [0, 0]
        self.infra = self.too_long = 0
        self.first = self.latest = math.nan
        self.last: dict[str, dict[str, float]] = {}
        self.round: dict[str, Any] = {}

    def fold(self, entry: Entry) -> None:
        """Take one line of the journal in. A record whose fields are not what they should be only counts."""
        kind = entry.kind if entry.kind in self.counts or len(self.counts) < KINDS else "other kinds"
        self.counts[kind] += 1
        if entry.kind in SHOWN:
            self.trials.add(entry.offset)
        if entry.record is None:
            self.too_long += 1
            return
        if (when := number(entry.record.get("time"))) is not None:
            self.first = when if math.isnan(self.first) else self.first
            self.latest = when
        if take := getattr(self, f"_{entry.kind}", None) if entry.kind in TAKEN else None:
            try:
                take(entry.record)
            except (TypeError, ValueError, AttributeError, KeyError):
                self.counts["not understood"] += 1

    # ---- one method a kind

    def _trial(self, row: Mapping[str, Any]) -> None:
        self._paid(row)
        reward = number(row.get("reward"))
        self.infra += row.get("outcome") == "infra"
        if reward is not None and row.get("agent") not in NOT_SOLVERS:
            self.rewards.append(reward)
            self.lines["reward"].add(reward)

    def _proposal(self, row: Mapping[str, Any]) -> None:
        self._paid(row)

    def _admission(self, row: Mapping[str, Any]) -> None:
        if row.get("infra"):
            self.verdicts["infra"] += 1
            return
        self.verdicts["all"] += 1
        for name, field in (("valid", "valid_paper"), ("validated", "validated"), ("admitted", "admitted")):
            self.verdicts[name] += row.get(field) is True
        self.lines["valid"].add(float(row.get("valid_paper") is True))
        self.lines["admitted"].add(float(row.get("admitted") is True))
        if row.get("admitted") is not True and (row.get("reasons") or []):
            reasons = [r for r in row["reasons"][:4] if isinstance(r, Mapping)]
            kinds, why = (", ".join(str(r.get(k, ""))[:TEXT] for r in reasons) for k in ("kind", "message"))
            self._refused(row, str(row.get("stage", "")), kinds, why)

    def _rollouts(self, row: Mapping[str, Any]) -> None:
        rewards = [r for r in map(number, row["rewards"][:10_000]) if r is not None]
        if len(rewards) >= 2:
            varies = max(rewards) != min(rewards)
            self.groups, self.useful = self.groups + 1, self.useful + varies
            self.lines["useful"].add(float(varies))

    def _assignment(self, row: Mapping[str, Any]) -> None:
        if row.get("round") != self.round.get("round"):
            self.round = {"round": row.get("round"), "assigned": 0, "answered": 0, "time": number(row.get("time"))}
        self.round["assigned"] += 1

    def _pool(self, row: Mapping[str, Any]) -> None:
        if row.get("round") == self.round.get("round"):
            self.round["answered"] += 1

    def _standing(self, row: Mapping[str, Any]) -> None:
        name, status = str(row["id"])[:200], str(row.get("status", ""))[:40]
        before = self.standing.get(name)
        self.standing[name] = status
        self.pool[status] += 1
        if before is not None:
            self.pool[before] -= 1
        self.lines["pool"].add(self.pool["active"])
        if status != "active" and status != before and not self._told(name):
            kinds = ", ".join(map(str, (row.get("reasons") or [])[:4]))
            self._refused(row, status, kinds, str(row.get("message", "")))

    _review = _standing

    def _update(self, row: Mapping[str, Any]) -> None:
        """A step of learning (workbench.training.learning): its groups are in `collect`."""
        self.last["update"] = numbers_of(row)
        found = row.get("collect")
        collect = found if isinstance(found, Mapping) else row
        accepted, dropped = number(collect.get("accepted")), collect.get("dropped")
        if accepted is None or not isinstance(dropped, Mapping):
            return
        lost = sum(n for n in map(number, list(dropped.values())[:KINDS]) if n is not None)
        if accepted + lost:
            self.groups, self.useful = self.groups + int(accepted + lost), self.useful + int(accepted)
            self.lines["useful"].add(accepted / (accepted + lost))

    def _rollout(self, row: Mapping[str, Any]) -> None:
        """An attempt of learning, which has no `trial` record of its own."""
        self.infra += row.get("outcome") == "infra"
        self.tokens[1] += int(number(row.get("tokens")) or 0)
        reward = number(row.get("reward"))
        if row.get("role") == "solver" and reward is not None and row.get("outcome") in COUNTED:
            self.rewards.append(reward)
            self.lines["reward"].add(reward)

    def _evaluation(self, row: Mapping[str, Any]) -> None:
        name = short(f"evaluation {row.get('set', '')}", 60).strip()
        if name in self.last or len(self.last) < LATEST:
            self.last[name] = numbers_of(row)

    # ---- shared

    def _told(self, name: str) -> bool:
        """Its verdict was told already: the standing only repeats it."""
        return any(one["id"] == name for one in self.rejected)

    def _refused(self, row: Mapping[str, Any], stage: str, kinds: str, why: str) -> None:
        told = {"id": row["id"], "task": row.get("task") or row["id"], "stage": stage, "kinds": kinds, "why": why}
        self.rejected.appendleft({k: short(v) for k, v in told.items()})

    def _paid(self, row: Mapping[str, Any]) -> None:
        usd = number(row.get("usd"))
        if usd is not None:
            self.usd += usd
        elif row.get("usd") is not None:
            self.unpriced += 1
        for i, name in enumerate(("prompt_tokens", "completion_tokens")):
            self.tokens[i] += int(number(row.get(name)) or 0)


TAKEN = frozenset("trial proposal admission rollouts assignment pool standing review update rollout evaluation".split())


def number(value: Any) -> float | None:
    """A finite number, or None."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if fine else None


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row and of the objects in it (as "object.name"), times left out, at most TOLD."""
    inner = [
        (f"{k}.{name}", v)
        for k, part in row.items()
        if isinstance(part, Mapping)
        for name, v in list(part.items())[:TOLD]
    ]
    found = {short(k, 60): n for k, v in [*row.items(), *inner] if k != "time" and (n := number(v)) is not None}
    return dict(list(found.items())[:TOLD])


def short(value: object, most: int = TEXT) -> str:
    """A value as one line of harmless text, cut."""
    text = " ".join(visible(str(value)[: 4 * most]).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
