"""Reference solver: Parquet by the library's reader, then one pass per stage over sorted lists."""

from __future__ import annotations

import bisect
import csv
import datetime
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from workbench.worlds.formats import parquet_reader

DAY = 86_400_000
ORDER = ["free", "basic", "pro", "team"]
FEATURES = "user_id country events sessions active_days purchases revenue_cents mean_session_seconds favourite_type plan upgrades recency_hours".split()


def _table(data: bytes) -> list[dict[str, str]]:
    source = data.decode("utf-8-sig")
    header = source.split("\n", 1)[0]
    delimiter = max(",;|\t", key=header.count)
    return list(csv.DictReader(io.StringIO(source, newline=""), delimiter=delimiter))


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def _moment(text: str) -> str:
    """YYYY-MM-DD HH:MM:SS of a time that may be written day first."""
    day, clock = text.split(" ")
    return f"{'-'.join(reversed(day.split('.')))} {clock}" if "." in day else text


def _ms(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text + "+00:00").timestamp()) * 1000


def _partitions(tree: Mapping[str, bytes], listed: list[dict]) -> tuple[list[tuple], list[dict]]:
    events, notes = [], []
    for entry in listed:
        data = tree["input/" + entry["path"]]
        if hashlib.sha256(data).hexdigest() == entry["sha256"]:
            rows, source = parquet_reader.read(data)[1], "parquet"
        else:
            spool = tree["input/spool/" + entry["path"][7:17] + ".jsonl"].decode().splitlines()
            rows, source = [tuple(json.loads(line).values()) for line in spool], "spool"
        events += rows
        notes.append({"path": entry["path"], "source": source, "rows": len(rows)})
    return events, notes


def _uploads(tree: Mapping[str, bytes], users: set[str], words: dict) -> tuple[list[tuple], list[dict]]:
    kinds = {variant: name for name, variants in words["event_types"].items() for variant in variants}
    columns = {variant: name for name, variants in words["upload_headings"].items() for variant in variants}
    events, notes = [], []
    for check in sorted(_table(tree["input/uploads/clock_checks.csv"]), key=lambda c: c["batch"]):
        path, ahead = f"input/uploads/{check['batch']}.csv", int(check["device_minus_server_seconds"]) * 1000
        rows = [{columns.get(k, k): v for k, v in row.items()} for row in _table(tree[path])]
        seen: set[str] = set()
        note = {"path": path[6:], "rows_read": len(rows), "duplicates": 0, "unknown_users": 0, "kept": 0}
        for row in rows:
            if row["event_id"] in seen:
                note["duplicates"] += 1
                continue
            seen.add(row["event_id"])
            if row["user_id"] not in users:
                note["unknown_users"] += 1
                continue
            whole, point, part = row["device_ts"].partition(".")
            at = int(whole) * 1000 + int(part.ljust(3, "0")) if point else int(whole)
            events.append(
                (
                    row["event_id"],
                    row["user_id"],
                    at - ahead,
                    kinds.get(row["type"], row["type"]),
                    int(row["value_cents"]),
                )
            )
            note["kept"] += 1
        notes.append(note)
    return events, notes


def _history(log: list[dict[str, str]]) -> list[list[str]]:
    periods: list[list[str]] = []
    for user, when, plan in sorted({(r["user_id"], _moment(r["changed_at"]), r["plan"]) for r in log}):
        last = periods[-1] if periods and periods[-1][0] == user else None
        if last and last[1] == plan:
            continue
        if last:
            last[3] = when
        periods.append([user, plan, when, ""])
    return periods


class Plans:
    """The plan of a user at a time."""

    def __init__(self, periods: list[list[str]]):
        self.starts: dict[str, list[int]] = defaultdict(list)
        self.names: dict[str, list[str]] = defaultdict(list)
        for user, plan, start, _ in periods:
            self.starts[user].append(_ms(start))
            self.names[user].append(plan)

    def at(self, user: str, moment: int) -> str:
        return self.names[user][bisect.bisect_right(self.starts[user], moment) - 1]

    def upgrades(self, user: str, low: int, high: int) -> int:
        names, starts = self.names[user], self.starts[user]
        return sum(
            low <= starts[i] < high and ORDER.index(names[i]) > ORDER.index(names[i - 1]) for i in range(1, len(names))
        )


