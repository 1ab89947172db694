"""Solves the case by walking: packets into streams, rows into lists, findings one rule at a time."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from workbench.worlds.formats import pcap

FORM = "%Y-%m-%dT%H:%M:%SZ"


def _table(tree: Mapping[str, bytes], path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tree[path].decode())))


def _merge(tree: Mapping[str, bytes]) -> tuple[dict[tuple[str, int], list[pcap.Packet]], int]:
    """Packets by connection, without duplicates, and how many of those there were."""
    seen: set[bytes] = set()
    streams: dict[tuple[str, int], list[pcap.Packet]] = defaultdict(list)
    twice = 0
    for path in sorted(p for p in tree if p.endswith(".pcap")):
        for time_us, frame in pcap.split(tree[path]):
            packet = pcap.parse(time_us, frame)
            if frame in seen:
                twice += 1
            elif packet and packet.protocol == pcap.TCP:
                client = packet.target_port == 80
                ends = (packet.source, packet.source_port) if client else (packet.target, packet.target_port)
                streams[ends].append(packet)
            seen.add(frame)
    return streams, twice


def _stream(packets: list[pcap.Packet]) -> tuple[bytes, bool]:
    """One direction's payload in order, and whether something is missing."""
    packets = sorted(packets, key=lambda p: p.seq)
    expected, data, whole = packets[0].seq + 1, b"", True
    for packet in packets[1:]:
        whole = whole and packet.seq == expected
        data += packet.payload
        expected = packet.seq + len(packet.payload)
    return data, whole


def _reassemble(
    tree: Mapping[str, bytes], streams: Mapping[tuple[str, int], list[pcap.Packet]]
) -> list[dict[str, Any]]:
    kept = {
        (r["client"], r["client_port"]): r["body"]
        for r in map(json.loads, tree["input/logs/uploads.jsonl"].splitlines())
    }
    out = []
    for (client, port), packets in streams.items():
        up, whole = _stream([p for p in packets if p.source == client])
        down, _ = _stream([p for p in packets if p.source != client])
        if not whole:
            up = up.split(b"\r\n\r\n")[0] + b"\r\n\r\n" + kept[client, port].encode()
        out.append({
            "client": client, "port": port, "server": next(p.target for p in packets if p.source == client),
            "time": min(p.time_us for p in packets), "up": up.decode(), "down": down.decode(), "whole": whole,
        })  # fmt: skip
    return sorted(out, key=lambda s: (s["time"], s["client"]))


def _aligned(tree: Mapping[str, bytes], path: str) -> tuple[list[dict[str, Any]], int]:
    rows = _table(tree, path)
    sync = next(r for r in rows if r["reference_time"])
    offset = datetime.strptime(sync["time"], FORM) - datetime.strptime(sync["reference_time"], FORM)
    true = [r | {"time": datetime.strptime(r["time"], FORM) - offset} for r in rows if not r["reference_time"]]
    return true, int(offset.total_seconds())


def _date(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).replace(tzinfo=None)


def _domain(session: Mapping[str, Any], dns: list[dict[str, Any]]) -> str:
    for line in session["up"].split("\r\n"):
        if line.startswith("Host: "):
            return line.removeprefix("Host: ")
    asked = [r for r in dns if r["client"] == session["client"] and r["answer"] == session["server"]]
    return max((r for r in asked if r["time"] <= _date(session["time"])), key=lambda r: r["time"])["query"]


def _by_pair(
    tree: Mapping[str, bytes], sessions: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str, list[datetime], int]]:
    allowed = {r["domain"] for r in _table(tree, "input/reference/sites.csv") if r["upload_allowed"] == "yes"}
    day = _date(sessions[0]["time"]).strftime("%Y-%m-%d")
    listed = {
        r["domain"] for r in _table(tree, "input/reference/indicators.csv")
        if r["added_on"] <= day and (not r["retired_on"] or r["retired_on"] > day)
    }  # fmt: skip
    pairs = defaultdict(list)
    for s in sessions:
        pairs[s["client"], s["domain"]].append(s)
    for (client, domain), found in pairs.items():
        times = [_date(s["time"]) for s in found]
        if domain in listed:
            yield "indicator-contact", client, domain, times, len(found)
        if domain in allowed:
            continue
        gaps = [b["time"] - a["time"] for a, b in itertools.pairwise(found)]
        if len(found) >= 4 and max(gaps) - min(gaps) <= 5_000_000:
            yield "beacon", client, domain, times, len(found)
        sent = [s for s in found if s["up"].startswith("POST ") and s["down"].split(" ")[1] == "201"]
        if sum(len(s["up"].partition("\r\n\r\n")[2]) for s in sent) >= 2000:
            yield "exfiltration", client, domain, [_date(s["time"]) for s in sent], len(sent)


