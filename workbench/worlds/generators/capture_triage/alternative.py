"""Solves the case in SQL: frames, questions and sign-ins become tables, the rules become queries."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sqlite3
import struct
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import pcap

SCHEMA = """
CREATE TABLE frame(id INTEGER PRIMARY KEY, at INTEGER, raw BLOB, client TEXT, port INTEGER, server TEXT, up INTEGER, seq INTEGER, flags INTEGER, body BLOB);
CREATE TABLE log(name TEXT, id INTEGER, at INTEGER, a TEXT, b TEXT, c TEXT, sync INTEGER);
CREATE TABLE site(domain TEXT, address TEXT, ok TEXT);
CREATE TABLE indicator(domain TEXT, added TEXT, retired TEXT);
CREATE TABLE session(id INTEGER PRIMARY KEY, at INTEGER, client TEXT, name TEXT, server TEXT, domain TEXT, up INTEGER, down INTEGER, status TEXT, post INTEGER, body INTEGER);
"""
FINDINGS = """
WITH day AS (SELECT date(min(at) / 1000000, 'unixepoch') d FROM session),
risky AS (SELECT * FROM session WHERE domain NOT IN (SELECT domain FROM site WHERE ok = 'yes')),
steps AS (SELECT client, domain, at, at - lag(at) OVER (PARTITION BY client, domain ORDER BY at) gap FROM risky),
guess AS (SELECT s.a client, s.b subject, min(f.at) first, s.at last, count(*) n FROM log s JOIN log f ON f.a = s.a AND f.b = s.b AND f.c = 'failure'
  AND f.at BETWEEN s.at - 600 AND s.at - 1 AND f.name = 'auth' WHERE s.name = 'auth' AND s.c = 'success' GROUP BY s.id HAVING n >= 5)
SELECT 'indicator-contact' kind, client, domain subject, min(at) / 1000000 first, max(at) / 1000000 last, count(*) n FROM session, day
  WHERE domain IN (SELECT domain FROM indicator WHERE added <= d AND (retired = '' OR retired > d)) GROUP BY client, domain
UNION ALL SELECT 'beacon', client, domain, min(at) / 1000000, max(at) / 1000000, count(*) FROM steps GROUP BY client, domain
  HAVING count(*) >= 4 AND max(gap) - min(gap) <= 5000000
UNION ALL SELECT 'exfiltration', client, domain, min(at) / 1000000, max(at) / 1000000, count(*) FROM risky WHERE post AND status = '201'
  GROUP BY client, domain HAVING sum(body) >= 2000
