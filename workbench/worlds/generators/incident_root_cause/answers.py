"""The declared causal procedure, run on the world itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.incident_root_cause.scene import Change, World, version

EPISODES = ("service", "onset_utc", "end_utc", "degraded_minutes", "cause")
TIMELINE = ("time_utc", "incident", "service", "event", "detail")


@dataclass
class Episode:
    service: str
    first: int
    last: int
    bad: int
    cause: Episode | None = None

    def root(self) -> Episode:
        return self if self.cause is None else self.cause.root()

    def depth(self) -> int:
        return 0 if self.cause is None else 1 + self.cause.depth()


def utc(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def episodes_of(world: World, hard: tuple[str, ...] = ("hard",)) -> list[Episode]:
    out = []
    for (name, errors, latency), series in zip(world.services, world.metrics, strict=True):
        run: list[int] = []
        for minute in [*(m for m, (e, d) in enumerate(series) if e > errors or d > latency), 10**9]:
            if run and minute - run[-1] > 3:
                if len(run) >= 3:
                    out.append(Episode(name, run[0], run[-1], len(run)))
                run = []
            run.append(minute)
    out.sort(key=lambda e: (e.first, e.service))
    for one in out:
        upstream = {d for s, d, kind in world.edges if s == one.service and kind in hard}
        causes = [f for f in out if f.service in upstream and f.first <= one.first <= f.last]
        one.cause = causes[0] if causes else None
    return out


def _rollback(world: World, change: Change, end: int) -> dict[str, Any]:
    found = {
        "version-not-kept": (change.service, change.before) not in world.kept,
        "irreversible-migration": change.migration == "irreversible",
        "later-change": any(c.service == change.service and change.second < c.second <= end for c in world.changes),
        "consumer-needs-newer": any(
            p == change.service and version(v) > version(change.before) for _, p, v in world.needs
        ),
    }
    reasons = sorted(r for r, holds in found.items() if holds)
    return {"safe": not reasons, "reasons": reasons}


def truth(
    world: World, defects: tuple[Defect, ...], hard: tuple[str, ...] = ("hard",), shift: int = 0
) -> dict[str, Any]:
    """The answer key; `hard` and `shift` (seconds that logs are off) serve counterfactuals."""
    logs = {
        n: [(t + shift, level, text) for t, level, text in lines]
        for (n, _, _), lines in zip(world.services, world.logs, strict=True)
    }
    episodes = episodes_of(world, hard)
    at = lambda minute: world.start + 60 * minute  # noqa: E731
    incidents, timeline = [], []
    for nth, root in enumerate([e for e in episodes if e.cause is None], 1):
        members = [e for e in episodes if e.root() is root]
        name, onset, end = f"I-{nth:02d}", at(root.first), at(max(e.last for e in members))
        before = [c for c in world.changes if c.service == root.service and onset - 1800 <= c.second <= onset]
        faults = [(t, m) for t, level, m in logs[root.service] if level == "ERROR" and onset - 1800 <= t <= onset]
        trigger, rollback = {"kind": "unknown", "reference": ""}, {"safe": False, "reasons": ["no-change"]}
        if before:
            trigger = {"kind": before[-1].kind, "reference": before[-1].id}
            rollback = _rollback(world, before[-1], end)
            timeline.append((utc(before[-1].second), name, root.service, "change", before[-1].id))
        elif faults:
            trigger = {"kind": "fault", "reference": faults[0][1].split("code=")[1]}
        for e in members:
            timeline += [
                (utc(at(e.first)), name, e.service, "onset", ""),
                (utc(at(e.last)), name, e.service, "end", ""),
            ]
            errors = [
                (t, m) for t, level, m in logs[e.service] if level == "ERROR" and at(e.first) - 1800 <= t <= at(e.last)
            ]
            if errors:
                timeline.append((utc(errors[0][0]), name, e.service, "first-error", errors[0][1].split("code=")[1]))
        incidents.append({
            "id": name, "root": root.service, "onset_utc": utc(onset), "end_utc": utc(end), "trigger": trigger,
            "blast_radius": sorted({e.service for e in members}), "depth": max(e.depth() for e in members),
            "degraded_minutes": sum(e.bad for e in members), "rollback": rollback,
        })  # fmt: skip
    rows = [
        (e.service, utc(at(e.first)), utc(at(e.last)), str(e.bad), e.cause.service if e.cause else "") for e in episodes
    ]
    skew = {d.path[11:-6]: d.params["seconds"] for d in defects if d.kind == "clock_skew"}
    report = {
        "case": world.case,
        "clock_offsets": {n: skew.get(n, 0) for n in sorted(logs)},
        "incidents": len(incidents),
        "triggers": dict(Counter(i["trigger"]["kind"] for i in incidents)),
        "safe_rollbacks": [i["trigger"]["reference"] for i in incidents if i["rollback"]["safe"]],
        "most_affected": sorted(
            Counter(s for i in incidents for s in i["blast_radius"]).items(), key=lambda kv: (-kv[1], kv[0])
        )[0][0],
    }
    return {
        "episodes": [dict(zip(EPISODES, r, strict=True)) for r in rows],
        "timeline": [dict(zip(TIMELINE, r, strict=True)) for r in sorted(timeline)],
        "incidents": incidents,
        "report": report,
    }
