"""Follows the procedure step by step over lists of rows."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

FORM = "%Y-%m-%dT%H:%M:%SZ"
HALF_HOUR = timedelta(minutes=30)
Row = dict[str, Any]


def _rows(tree: Mapping[str, bytes], path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tree[f"input/{path}"].decode())))


def _time(text: str) -> datetime:
    return datetime.strptime(text, FORM)


def _metrics(tree: Mapping[str, bytes]) -> dict[str, dict[datetime, tuple[int, int]]]:
    """service -> minute -> values, the primary's word over the standby's."""
    out: dict[str, dict[datetime, tuple[int, int]]] = defaultdict(dict)
    sources = [(row["service"], row) for row in _rows(tree, "metrics-standby.csv")]
    for limits in _rows(tree, "services.csv"):
        sources += [(limits["service"], row) for row in _rows(tree, f"metrics/{limits['service']}.csv")]
    for service, row in sources:
        values = (int(row[c].replace(",", "")) for c in ("error_ppm", "latency_ms"))
        out[service][_time(row["minute"])] = tuple(values)
    return out


def _episodes(tree: Mapping[str, bytes], metrics: Mapping[str, Mapping[datetime, tuple[int, int]]]) -> list[Row]:
    out = []
    for limits in _rows(tree, "services.csv"):
        bounds = int(limits["error_limit_ppm"]), int(limits["latency_limit_ms"])
        series = metrics[limits["service"]]
        group: list[datetime] = []
        groups = [group]
        for minute in sorted(m for m, v in series.items() if v[0] > bounds[0] or v[1] > bounds[1]):
            if group and minute - group[-1] > timedelta(minutes=3):
                group = []
                groups.append(group)
            group.append(minute)
        out += [
            {"service": limits["service"], "onset": g[0], "end": g[-1], "bad": len(g)} for g in groups if len(g) >= 3
        ]
    return sorted(out, key=lambda e: (e["onset"], e["service"]))


def _logs(tree: Mapping[str, bytes]) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Error lines in true time, and every log's offset."""
    errors, offsets = {}, {}
    for limits in _rows(tree, "services.csv"):
        name = limits["service"]
        lines = [json.loads(x) for x in tree[f"input/logs/{name}.jsonl"].splitlines()]
        sync = next(x for x in lines if x["level"] == "SYNC")
        offset = _time(sync["time"]) - _time(sync["message"].removeprefix("reference="))
        offsets[name] = round(offset.total_seconds())
        errors[name] = [
            {"time": _time(x["time"]) - offset, "code": x["message"].partition("code=")[2]}
            for x in lines
            if x["level"] == "ERROR"
        ]
    return errors, offsets


def _chain(tree: Mapping[str, bytes], episodes: list[Row]) -> list[list[Row]]:
    """Gives every episode its cause, depth and root; the incidents in order of their roots."""
    hard = {(r["service"], r["depends_on"]) for r in _rows(tree, "topology.csv") if r["kind"] == "hard"}
    for one in episodes:
        fitting = [
            f for f in episodes if (one["service"], f["service"]) in hard and f["onset"] <= one["onset"] <= f["end"]
        ]
        one["cause"] = min(fitting, key=lambda f: (f["onset"], f["service"])) if fitting else None
    incidents = []
    for root in (e for e in episodes if e["cause"] is None):
        root["depth"], members, layer = 0, [root], [root]
        while layer:
            layer = [e for e in episodes if any(e["cause"] is above for above in layer)]
            for one in layer:
                one["depth"] = one["cause"]["depth"] + 1
            members += layer
        incidents.append(members)
    return incidents


