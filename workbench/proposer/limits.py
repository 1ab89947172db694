"""What one proposer episode may use of the host: calls, seconds, dollars; and the slots in which its children run.

AutoEnvScaling gives no figures for these caps (only the sandboxes' sizes, Table 10): the defaults are ours.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

CALLS = MappingProxyType(
    {"build": 20, "run": 60, "validate": 30, "solver_model": 4, "web_search": 20, "web_fetch": 20, "worlds": 20}
)


class Refused(Exception):
    """A tool call that the host does not make. kind: a stable word; the message is for the agent to read."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Caps:
    """Of one episode. calls: of each tool (0 or absent: not offered). seconds: of the host's work, all tools together,
    waiting for a slot not counted. usd: of what tools spend (the solver's model, a web client)."""

    calls: Mapping[str, int] = CALLS
    seconds: float = 3600.0
    usd: float = math.inf


@dataclass
class Charge:
    """One call in flight. usd: what it cost so far, NaN when a price is unknown."""

    tool: str
    usd: float = 0.0
    working: float = 0.0  # seconds spent so far, without the stretch that runs now
    since: float | None = None

    @property
    def seconds(self) -> float:
        return self.working + (time.monotonic() - self.since if self.since is not None else 0.0)


class Meter:
    """Counts what an episode's tools use. Safe from many threads."""

    def __init__(self, caps: Caps):
        self.caps = caps
        self.calls: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.usd = 0.0
        self.unpriced = 0
        self._flying: list[Charge] = []
        self._lock = threading.Lock()

    def left(self) -> float:
        """Seconds that may still be used, those of calls in flight taken off."""
        with self._lock:
            return self._left()

    def _left(self) -> float:
        return self.caps.seconds - sum(self.seconds.values()) - sum(c.seconds for c in self._flying)

    @contextmanager
    def call(self, tool: str) -> Iterator[Charge]:
        """Count one call, or raise Refused. Its clock runs only inside of `working`."""
        charge = Charge(tool)
        with self._lock:
            try:
                self._check(tool)
            except Refused:
                self.refused[tool] += 1
                raise
            self.calls[tool] += 1
            self._flying.append(charge)
        try:
            yield charge
        finally:
            with self._lock:
                self._flying.remove(charge)
                self.seconds[tool] = self.seconds.get(tool, 0.0) + charge.seconds
                self.unpriced += math.isnan(charge.usd)
                self.usd += 0.0 if math.isnan(charge.usd) else charge.usd

    def _check(self, tool: str) -> None:
        most = self.caps.calls.get(tool, 0)
        if most == 0:
            raise Refused("not-offered", f"{tool} is not offered in this run; go on without it")
        if self.calls[tool] >= most:
            raise Refused(
                "over-calls",
                f"all {most} calls of {tool} in this episode are used; finish with what you have and submit",
            )
        if self._left() <= 0:
            raise Refused("over-seconds", f"the {self.caps.seconds:g} s of tool work in this episode are used; submit")
        if math.isfinite(self.caps.usd) and self.unpriced:
            raise Refused(
                "over-usd", f"what a tool spent has no known price, so the cap of ${self.caps.usd:g} cannot be kept"
            )
        if self.usd >= self.caps.usd:
            raise Refused("over-usd", f"the ${self.caps.usd:g} for tools in this episode are spent; submit")

    def to_row(self) -> dict[str, Any]:
        """For the record: calls and seconds of each tool, refused calls, dollars (NaN when a price was unknown)."""
        with self._lock:
            usd = math.nan if self.unpriced else self.usd
            seconds = {tool: round(s, 3) for tool, s in self.seconds.items()}
            return {"calls": dict(self.calls), "seconds": seconds, "refused": dict(self.refused), "usd": usd}


@contextmanager
def working(charge: Charge) -> Iterator[None]:
    """The stretch of a call that counts as work."""
    charge.since = time.monotonic()
    try:
        yield
    finally:
        charge.working, charge.since = charge.seconds, None


SlotKind = Literal["task", "solver"]


class Slots:
    """How many children run side by side, over all episodes of a host. task: builds, runs and validations; solver: rollouts.

    They are apart from whatever limits the episodes themselves, and who holds one waits for no other: however many
    proposers wait, those that hold a slot come to their end (no nested waiting, so no deadlock).
    """

    def __init__(self, task: int = 4, solver: int = 4):
        if task < 1 or solver < 1:
            raise ValueError(f"task={task}, solver={solver}: at least one slot of each is needed")
        self.size: dict[SlotKind, int] = {"task": task, "solver": solver}
        self._free = {"task": threading.Semaphore(task), "solver": threading.Semaphore(solver)}
        self.most: Counter[str] = Counter()  # held at once, at the most
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, kind: SlotKind, wanted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Wait for a slot, as long as `wanted()` says that somebody still asks; else Refused."""
        while not self._free[kind].acquire(timeout=0.5):
            if not wanted():
                raise Refused("gone", "nobody waits for the answer any more")
        try:
            with self._lock:
                self._held[kind] += 1
                self.most[kind] = max(self.most[kind], self._held[kind])
            yield
        finally:
            with self._lock:
                self._held[kind] -= 1
            self._free[kind].release()


@dataclass
class Notes:
    """What an episode tried that it may not, by name; each name with how often, for the proposal's record."""

    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, name: str, times: int = 1) -> None:
        with self._lock:
            self.counts[name] += times

    def to_row(self) -> dict[str, int]:
        with self._lock:
            return dict(sorted(self.counts.items()))
