"""Alternative solver: the partitions' pages are walked by hand, everything else is window functions in SQL."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import struct
from collections.abc import Iterator, Mapping

TABLES = """
CREATE TABLE event (event_id TEXT PRIMARY KEY, user_id TEXT, ts_ms INTEGER, type TEXT, value_cents INTEGER);
CREATE TABLE upload (path TEXT, line INTEGER, event_id TEXT, user_id TEXT, ts_ms INTEGER, type TEXT, value_cents INTEGER);
CREATE TABLE person (user_id TEXT PRIMARY KEY, country TEXT);
CREATE TABLE change (user_id TEXT, at TEXT, plan TEXT, UNIQUE (user_id, at, plan) ON CONFLICT IGNORE);
CREATE TABLE word (variant TEXT PRIMARY KEY, name TEXT);
CREATE TABLE legacy (user_id TEXT, feature TEXT, value TEXT);
CREATE TABLE rank (plan TEXT PRIMARY KEY, place INTEGER);
INSERT INTO rank VALUES ('free', 0), ('basic', 1), ('pro', 2), ('team', 3);
"""
JUDGED = """
CREATE TABLE judged AS
SELECT u.*, coalesce(w.name, type) AS kind, row_number() OVER (PARTITION BY path, event_id ORDER BY line) AS nth, p.user_id IS NOT NULL AS known
FROM upload u LEFT JOIN word w ON w.variant = u.type LEFT JOIN person p USING (user_id);
INSERT INTO event SELECT event_id, user_id, ts_ms, kind, value_cents FROM judged WHERE nth = 1 AND known;
"""
HISTORY = """
CREATE TABLE period AS
WITH step AS (SELECT *, lag(plan) OVER (PARTITION BY user_id ORDER BY at) AS before FROM change)
SELECT user_id, plan, at AS valid_from, lead(at, 1, '') OVER (PARTITION BY user_id ORDER BY at) AS valid_to, before,
 CAST(strftime('%s', at) AS INTEGER) * 1000 AS start_ms
FROM (SELECT * FROM step WHERE before IS NULL OR before <> plan) ORDER BY user_id, at;
CREATE INDEX period_user ON period(user_id, start_ms);
"""
SESSIONS = """
CREATE TABLE session AS
WITH gap AS (SELECT *, ts_ms - lag(ts_ms) OVER own > :gap IS NOT 0 AS fresh FROM event WINDOW own AS (PARTITION BY user_id ORDER BY ts_ms, event_id)),
 numbered AS (SELECT *, sum(fresh) OVER (PARTITION BY user_id ORDER BY ts_ms, event_id) AS number FROM gap)
SELECT user_id || '-' || number AS session_id, user_id, min(ts_ms) AS start_ms, max(ts_ms) AS end_ms, count(*) AS events,
 sum(type = 'purchase') AS purchases, sum(value_cents * ((type = 'purchase') - (type = 'refund'))) AS revenue_cents, number
FROM numbered GROUP BY user_id, number
"""
# Of several rows with max() SQLite takes the others' values from the row that holds it.
PLANNED = """
SELECT s.session_id, s.user_id, s.start_ms, end_ms, events, purchases, revenue_cents,
 (SELECT plan FROM period p WHERE p.user_id = s.user_id AND p.start_ms <= s.start_ms ORDER BY p.start_ms DESC LIMIT 1)
FROM session s ORDER BY s.user_id, number
"""
FEATURES = """
SELECT p.user_id, country, coalesce(e.n, 0), coalesce(s.n, 0), coalesce(e.days, 0), coalesce(s.purchases, 0), coalesce(s.revenue, 0),
 coalesce(s.length / (1000 * s.n), 0),
 coalesce((SELECT type FROM event x WHERE x.user_id = p.user_id GROUP BY type ORDER BY count(*) DESC, type LIMIT 1), 'none'),
 (SELECT plan FROM period q WHERE q.user_id = p.user_id AND q.start_ms < :high ORDER BY q.start_ms DESC LIMIT 1),
 (SELECT count(*) FROM period q JOIN rank a ON a.plan = q.plan JOIN rank b ON b.plan = q.before
  WHERE q.user_id = p.user_id AND q.start_ms >= :low AND q.start_ms < :high AND a.place > b.place),
 coalesce((:high - e.last) / 3600000, -1)