def _sessions(events: list[tuple], gap: int, plans: Plans) -> list[dict]:
    out: list[dict] = []
    for _, user, at, kind, value in sorted(events, key=lambda e: (e[1], e[2], e[0])):
        current = out[-1] if out and out[-1]["user_id"] == user else None
        if current is None or at - current["end_ms"] > gap * 60_000:
            number = int(current["session_id"].rsplit("-", 1)[1]) + 1 if current else 1
            current = {
                "session_id": f"{user}-{number}",
                "user_id": user,
                "start_ms": at,
                "end_ms": at,
                "events": 0,
                "purchases": 0,
                "revenue_cents": 0,
                "plan": plans.at(user, at),
            }
            out.append(current)
        current["end_ms"] = at
        current["events"] += 1
        current["purchases"] += kind == "purchase"
        current["revenue_cents"] += value if kind == "purchase" else -value if kind == "refund" else 0
    return out


def _features(
    users: list[dict], events: list[tuple], sessions: list[dict], plans: Plans, low: int, high: int
) -> list[list]:
    by_user, runs = defaultdict(list), defaultdict(list)
    for event in events:
        by_user[event[1]].append(event)
    for session in sessions:
        runs[session["user_id"]].append(session)
    rows = []
    for row in sorted(users, key=lambda u: u["user_id"]):
        user = row["user_id"]
        own, visits = by_user[user], runs[user]
        kinds = Counter(e[3] for e in own).most_common()
        best = min((name for name, n in kinds if n == kinds[0][1]), default="none")
        length = sum(v["end_ms"] - v["start_ms"] for v in visits)
        rows.append([
            user, row["country"], len(own), len(visits), len({e[2] // DAY for e in own}), sum(v["purchases"] for v in visits),
            sum(v["revenue_cents"] for v in visits), length // (1000 * len(visits)) if visits else 0, best, plans.at(user, high - 1),
            plans.upgrades(user, low, high), (high - max(e[2] for e in own)) // 3_600_000 if own else -1,
        ])  # fmt: skip
    return rows


def _mismatches(features: list[list], legacy: list[dict[str, str]]) -> list[dict[str, str]]:
    old = {row["user_id"]: row for row in legacy}
    found = []
    for row in features:
        for name, value in zip(FEATURES, map(str, row), strict=True):
            if old[row[0]][name] != value:
                found.append({"user_id": row[0], "feature": name, "legacy": old[row[0]][name], "computed": value})
    return sorted(found, key=lambda m: (m["user_id"], m["feature"]))


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The outputs after every stage."""
    manifest = json.loads(tree["input/manifest.json"])
    users = _table(tree["input/users/users.csv"])
    out: dict[str, bytes] = {}
    online, partitions = _partitions(tree, manifest["partitions"])
    yield "verify-partitions", dict(out)
    periods = _history(_table(tree["input/users/plan_changes.csv"]))
    out["output/plan_history.csv"] = _csv(["user_id", "plan", "valid_from", "valid_to"], periods)
    yield "plan-history", dict(out)
    late, uploads = _uploads(tree, {u["user_id"] for u in users}, json.loads(tree["input/reference/dictionary.json"]))
    events = sorted(online + late, key=lambda e: (e[2], e[0]))
    out["output/staging/events.csv"] = _csv(["event_id", "user_id", "ts_ms", "type", "value_cents"], events)
    yield "clean-events", dict(out)
    plans = Plans(periods)
    sessions = _sessions(events, manifest["gap_minutes"], plans)
    out["output/sessions.jsonl"] = "".join(json.dumps(s) + "\n" for s in sessions).encode()
    yield "sessionize", dict(out)
    days = [entry["path"][7:17] for entry in manifest["partitions"]]
    features = _features(users, events, sessions, plans, _ms(days[0] + " 00:00:00"), _ms(days[-1] + " 00:00:00") + DAY)
    out["output/features.csv"] = _csv(FEATURES, features)
    yield "features", dict(out)
    wrong = _mismatches(features, _table(tree["input/legacy/features.csv"]))
    audit = {
        "partitions": partitions,
        "uploads": uploads,
        "legacy_mismatches": wrong,
        "features_wrong": dict(Counter(m["feature"] for m in wrong)),
    }
    out["output/audit.json"] = json.dumps(audit, indent=1).encode()
    yield "parity-audit", dict(out)