def _guesses(auth: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, list[datetime], int]]:
    for row in auth:
        if row["result"] == "success":
            early = row["time"] - timedelta(seconds=600)
            fails = [
                r["time"] for r in auth
                if (r["source"], r["user"], r["result"]) == (row["source"], row["user"], "failure") and early <= r["time"] < row["time"]
            ]  # fmt: skip
            if len(fails) >= 5:
                yield "credential-guessing", row["source"], row["user"], [min(fails), row["time"]], len(fails)


def _artifact(sessions: list[dict[str, Any]]) -> tuple[str, bytes]:
    key = next(s["down"].partition("key=")[2] for s in sessions if "key=" in s["down"])
    parts, name = {}, ""
    for s in sessions:
        head, _, body = s["up"].partition("\r\n\r\n")
        if "X-Part: " in head and s["down"].split(" ")[1] == "201":
            parts[int(head.partition("X-Part: ")[2].partition("/")[0])] = base64.b64decode(body)
            name = head.split(" ")[1].rpartition("/")[2]
    sealed, pad = b"".join(parts[i] for i in sorted(parts)), bytes.fromhex(key)
    return name, bytes(b ^ pad[i % len(pad)] for i, b in enumerate(sealed))


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    streams, twice = _merge(tree)
    yield "merge-captures", dict(out)
    sessions = _reassemble(tree, streams)
    yield "reassemble", dict(out)
    (dns, dns_off), (auth, auth_off) = (_aligned(tree, f"input/logs/{n}.csv") for n in ("dns", "auth"))
    yield "correct-clocks", dict(out)
    lines = ["session,server_ip,domain,start_utc,bytes_up,bytes_down,status"]
    for s in sessions:
        s["domain"] = _domain(s, dns)
        lines.append(
            f"{s['client']}:{s['port']},{s['server']},{s['domain']},{_date(s['time']).strftime(FORM)},{len(s['up'])},{len(s['down'])},{s['down'].split(' ')[1]}"
        )
    out["output/staging/sessions.csv"] = ("\n".join(lines) + "\n").encode()
    yield "attribute-sessions", dict(out)
    rows = [
        {"kind": k, "client": c, "subject": d, "first_utc": t[0].strftime(FORM), "last_utc": t[-1].strftime(FORM), "count": n}
        for k, c, d, t, n in (*_by_pair(tree, sessions), *_guesses(auth))
    ]  # fmt: skip
    rows.sort(key=lambda r: (r["first_utc"], r["kind"], r["client"], r["subject"]))
    findings = [{"id": f"F-{i:02d}", **r} for i, r in enumerate(rows, 1)]
    out["output/findings.json"] = _json({"findings": findings})
    yield "detect", dict(out)
    events = sorted((f[e + "_utc"], f["id"], e) for f in findings for e in ("first", "last"))
    out["output/timeline.json"] = _json({"events": [{"time_utc": t, "finding": i, "event": e} for t, i, e in events]})
    yield "order-events", dict(out)
    name, plain = _artifact(sessions)
    out["output/artifact.bin"] = plain
    yield "decrypt", dict(out)
    hashes = {h: hashlib.new(h, plain, usedforsecurity=False).hexdigest() for h in ("sha256", "md5")}
    out["output/report.json"] = _json({
        "case": json.loads(tree["input/case.json"])["case"],
        "clock_offsets": {"dns": dns_off, "auth": auth_off},
        "duplicate_packets": twice,
        "incomplete_streams": [f"{s['client']}:{s['port']}" for s in sessions if not s["whole"]],
        "artifact": {"name": name, "bytes": len(plain), **hashes},
        "findings_by_kind": dict(Counter(f["kind"] for f in findings)),
    })  # fmt: skip
    yield "report", dict(out)
