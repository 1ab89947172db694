"""Groups of concurrent attempts, filled up until a batch varies (AutoEnvScaling §3.3 and G.1 "Rollout collection").

`Collector.collect` begins more groups than it needs, drops those without variation and begins others in their place, up to a
cap. Choices that the paper leaves open, stated here because they move the result:
- **Unfinished groups go on.** They are neither ended nor waited for: their threads, sandboxes and conversations live through
  the weight update, sampled tokens keep the log-probability and version they were sampled with, and the group is counted in
  the step in which it completes. A group whose oldest token is older than `max_staleness` updates is dropped whole. One
  whose environment left the pool meanwhile is finished and trains like others: its rewards were honestly earned.
- **Surplus complete groups wait** for the next step (in order), and are checked for staleness again when their turn comes.
- **Infrastructure failures** are played again `retries` times, then leave the group; a group in which fewer than `minimum`
  are left is dropped. More than `stop_after_infra` of the last 20 attempts: the step stops, with the last message. All that
  went down with one node (`Lost`) is one failure here, or a node of many trials would take the whole run along.
- **The cap** counts the groups begun in one step. When it is reached, what varies trains if it is `least` groups or more;
  else `NothingToLearn` says what was dropped and why.
- **Serial collection** (`workers=1`, `oversample=1`) leaves nothing in flight, so that a resumed run collects the same.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.training.advantages import plain_return, select_groups
from workbench.training.groups import Attempt, Group, Plan, Played, mean_length
from workbench.training.records import Rollout

WINDOW = 20  # attempts over which the share of infrastructure failures is watched


class NothingToLearn(RuntimeError):
    """The cap was reached and too few groups vary; the message counts the dropped ones by reason. accepted, dropped: groups of the step."""

    def __init__(self, message: str, accepted: int = 0, dropped: int = 0):
        super().__init__(message)
        self.accepted, self.dropped = accepted, dropped


class InfraBroken(RuntimeError):
    """Too many attempts were ended by infrastructure. What was collected before is in the journal."""


class Lost(RuntimeError):
    """An attempt went down with the place where it was played: one failure, however many attempts it took along."""

    def __init__(self, message: str, place: str):
        super().__init__(message)
        self.place = place


class Executor(Protocol):
    """Who plays attempts: threads here, or a cluster (workbench.training.collect_ray)."""

    def submit(self, attempt: Attempt) -> Future[Played]: ...

    def close(self) -> None: ...


class Threads:
    """Attempts on threads of this process: they wait for the engine and for sandboxes most of the time."""

    def __init__(self, play: Callable[[Attempt], Played], workers: int):
        self.play = play
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="rollout")

    def submit(self, attempt: Attempt) -> Future[Played]:
        return self._pool.submit(self.play, attempt)

    def close(self) -> None:
        """Attempts that wait are not begun any more; the running ones end by themselves."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class CollectSettings:
    """groups: that a step trains on. oversample: groups open at first, as a multiple of those that are missing. cap: groups
    begun in one step at most. least, minimum, max_staleness, retries, stop_after_infra: see the module."""

    groups: int = 16
    oversample: float = 1.25
    cap: int = 64
    least: int = 1
    minimum: int = 2
    max_staleness: int | None = 8
    retries: int = 1
    stop_after_infra: float = 0.5

    def __post_init__(self) -> None:
        if self.groups < 1 or self.oversample < 1 or self.cap < self.groups or not 1 <= self.least <= self.groups:
            raise ValueError(
                f"groups={self.groups}, oversample={self.oversample}, cap={self.cap}, least={self.least}: "
                "1 ≤ least ≤ groups ≤ cap and oversample ≥ 1 are needed"
            )


@dataclass(frozen=True)
class Collected:
    """What one step trains on. groups: accepted. seen: every group that completed in this step, for reviews. row: counts, lengths and seconds for the journal (Fig. 7)."""

    groups: tuple[Group, ...]
    seen: tuple[Group, ...]
    row: dict[str, Any]

    @property
    def rollouts(self) -> list[Rollout]:
        return [r for g in self.groups for r in g.rollouts]