def _trigger(tree: Mapping[str, bytes], root: Row, errors: Mapping[str, list[Row]]) -> tuple[Row, Row | None]:
    start = root["onset"] - HALF_HOUR
    changes = [json.loads(x) for x in tree["input/changes.jsonl"].splitlines()]
    near = [c for c in changes if c["service"] == root["service"] and start <= _time(c["time"]) <= root["onset"]]
    if near:
        last = max(near, key=lambda c: c["time"])
        return {"kind": last["kind"], "reference": last["id"]}, last
    faults = [x for x in errors[root["service"]] if start <= x["time"] <= root["onset"]]
    if faults:
        return {"kind": "fault", "reference": min(faults, key=lambda x: x["time"])["code"]}, None
    return {"kind": "unknown", "reference": ""}, None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def _rollback(tree: Mapping[str, bytes], change: Row | None, end: datetime) -> Row:
    if change is None:
        return {"safe": False, "reasons": ["no-change"]}
    name, before, reasons = change["service"], change["from"], []
    if not any((r["service"], r["version"]) == (name, before) for r in _rows(tree, "registry.csv")):
        reasons.append("version-not-kept")
    if change["migration"] == "irreversible":
        reasons.append("irreversible-migration")
    for other in map(json.loads, tree["input/changes.jsonl"].splitlines()):
        if other["service"] == name and change["time"] < other["time"] <= end.strftime(FORM):
            reasons.append("later-change")
    for need in _rows(tree, "requirements.csv"):
        if need["provider"] == name and _numbers(need["lowest_version"]) > _numbers(before):
            reasons.append("consumer-needs-newer")
    return {"safe": not reasons, "reasons": sorted(set(reasons))}


def _timeline(
    incident: Row, members: list[Row], errors: Mapping[str, list[Row]], change: Row | None
) -> Iterator[tuple[str, ...]]:
    if change:
        yield change["time"], incident["id"], change["service"], "change", change["id"]
    for e in members:
        yield e["onset"].strftime(FORM), incident["id"], e["service"], "onset", ""
        yield e["end"].strftime(FORM), incident["id"], e["service"], "end", ""
        near = [x for x in errors[e["service"]] if e["onset"] - HALF_HOUR <= x["time"] <= e["end"]]
        if near:
            first = min(near, key=lambda x: x["time"])
            yield first["time"].strftime(FORM), incident["id"], e["service"], "first-error", first["code"]


def _csv(header: str, rows: list[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *rows])
    return out.getvalue().encode()


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    metrics = _metrics(tree)
    yield "repair-metrics", dict(out)
    episodes = _episodes(tree, metrics)
    header = "service,onset_utc,end_utc,degraded_minutes,cause"
    rows = [[e["service"], e["onset"].strftime(FORM), e["end"].strftime(FORM), e["bad"], ""] for e in episodes]
    out["output/staging/episodes.csv"] = _csv(header, rows)
    yield "find-episodes", dict(out)
    errors, offsets = _logs(tree)
    yield "correct-clocks", dict(out)
    groups = _chain(tree, episodes)
    for row, e in zip(rows, episodes, strict=True):
        row[4] = e["cause"]["service"] if e["cause"] else ""
    out["output/staging/episodes.csv"] = _csv(header, rows)
    yield "chain-causes", dict(out)
    found, incidents, timeline = [_trigger(tree, g[0], errors) for g in groups], [], []
    for nth, (members, (trigger, _)) in enumerate(zip(groups, found, strict=True), 1):
        incidents.append({
            "id": f"I-{nth:02d}", "root": members[0]["service"], "onset_utc": members[0]["onset"].strftime(FORM),
            "end_utc": max(e["end"] for e in members).strftime(FORM), "trigger": trigger,
            "blast_radius": sorted({e["service"] for e in members}), "depth": max(e["depth"] for e in members),
            "degraded_minutes": sum(e["bad"] for e in members),
        })  # fmt: skip
    out["output/incidents.json"] = json.dumps({"incidents": incidents}, indent=1).encode()
    yield "name-triggers", dict(out)
    for incident, (_, change) in zip(incidents, found, strict=True):
        incident["rollback"] = _rollback(tree, change, _time(incident["end_utc"]))
    out["output/incidents.json"] = json.dumps({"incidents": incidents}, indent=1).encode()
    yield "decide-rollbacks", dict(out)
    for incident, members, (_, change) in zip(incidents, groups, found, strict=True):
        timeline += _timeline(incident, members, errors, change)
    out["output/timeline.csv"] = _csv("time_utc,incident,service,event,detail", sorted(timeline))
    yield "write-timeline", dict(out)
    touched = Counter(s for i in incidents for s in i["blast_radius"])
    report = {
        "case": json.loads(tree["input/case.json"])["case"], "clock_offsets": offsets, "incidents": len(incidents),
        "triggers": Counter(i["trigger"]["kind"] for i in incidents),
        "safe_rollbacks": [i["trigger"]["reference"] for i in incidents if i["rollback"]["safe"]],
        "most_affected": min(touched, key=lambda s: (-touched[s], s)),
    }  # fmt: skip
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
