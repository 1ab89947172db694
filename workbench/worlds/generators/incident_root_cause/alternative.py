"""Works on strings of 0 and 1: degraded minutes as text, episodes as matches of a pattern, incidents as classes of a union-find."""

from __future__ import annotations

import calendar
import csv
import io
import itertools
import json
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

EPISODE = re.compile("1(?:0{0,2}1)+")


class Span(NamedTuple):
    onset: int
    service: str
    end: int
    bad: int


def _epoch(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def _stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def _cells(tree: Mapping[str, bytes], name: str) -> list[list[str]]:
    return list(csv.reader(tree[f"input/{name}"].decode().splitlines()))[1:]


def _objects(tree: Mapping[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tree[f"input/{name}"].decode().splitlines()]


def _spans(tree: Mapping[str, bytes]) -> list[Span]:
    standby: dict[str, dict[str, list[str]]] = {}
    for service, *row in _cells(tree, "metrics-standby.csv"):
        standby.setdefault(service, {})[row[0]] = row
    out = []
    for service, errors, latency in _cells(tree, "services.csv"):
        rows = standby[service] | {row[0]: row for row in _cells(tree, f"metrics/{service}.csv")}
        minutes = sorted(rows)
        start = _epoch(minutes[0])
        bits = ["0"] * ((_epoch(minutes[-1]) - start) // 60 + 1)
        for minute, ppm, delay in rows.values():
            if int(ppm.replace(",", "")) > int(errors) or int(delay.replace(",", "")) > int(latency):
                bits[(_epoch(minute) - start) // 60] = "1"
        for match in EPISODE.finditer("".join(bits)):
            if match[0].count("1") >= 3:
                out.append(
                    Span(start + 60 * match.start(), service, start + 60 * match.end() - 60, match[0].count("1"))
                )
    return sorted(out)


def _causes(tree: Mapping[str, bytes], spans: list[Span]) -> list[int | None]:
    """The place of each span's cause. Spans are sorted, so the first that fits is the one."""
    upstream: dict[str, set[str]] = {}
    for service, other, kind in _cells(tree, "topology.csv"):
        if kind == "hard":
            upstream.setdefault(service, set()).add(other)
    return [
        next((i for i, f in enumerate(spans) if f.service in upstream.get(e.service, ()) and f.onset <= e.onset <= f.end), None)
        for e in spans
    ]  # fmt: skip


def _find(parent: list[int], at: int) -> int:
    while parent[at] != at:
        at = parent[at]
    return at


class _Clock:
    """The ERROR lines of one service, by true second."""

    def __init__(self, lines: list[dict[str, Any]]):
        beats = {_epoch(x["time"]) - _epoch(x["message"].split("=")[1]) for x in lines if x["level"] == "SYNC"}
        (self.offset,) = beats
        errors = [
            (_epoch(x["time"]) - self.offset, i, x["message"].rsplit("=", 1)[1])
            for i, x in enumerate(lines)
            if x["level"] == "ERROR"
        ]
        self.errors = sorted(errors)
        self.times = [e[0] for e in self.errors]

    def first(self, low: int, high: int) -> tuple[int, str] | None:
        at, stop = bisect_left(self.times, low), bisect_right(self.times, high)
        return (self.errors[at][0], self.errors[at][2]) if at < stop else None


def _verdict(tree: Mapping[str, bytes], change: Mapping[str, Any], end: int) -> dict[str, Any]:
    def key(text: str) -> tuple[int, ...]:
        return tuple(int(p) for p in text.split("."))

    name, old = change["service"], change["from"]
    checks = (
        ("consumer-needs-newer", any(p == name and key(v) > key(old) for _, p, v in _cells(tree, "requirements.csv"))),
        ("irreversible-migration", change["migration"] == "irreversible"),
        (
            "later-change",
            any(
                c["service"] == name and _epoch(change["time"]) < _epoch(c["time"]) <= end
                for c in _objects(tree, "changes.jsonl")
            ),
        ),
        ("version-not-kept", [name, old] not in _cells(tree, "registry.csv")),
    )
    reasons = [reason for reason, holds in checks if holds]
    return {"reasons": reasons, "safe": reasons == []}


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    spans = _spans(tree)
    causes = _causes(tree, spans)
    parent = [at if cause is None else cause for at, cause in enumerate(causes)]
    clocks = {s: _Clock(_objects(tree, f"logs/{s}.jsonl")) for s, _, _ in _cells(tree, "services.csv")}
    changes = sorted(_objects(tree, "changes.jsonl"), key=lambda c: c["time"], reverse=True)
    classes = {
        root: [at for at in range(len(spans)) if _find(parent, at) == root]
        for root in range(len(spans))
        if parent[root] == root
    }
    depth = [len(list(itertools.takewhile(lambda x: x is not None, _climb(causes, at)))) for at in range(len(spans))]
    incidents, events = [], []
    for nth, (root, members) in enumerate(classes.items(), 1):
        top, name, end = spans[root], f"I-{nth:02d}", max(spans[m].end for m in members)
        change = next(
            (c for c in changes if c["service"] == top.service and 0 <= top.onset - _epoch(c["time"]) <= 1800), None
        )
        fault = clocks[top.service].first(top.onset - 1800, top.onset)
        if change:
            trigger, rollback = {"kind": change["kind"], "reference": change["id"]}, _verdict(tree, change, end)
            events.append((change["time"], name, top.service, "change", change["id"]))
        else:
            trigger = {"kind": "fault", "reference": fault[1]} if fault else {"kind": "unknown", "reference": ""}
            rollback = {"reasons": ["no-change"], "safe": False}
        for span in (spans[m] for m in members):
            events += [
                (_stamp(span.onset), name, span.service, "onset", ""),
                (_stamp(span.end), name, span.service, "end", ""),
            ]
            if error := clocks[span.service].first(span.onset - 1800, span.end):
                events.append((_stamp(error[0]), name, span.service, "first-error", error[1]))
        incidents.append({
            "blast_radius": sorted({spans[m].service for m in members}), "degraded_minutes": sum(spans[m].bad for m in members),
            "depth": max(depth[m] for m in members), "end_utc": _stamp(end), "id": name, "onset_utc": _stamp(top.onset),
            "rollback": rollback, "root": top.service, "trigger": trigger,
        })  # fmt: skip
    return _written(tree, spans, causes, incidents, sorted(events), clocks)


def _climb(causes: list[int | None], at: int) -> Any:
    while True:
        at = causes[at]
        yield at
        if at is None:
            return


def _written(
    tree: Mapping[str, bytes],
    spans: list[Span],
    causes: list[int | None],
    incidents: list[dict[str, Any]],
    events: list[Any],
    clocks: Mapping[str, _Clock],
) -> dict[str, bytes]:
    everyone = sorted(s for i in incidents for s in i["blast_radius"])
    kinds = sorted(i["trigger"]["kind"] for i in incidents)
    report = {
        "case": json.loads(tree["input/case.json"])["case"],
        "clock_offsets": {s: c.offset for s, c in clocks.items()},
        "incidents": len(incidents),
        "most_affected": max(dict.fromkeys(everyone), key=everyone.count),
        "safe_rollbacks": [i["trigger"]["reference"] for i in incidents if i["rollback"]["safe"]],
        "triggers": {k: len(list(g)) for k, g in itertools.groupby(kinds)},
    }
    episodes = [
        (e.service, _stamp(e.onset), _stamp(e.end), e.bad, "" if c is None else spans[c].service)
        for e, c in zip(spans, causes, strict=True)
    ]
    tables = {
        "output/staging/episodes.csv": [("service", "onset_utc", "end_utc", "degraded_minutes", "cause"), *episodes],
        "output/timeline.csv": [("time_utc", "incident", "service", "event", "detail"), *events],
    }
    out = {}
    for path, rows in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        out[path] = text.getvalue().encode()
    out["output/incidents.json"] = json.dumps({"incidents": incidents}).encode()
    out["output/report.json"] = json.dumps(report).encode()
    return out