UNION ALL SELECT 'credential-guessing', client, subject, first, last, n FROM guess
ORDER BY first, kind, client, subject
"""
DOMAIN = "SELECT b FROM log WHERE name = 'dns' AND a = ? AND c = ? AND at * 1000000 <= ? ORDER BY at DESC LIMIT 1"


def _rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))[1:]


def _frames(tree: Mapping[str, bytes], db: sqlite3.Connection) -> int:
    known, repeated = set(), 0
    for path in sorted(p for p in tree if p.endswith(".pcap")):
        for at, raw in pcap.split(tree[path]):
            if raw in known:
                repeated += 1
                continue
            known.add(raw)
            if raw[23] != pcap.TCP:
                continue
            size = struct.unpack_from(">H", raw, 16)[0]
            sport, dport, seq, _, head, flags = struct.unpack_from(">HHIIBB", raw, 34)
            source, target = (".".join(str(b) for b in raw[i : i + 4]) for i in (26, 30))
            body = raw[34 + (head >> 4) * 4 : 14 + size]
            ends = (source, sport, target, 1) if dport == 80 else (target, dport, source, 0)
            db.execute("INSERT INTO frame VALUES (NULL,?,?,?,?,?,?,?,?,?)", (at, raw, *ends, seq, flags, body))
    return repeated


def _logs(tree: Mapping[str, bytes], db: sqlite3.Connection) -> dict[str, int]:
    offsets = {}
    for name in ("dns", "auth"):
        for at, row in enumerate(_rows(tree[f"input/logs/{name}.csv"])):
            db.execute("INSERT INTO log VALUES (?,?,unixepoch(?),?,?,?,unixepoch(nullif(?,'')))", (name, at, *row))
        (offsets[name],) = db.execute(
            "SELECT min(at - sync) FROM log WHERE name = ? AND sync IS NOT NULL", (name,)
        ).fetchone()
        db.execute("DELETE FROM log WHERE name = ? AND sync IS NOT NULL", (name,))
        db.execute("UPDATE log SET at = at - ? WHERE name = ?", (offsets[name], name))
    return offsets


def _direction(db: sqlite3.Connection, client: str, port: int, up: int) -> tuple[bytes, bool]:
    """A byte string filled at each frame's place; incomplete when a byte was never filled."""
    query = "SELECT seq, flags, body FROM frame WHERE client = ? AND port = ? AND up = ?"
    frames = db.execute(query, (client, port, up)).fetchall()
    base = next(seq for seq, flags, _ in frames if flags & pcap.SYN) + 1
    end = next(seq for seq, flags, _ in frames if flags & pcap.FIN)
    data, filled = bytearray(end - base), bytearray(end - base)
    for seq, _, body in frames:
        if body:
            data[seq - base : seq - base + len(body)] = body
            filled[seq - base : seq - base + len(body)] = b"\1" * len(body)
    return bytes(data), 0 not in filled


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(SCHEMA)
    repeated, offsets = _frames(tree, db), _logs(tree, db)
    for table in ("site", "indicator"):
        db.executemany(f"INSERT INTO {table} VALUES (?,?,?)", _rows(tree[f"input/reference/{table}s.csv"]))
    uploads = {}
    for line in tree["input/logs/uploads.jsonl"].decode().splitlines():
        record = json.loads(line)
        uploads[f"{record['client']}:{record['client_port']}"] = record["body"]
    db.execute("CREATE INDEX by_client ON frame(client, port, up)")
    gaps, parts, key, title = [], {}, "", ""
    query = "SELECT min(at), client, port, server FROM frame GROUP BY client, port ORDER BY 1, 2"
    for at, client, port, server in db.execute(query).fetchall():
        name = f"{client}:{port}"
        up, whole = _direction(db, client, port, 1)
        down, _ = _direction(db, client, port, 0)
        cut = up.index(b"\r\n\r\n") + 4
        if not whole:
            gaps.append(name)
            up = up[:cut] + uploads[name].encode()
        host = re.search(rb"\r\nHost: (\S+)\r\n", up[:cut])
        domain = host[1].decode() if host else db.execute(DOMAIN, (client, server, at)).fetchone()[0]
        status = down[9:12].decode()
        values = (at, client, name, server, domain, len(up), len(down), status, up.startswith(b"POST "), len(up) - cut)
        db.execute("INSERT INTO session VALUES (NULL,?,?,?,?,?,?,?,?,?,?)", values)
        part = re.match(rb"POST \S*/(\S+) [\s\S]*X-Part: (\d+)/", up[:cut])
        if part and status == "201":
            title, parts[int(part[2])] = part[1].decode(), base64.b64decode(up[cut:])
        if found := re.search(rb"key=([0-9a-f]+)", down):
            key = found[1].decode()
    return _outputs(tree, db, repeated, offsets, gaps, title, _open(parts, key))


def _open(parts: Mapping[int, bytes], key: str) -> bytes:
    sealed = b"".join(part for _, part in sorted(parts.items()))
    pad = (bytes.fromhex(key) * (len(sealed) // (len(key) // 2) + 1))[: len(sealed)]
    return (int.from_bytes(sealed, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(sealed), "big")


def _outputs(
    tree: Mapping[str, bytes],
    db: sqlite3.Connection,
    repeated: int,
    offsets: dict[str, int],
    gaps: list[str],
    title: str,
    plain: bytes,
) -> dict[str, bytes]:
    clock = "strftime('%Y-%m-%dT%H:%M:%SZ', {}, 'unixepoch')"
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["session", "server_ip", "domain", "start_utc", "bytes_up", "bytes_down", "status"])
    writer.writerows(
        db.execute(
            f"SELECT name, server, domain, {clock.format('at / 1000000')}, up, down, status FROM session ORDER BY id"
        )
    )
    findings, events, kinds = [], [], {}
    shown = f"SELECT kind, client, subject, {clock.format('first')}, {clock.format('last')}, n FROM ({FINDINGS})"
    for nth, row in enumerate(db.execute(shown), 1):
        finding: dict[str, Any] = {"id": f"F-{nth:02d}"}
        finding |= dict(zip(("kind", "client", "subject", "first_utc", "last_utc", "count"), row, strict=True))
        findings.append(finding)
        events += [(finding[f"{e}_utc"], finding["id"], e) for e in ("first", "last")]
        kinds[row[0]] = kinds.get(row[0], 0) + 1
    report = {
        "artifact": {"name": title, "bytes": len(plain), "sha256": hashlib.sha256(plain).hexdigest(), "md5": hashlib.md5(plain, usedforsecurity=False).hexdigest()},
        "case": json.loads(tree["input/case.json"])["case"], "clock_offsets": offsets, "duplicate_packets": repeated,
        "findings_by_kind": kinds, "incomplete_streams": gaps,
    }  # fmt: skip
    timeline = [dict(zip(("time_utc", "finding", "event"), e, strict=True)) for e in sorted(events)]
    return {
        "output/staging/sessions.csv": table.getvalue().encode(),
        "output/findings.json": json.dumps({"findings": findings}).encode(),
        "output/timeline.json": json.dumps({"events": timeline}).encode(),
        "output/artifact.bin": plain,
        "output/report.json": json.dumps(report).encode(),
    }
