"""A bad day of a service fleet, by the minute: error rates and latencies, log lines, changes, and who depends on whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw

SIZES: Mapping[str, tuple[int, int, int, int]] = {
    "unit": (7, 110, 2, 9),
    "small": (10, 240, 4, 22),
    "full": (18, 420, 8, 50),
}  # services, minutes, incidents, log lines
NOUNS = "cart search profile payment catalog shipping pricing session media mail ledger feed quota geo vault review coupon audit".split()
CODES = "E1040 E2213 E3307 E4429 E5108 E6610".split()
REASONS = ("version-not-kept", "irreversible-migration", "later-change", "consumer-needs-newer")


@dataclass(frozen=True)
class Change:
    id: str
    second: int
    service: str
    kind: str  # deploy, config or flag
    before: str
    after: str
    migration: str  # none, reversible or irreversible


@dataclass(frozen=True)
class World:
    case: str
    start: int  # second of the first minute
    services: tuple[tuple[str, int, int], ...]  # name, error limit (ppm), latency limit (ms)
    edges: tuple[tuple[str, str, str], ...]  # service, depends_on, hard or soft
    metrics: tuple[tuple[tuple[int, int], ...], ...]  # a row per service: (error_ppm, latency_ms) by the minute
    changes: tuple[Change, ...]
    kept: tuple[tuple[str, str], ...]  # service, version
    needs: tuple[tuple[str, str, str], ...]  # consumer, provider, lowest version
    logs: tuple[tuple[tuple[int, str, str], ...], ...]  # a row per service: second, level, message


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


class _Day:
    """What is being drawn; make() freezes it."""

    def __init__(self, draw: Draw, tier: Tier):
        count, self.minutes, self.incidents, self.lines = SIZES[tier]
        self.draw = draw
        self.start = 1_772_323_200 + 86_400 * draw.integer(0, 200) + 3600 * draw.integer(1, 14)
        self.names = [f"{n}-{draw.hexadecimal(4)}" for n in draw.sample(NOUNS, count)]
        self.limits = {n: (100 * draw.integer(30, 90), 10 * draw.integer(20, 50)) for n in self.names}
        self.edges = [
            (n, other, "hard" if draw.chance(0.7) else "soft")
            for at, n in enumerate(self.names)
            for other in draw.sample(self.names[:at], min(at, draw.integer(1, 3)))
        ]
        self.metrics = {
            n: [[draw.integer(20, 900), draw.integer(15, 120)] for _ in range(self.minutes)] for n in self.names
        }
        self.logs: dict[str, list[tuple[int, str, str]]] = {n: [] for n in self.names}
        self.changes: list[tuple[int, str]] = []

    def degrade(self, name: str, first: int, last: int) -> None:
        """Above a limit from first to last, with a calm minute now and then."""
        draw, (errors, latency) = self.draw, self.limits[name]
        for minute in range(max(first, 0), min(last + 1, self.minutes)):
            if minute in (first, first + 1, last) or draw.chance(0.85):
                at = draw.integer(0, 1)
                self.metrics[name][minute][at] = (errors, latency)[at] + draw.integer(1, 9000 if at == 0 else 900)
        second = self.start + 60 * first + draw.integer(5, 170)
        self.logs[name].append((second, "ERROR", f"request failed code={draw.choice(CODES)}"))

    def dependents(self, name: str) -> list[str]:
        return sorted(s for s, d, kind in self.edges if d == name and kind == "hard")

    def incident(self, nth: int) -> None:
        draw, room = self.draw, self.minutes // self.incidents
        root = draw.choice(self.names[: max(3, len(self.names) // 2)])
        first = nth * room + draw.integer(31, 36) if nth == 0 else nth * room + draw.integer(2, 8)
        last = first + draw.integer(8, 14)
        seen = {root: (first, last)}
        todo = [root]
        while todo:
            name = todo.pop()
            for other in self.dependents(name):
                if other not in seen and draw.chance(0.75):
                    begin = seen[name][0] + draw.integer(0, 3)
                    seen[other] = (begin, begin + draw.integer(4, 10))
                    todo.append(other)
        for name, (begin, end) in seen.items():
            self.degrade(name, begin, end)
        onset = self.start + 60 * first
        if nth % 3 != 2:
            self.changes.append((onset - draw.integer(60, 1500), root))
        else:
            self.logs[root].append((onset - draw.integer(20, 900), "ERROR", f"disk degraded code={draw.choice(CODES)}"))
        if draw.chance(0.4):
            self.changes.append((onset + draw.integer(60, 400), root))
        bystander = draw.choice(self.names)
        if bystander not in seen and draw.chance(0.5):
            self.degrade(bystander, first + 1, first + 5)


def _noise(day: _Day) -> None:
    draw = day.draw
    for name in day.names:
        for minute in draw.sample(range(day.minutes), 4):  # a spike of one minute is no episode
            if day.metrics[name][minute][0] < 1000:
                day.metrics[name][minute][0] = day.limits[name][0] + draw.integer(1, 500)
        for _ in range(day.lines):
            second = day.start + draw.integer(0, 60 * day.minutes - 1)
            day.logs[name].append(
                (second, draw.weighted(["INFO", "WARN"], [4, 1]), f"handled batch {draw.hexadecimal(6)}")
            )
    for _ in range(len(day.names)):
        day.changes.append((day.start + draw.integer(0, 60 * day.minutes - 1), draw.choice(day.names)))


def make(draw: Draw, tier: Tier) -> World:
    day = _Day(draw, tier)
    for nth in range(day.incidents):
        day.incident(nth)
    _noise(day)
    current = {n: [draw.integer(1, 4), draw.integer(0, 9), 0] for n in day.names}
    changes, kept, needs = [], set(), set()
    for second, name in sorted(set(day.changes)):
        before = ".".join(map(str, current[name]))
        current[name][2] += 1
        after = ".".join(map(str, current[name]))
        kind, migration = (
            draw.weighted(["deploy", "config", "flag"], [3, 1, 1]),
            draw.weighted(["none", "reversible", "irreversible"], [4, 1, 2]),
        )
        changes.append(Change(f"CH-{draw.hexadecimal(6)}", second, name, kind, before, after, migration))
        kept |= {(name, after)} | ({(name, before)} if draw.chance(0.75) else set())
        for consumer, provider, _ in day.edges:
            if provider == name and draw.chance(0.2):
                needs.add((consumer, name, draw.choice([before, after])))
    return World(
        f"INC-{draw.hexadecimal(8)}",
        day.start,
        tuple((n, *day.limits[n]) for n in day.names),
        tuple(day.edges),
        tuple(tuple(map(tuple, day.metrics[n])) for n in day.names),
        tuple(changes),
        tuple(sorted(kept)),
        tuple(sorted(needs)),
        tuple(tuple(sorted(set(day.logs[n]))) for n in day.names),
    )


def check(world: World) -> None:
    names = [n for n, _, _ in world.services]
    place = {n: i for i, n in enumerate(names)}
    if len(place) != len(names) or len(world.metrics) != len(names) or len(world.logs) != len(names):
        raise WorldError("every service needs a name, metrics and a log of its own")
    if any(place[d] >= place[s] for s, d, _ in world.edges):
        raise WorldError("the topology has a cycle")
    if len({len(m) for m in world.metrics}) != 1:
        raise WorldError("metrics differ in length")