FROM person p
LEFT JOIN (SELECT user_id, count(*) AS n, count(DISTINCT ts_ms / 86400000) AS days, max(ts_ms) AS last FROM event GROUP BY 1) e USING (user_id)
LEFT JOIN (SELECT user_id, count(*) AS n, sum(purchases) AS purchases, sum(revenue_cents) AS revenue, sum(end_ms - start_ms) AS length
 FROM session GROUP BY 1) s USING (user_id)
ORDER BY p.user_id
"""
COLUMNS = "user_id country events sessions active_days purchases revenue_cents mean_session_seconds favourite_type plan upgrades recency_hours".split()


def _pages(data: bytes) -> Iterator[tuple[str, list]]:
    """The columns of a partition in their order: a thrift page header, then PLAIN values, until the footer."""
    kinds = ("text", "text", "int", "text", "int")
    at = 4
    for kind in kinds:
        numbers, at = _header(data, at)
        size, count = numbers[1], numbers[3]
        body, at = data[at : at + size], at + size
        if kind == "int":
            yield kind, list(struct.unpack(f"<{count}q", body))
            continue
        texts, here = [], 0
        while here < size:
            (length,) = struct.unpack_from("<I", body, here)
            texts.append(body[here + 4 : here + 4 + length].decode())
            here += 4 + length
        yield kind, texts


def _header(data: bytes, at: int) -> tuple[list[int], int]:
    """The numbers of a page header: type, two sizes, count of values, encodings."""
    numbers, open_structs = [], 1
    while open_structs:
        tag, at = data[at], at + 1
        if tag == 0:
            open_structs -= 1
        elif tag & 15 == 12:
            open_structs += 1
        else:
            value = shift = 0
            while True:
                byte, at = data[at], at + 1
                value, shift = value | (byte & 127) << shift, shift + 7
                if byte < 128:
                    break
            numbers.append(value >> 1)
    return numbers, at


def _lines(data: bytes) -> list[list[str]]:
    """Cells without quotes: none of these files needs them."""
    head, *rest = data.decode().splitlines()
    sign = re.search(r"[^\w ]", head)[0]
    return [line.split(sign) for line in (head, *rest)]


def _uploads(base: sqlite3.Connection, tree: Mapping[str, bytes], headings: dict[str, str]) -> list[str]:
    paths = []
    for batch, _, ahead in _lines(tree["input/uploads/clock_checks.csv"])[1:]:
        path = f"input/uploads/{batch}.csv"
        head, *rows = _lines(tree[path])
        at = [
            [headings.get(name, name) for name in head].index(c)
            for c in ("event_id", "user_id", "device_ts", "type", "value_cents")
        ]
        for line, cells in enumerate(rows):
            event, user, clock, kind, value = (cells[i] for i in at)
            moment = round(float(clock) * 1000) if "." in clock else int(clock)
            base.execute(
                "INSERT INTO upload VALUES (?,?,?,?,?,?,?)",
                (path[6:], line, event, user, moment - 1000 * int(ahead), kind, int(value)),
            )
        paths.append(path[6:])
    return sorted(paths)


def _partitions(base: sqlite3.Connection, tree: Mapping[str, bytes], listed: list[dict]) -> list[dict]:
    notes = []
    for entry in listed:
        data, good = tree["input/" + entry["path"]], entry["sha256"]
        if hashlib.sha256(data).hexdigest() == good:
            rows, source = list(zip(*(values for _, values in _pages(data)), strict=True)), "parquet"
        else:
            spool = tree[f"input/spool/{entry['path'].split('/')[1].split('.')[0]}.jsonl"].decode().split("\n")
            rows = [
                tuple(json.loads(line)[c] for c in ("event_id", "user_id", "ts_ms", "type", "value_cents"))
                for line in spool
                if line
            ]
            source = "spool"
        base.executemany("INSERT INTO event VALUES (?,?,?,?,?)", rows)
        notes.append({"path": entry["path"], "source": source, "rows": len(rows)})
    return notes


def _csv(header: list[str], rows: list[tuple]) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in [header, *rows]).encode()


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The complete outputs."""
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.executescript(TABLES + "BEGIN;")
    manifest, words = json.loads(tree["input/manifest.json"]), json.loads(tree["input/reference/dictionary.json"])
    base.executemany("INSERT INTO word VALUES (?, ?)", [(v, n) for n, vs in words["event_types"].items() for v in vs])
    base.executemany("INSERT INTO person VALUES (?, ?)", [row[:2] for row in _lines(tree["input/users/users.csv"])[1:]])
    for user, when, plan in _lines(tree["input/users/plan_changes.csv"])[1:]:
        day_first = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4}) (.*)", when)
        base.execute(
            "INSERT INTO change VALUES (?, ?, ?)",
            (user, "{2}-{1}-{0} {3}".format(*day_first.groups()) if day_first else when, plan),
        )
    partitions = _partitions(base, tree, manifest["partitions"])
    paths = _uploads(base, tree, {v: n for n, vs in words["upload_headings"].items() for v in vs})
    base.executescript(JUDGED + HISTORY)
    base.execute(SESSIONS, {"gap": manifest["gap_minutes"] * 60_000})
    days = [entry["path"][7:17] for entry in manifest["partitions"]]
    seconds = lambda day: base.execute("SELECT CAST(strftime('%s', ?) AS INTEGER)", (day,)).fetchone()[0]  # noqa: E731
    features = base.execute(
        FEATURES, {"low": seconds(days[0]) * 1000, "high": (seconds(days[-1]) + 86400) * 1000}
    ).fetchall()
    head, *old = _lines(tree["input/legacy/features.csv"])
    base.executemany(
        "INSERT INTO legacy VALUES (?, ?, ?)",
        [(row[0], name, cell) for row in old for name, cell in zip(head, row, strict=True)],
    )
    base.execute("CREATE TABLE computed (user_id TEXT, feature TEXT, value TEXT)")
    base.executemany(
        "INSERT INTO computed VALUES (?, ?, ?)",
        [(row[0], name, str(cell)) for row in features for name, cell in zip(COLUMNS, row, strict=True)],
    )
    wrong = base.execute(
        "SELECT user_id, feature, l.value, c.value FROM computed c JOIN legacy l USING (user_id, feature) WHERE l.value <> c.value ORDER BY 1, 2"
    ).fetchall()
    notes = {
        row[0]: row
        for row in base.execute(
            "SELECT path, count(*), sum(nth > 1), sum(nth = 1 AND NOT known), sum(nth = 1 AND known) FROM judged GROUP BY path"
        )
    }
    names = ("path", "rows_read", "duplicates", "unknown_users", "kept")
    audit = {
        "partitions": partitions, "uploads": [dict(zip(names, notes[p], strict=True)) for p in paths],
        "legacy_mismatches": [dict(zip(("user_id", "feature", "legacy", "computed"), row, strict=True)) for row in wrong],
        "features_wrong": {name: sum(row[1] == name for row in wrong) for name in COLUMNS if any(row[1] == name for row in wrong)},
    }  # fmt: skip
    fields = ("session_id", "user_id", "start_ms", "end_ms", "events", "purchases", "revenue_cents", "plan")
    return {
        "output/staging/events.csv": _csv(["event_id", "user_id", "ts_ms", "type", "value_cents"], base.execute("SELECT * FROM event ORDER BY ts_ms, event_id").fetchall()),
        "output/plan_history.csv": _csv(["user_id", "plan", "valid_from", "valid_to"], base.execute("SELECT user_id, plan, valid_from, valid_to FROM period ORDER BY 1, 3").fetchall()),
        "output/sessions.jsonl": "".join(json.dumps(dict(zip(fields, row, strict=True))) + "\n" for row in base.execute(PLANNED)).encode(),
        "output/features.csv": _csv(COLUMNS, features),
        "output/audit.json": json.dumps(audit).encode(),
    }  # fmt: skip