@dataclass
class Collector:
    """Collects groups step by step; owns what is in flight and what waits.

    next_plan: draws the next group, None when there is none. on_played: called with every finished attempt, retried ones
    too, one call at a time. value: what must vary (pprs.group_value for shaped rewards)."""

    executor: Executor
    next_plan: Callable[[], Plan | None]
    settings: CollectSettings = CollectSettings()
    seed: int = 0
    value: Callable[[Rollout], float] = plain_return
    on_played: Callable[[Attempt, Played], None] = lambda attempt, played: None
    queue: deque[Group] = field(default_factory=deque)
    _open: dict[str, Group] = field(default_factory=dict)
    _flying: dict[Future[Played], Attempt] = field(default_factory=dict)
    # failed; of a lost place: its name
    _recent: deque[bool | str] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def collect(self, version: int, want: int | None = None) -> Collected:
        """Groups that vary for one update of the policy `version`. Raises NothingToLearn or InfraBroken."""
        return _Step(self, version, want or self.settings.groups).run()

    def settle(self) -> None:
        """Wait for everything in flight; complete groups queue. For the end of a run."""
        while self._flying:
            self.queue.extend(self.harvest())

    @property
    def unfinished(self) -> int:
        """Attempts in flight or waiting for a worker."""
        return len(self._flying)

    def begin(self, plan: Plan, version: int) -> None:
        self._open[plan.name] = Group(plan, version)
        for attempt in plan.attempts(self.seed):
            self._fly(attempt)

    def harvest(self, seconds: float | None = None) -> list[Group]:
        """Groups that were completed, after at least one attempt has ended (or `seconds` have passed)."""
        done, _ = wait(self._flying, timeout=seconds, return_when=FIRST_COMPLETED)
        complete = []
        for future in [f for f in self._flying if f in done]:  # in the order in which they were begun
            attempt = self._flying.pop(future)
            if (group := self._land(attempt, future)) is not None:
                complete.append(group)
        return complete

    def _fly(self, attempt: Attempt) -> None:
        self._flying[self.executor.submit(attempt)] = attempt

    def _land(self, attempt: Attempt, future: Future[Played]) -> Group | None:
        played = _outcome(attempt, future)
        self.on_played(attempt, played)
        failed = played.rollout.outcome == "infra"
        self._recent.append(played.extra.get("place", True) if failed else False)
        group = self._open[attempt.plan.name]
        group.infra += failed
        if failed:
            self._check_infra(played)
            if attempt.retry < self.settings.retries:
                self._fly(attempt.again())
                return None
        group.played[attempt.number] = played
        return self._open.pop(attempt.plan.name) if group.complete else None

    def _check_infra(self, played: Played) -> None:
        places = {place for place in self._recent if isinstance(place, str)}
        # a node takes many along, and is one failure
        failures = sum(place is True for place in self._recent) + len(places)
        if (
            failures / WINDOW > self.settings.stop_after_infra
        ):  # of a full window, so that one early failure stops nothing
            why = played.extra.get("why") or (played.trial and f"{played.trial.reason}: {played.trial.message[:500]}")
            raise InfraBroken(
                f"{sum(map(bool, self._recent))} of the last {len(self._recent)} rollouts were ended by infrastructure; the last: "
                f"{why}. Repair that, then resume the run"
            )


@dataclass
class _Step:
    """One call of `collect`."""

    collector: Collector
    version: int
    want: int
    accepted: list[Group] = field(default_factory=list)
    seen: list[Group] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    begun: int = 0

    def run(self) -> Collected:
        c, started = self.collector, time.perf_counter()
        carried = len(c._open)
        while c.queue and len(self.accepted) < self.want:
            self._judge(c.queue.popleft())
        from_queue = len(self.accepted)
        self._top_up(c.settings.oversample)
        while len(self.accepted) < self.want and c._flying:
            for group in c.harvest():
                self.seen.append(group)
                self._judge(group)
            self._top_up(1.0)
        short = len(self.accepted) < self.want
        if short and len(self.accepted) < c.settings.least:
            raise NothingToLearn(self._why(), len(self.accepted), sum(self.dropped.values()))
        return Collected(tuple(self.accepted), tuple(self.seen), {
            "version": self.version, "wanted": self.want, "accepted": len(self.accepted), "collected": len(self.seen),
            "dropped": dict(self.dropped), "useful": len(self.accepted) / max(1, len(self.accepted) + sum(self.dropped.values())),
            "begun": self.begun, "carried": carried, "from_queue": from_queue, "queued": len(c.queue),
            "open_groups": len(c._open), "unfinished": c.unfinished, "infra": sum(g.infra for g in self.seen), "short": short,
            "accepted_length": mean_length(self.accepted), "collected_length": mean_length(self.seen),
            "staleness": max((r.staleness(self.version) for g in self.accepted for r in g.rollouts), default=0),
            "seconds": time.perf_counter() - started,
        })  # fmt: skip

    def _judge(self, group: Group) -> None:
        """Accept, queue or drop a complete group."""
        s = self.collector.settings
        found = select_groups(group.rollouts, s.minimum, value=self.collector.value, version=self.version, max_staleness=s.max_staleness)  # fmt: skip
        if found.dropped:
            self.dropped[found.dropped[group.plan.name]] += 1
        elif len(self.accepted) < self.want:
            self.accepted.append(group)
        else:
            self.collector.queue.append(group)

    def _top_up(self, factor: float) -> None:
        """Begin groups until as many are open as are missing, times `factor`."""
        c = self.collector
        missing = math.ceil((self.want - len(self.accepted)) * factor) - len(c._open)
        for _ in range(max(0, min(missing, c.settings.cap - self.begun))):
            plan = c.next_plan()
            if plan is None:
                return
            self.begun += 1
            c.begin(plan, self.version)

    def _why(self) -> str:
        reasons = ", ".join(f"{n} {why}" for why, n in self.dropped.most_common()) or "none was begun"
        return (
            f"{len(self.accepted)} of {self.want} groups vary after {self.begun} were begun (cap "
            f"{self.collector.settings.cap}); dropped: {reasons}. no-variation means that every attempt at an environment "
            "earned the same: give environments nearer to what the solver can do, larger groups, or a higher cap"
        )


def _outcome(attempt: Attempt, future: Future[Played]) -> Played:
    """What came of an attempt; one that raised was ended by infrastructure (a lost worker, a fault of ours)."""
    try:
        return future.result()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        rollout = Rollout(
            attempt.id, attempt.plan.name, attempt.plan.role, (), math.nan, outcome="infra", time=time.time()
        )
        return Played(rollout, extra={"why": why} | ({"place": error.place} if isinstance(error, Lost) else {}))


def trailing_mean(values: Sequence[float], window: int) -> list[float]:
    """Mean of each value and the ones before it, at most `window` in all (Fig. 7 shows 3 and 5)."""
    return [math.fsum(values[max(0, i + 1 - window) : i + 1]) / min(window, i + 1) for i in range(len(values))]


def retention(rows: Sequence[dict[str, Any]]) -> float:
    """Accepted over collected groups of all steps together (AutoEnvScaling G.1): a ratio of sums, no mean of ratios. NaN without groups."""
    collected = sum(r["collected"] for r in rows)
    return sum(r["accepted"] for r in rows) / collected if collected else math.nan
