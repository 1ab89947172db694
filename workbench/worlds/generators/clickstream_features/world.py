"""An online service's event stream, from which sessions and per-user features are rebuilt.

The world is what truly happened: users, the dated plans they were on, and every event at its true time. It's rendered as the daily
Parquet partitions of a collector with their checksums, the collector's spool of the last days, batches that devices with wrong clocks
uploaded late, a change log of plans, and the features that an older pipeline computed.

Parquet is shipped with a reader of its own (input/tools/parquet_reader.py): the toolchain stays plain Python, and a solver that
wants another reader may use it, for the files are ordinary Parquet.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.worlds import Defect, Prompt, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table, parquet
from workbench.worlds.generators.clickstream_features import contract, model
from workbench.worlds.generators.clickstream_features.contract import FEATURES, HEADINGS, SPEC, TYPES

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]

SIZES = {"unit": (24, 6, 2), "small": (44, 8, 3), "full": (90, 12, 4)}  # users, days, bursts a user and day at most
COLUMNS = {"event_id": "string", "user_id": "string", "ts_ms": "int64", "type": "string", "value_cents": "int64"}
UPLOAD = ("event_id", "user_id", "device_ts", "type", "value_cents")
SPOOLED = 3  # the spool keeps the last days
COUNTRIES = "AT BE CZ DK EE FI GR HU IE LV NL PT SE".split()


@dataclass(frozen=True)
class World:
    """events, offline: (event, user, true time in ms, type, cents); offline ones carry their batch last. offsets: (batch, device, seconds that
    its clock is ahead). changes: (user, time, plan), by time."""

    days: tuple[str, ...]
    gap_minutes: int
    users: tuple[tuple[str, str, str], ...]
    changes: tuple[tuple[str, str, str], ...]
    offsets: tuple[tuple[str, str, int], ...]
    events: tuple[tuple[str, str, int, str, int], ...]
    offline: tuple[tuple[str, str, int, str, int, str], ...]


def _burst(draw: Draw, user: str, start: int, gap: int) -> list[tuple[str, int, str, int]]:
    """Events of one visit; now and then a pause of exactly the session gap, or a moment more."""
    out, at = [], start
    for _ in range(draw.integer(2, 6)):
        kind = draw.weighted(list(TYPES), (9, 5, 4, 3, 1))
        out.append((user, at, kind, draw.integer(150, 89_900) if kind in ("purchase", "refund") else 0))
        at += draw.weighted((draw.integer(4_000, gap * 40_000), gap * 60_000, gap * 60_000 + 1), (14, 1, 1))
    return out


def make(draw: Draw, tier: str) -> World:
    people, count, bursts = SIZES[tier]
    first = datetime.date(draw.integer(2021, 2025), draw.integer(2, 11), draw.integer(1, 28))
    days = tuple((first + datetime.timedelta(d)).isoformat() for d in range(count))
    mark, gap = draw.hexadecimal(5), draw.choice((15, 20, 30, 45))
    users, changes = [], []
    for i in range(people):
        own = draw.fork("user", i)
        name = f"u{mark}{own.integer(0, 99):02d}{i:03d}"
        created = (first - datetime.timedelta(own.integer(20, 700))).isoformat()
        users.append((name, own.choice(COUNTRIES), created))
        changes.append(
            (name, f"{created} {own.integer(0, 23):02d}:{own.integer(0, 59):02d}:00", own.choice(contract.PLANS[:2]))
        )
        for day in sorted(own.sample(range(-15, count), own.integer(0, 3))):
            when = f"{(first + datetime.timedelta(day)).isoformat()} {own.integer(0, 23):02d}:{own.integer(0, 59):02d}:{own.integer(0, 59):02d}"
            changes.append((name, when, own.choice(contract.PLANS)))
    start, stop = model.epoch_ms(days[0] + " 00:00:00"), model.epoch_ms(days[-1] + " 00:00:00") + model.DAY
    raw = []
    for name, _, _ in users[: -max(1, people // 12)]:  # a few users never come
        own = draw.fork("events", name)
        for day in range(count):
            for _ in range(own.integer(0, bursts)):
                raw += _burst(own, name, start + day * model.DAY + own.integer(0, model.DAY - 1), gap)
    raw = sorted(e for e in set(raw) if e[1] < stop)
    named = [(f"e{mark}{i:06d}", *e) for i, e in enumerate(draw.fork("ids").shuffled(raw))]
    offsets = tuple(
        (f"batch_{i + 1}", f"d{draw.hexadecimal(6)}", draw.choice((-1, 1)) * draw.integer(40, 5400)) for i in range(3)
    )
    cut = len(named) // 7
    late = sorted((*e, offsets[i % 3][0]) for i, e in enumerate(named[:cut]))
    online = sorted(named[cut:], key=lambda e: (e[2], e[0]))
    return World(
        days,
        gap,
        tuple(users),
        tuple(sorted(changes, key=lambda c: (c[1], c[0]))),
        offsets,
        tuple(online),
        tuple(sorted(late, key=lambda e: (e[5], e[2], e[0]))),
    )


def check(world: World) -> None:
    """Unique events and users, known users, every event inside the window, no two plan changes of a user at one moment."""
    events = [e[:5] for e in (*world.events, *world.offline)]
    known = {u[0] for u in world.users}
    low, high = model.epoch_ms(world.days[0] + " 00:00:00"), model.epoch_ms(world.days[-1] + " 00:00:00") + model.DAY
    if len({e[0] for e in events}) != len(events) or len(known) != len(world.users):
        raise WorldError("an event or a user stands twice")
    if any(e[1] not in known or not low <= e[2] < high for e in events):
        raise WorldError("an event of nobody, or outside the window")
    if len({c[:2] for c in world.changes}) != len(world.changes):
        raise WorldError("two plan changes of one user at the same time")
    if {e[2] // model.DAY for e in world.events} != set(range(low // model.DAY, high // model.DAY)):
        raise WorldError("a day without events")


def workflow(world: World) -> Workflow:
    events = len(world.events) + len(world.offline)
    return Workflow((
        Stage("verify-partitions", "profile", len(world.days) + len(world.offsets)),
        Stage("plan-history", "history", len(world.changes), ("verify-partitions",)),
        Stage("clean-events", "reconcile", events, ("verify-partitions",)),
        Stage("sessionize", "sessionize", events, ("clean-events", "plan-history")),
        Stage("features", "aggregate", len(world.users) * len(FEATURES), ("sessionize",)),
        Stage("parity-audit", "audit", len(world.users) * len(FEATURES) + len(world.days), ("features",)),
    ))  # fmt: skip


def _jsonl(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows).encode()


def render(world: World) -> dict[str, bytes]:
    tree, listed = {}, []
    for place, day in enumerate(world.days):
        low = model.epoch_ms(day + " 00:00:00")
        rows = [e for e in world.events if low <= e[2] < low + model.DAY]
        data = tree[f"input/events/{day}.parquet"] = parquet.write(COLUMNS, rows)
        listed.append({"path": f"events/{day}.parquet", "rows": len(rows), "sha256": hashlib.sha256(data).hexdigest()})
        if place >= len(world.days) - SPOOLED:
            tree[f"input/spool/{day}.jsonl"] = _jsonl(list(COLUMNS), rows)
    for batch, _, ahead in world.offsets:
        rows = [(e[0], e[1], e[2] + ahead * 1000, e[3], e[4]) for e in world.offline if e[5] == batch]
        tree[f"input/uploads/{batch}.csv"] = csv_table.table(UPLOAD, rows)
    checks = [(batch, device, ahead) for batch, device, ahead in world.offsets]
    tree |= {
        "input/uploads/clock_checks.csv": csv_table.table(("batch", "device", "device_minus_server_seconds"), checks),
        "input/manifest.json": (
            json.dumps({"gap_minutes": world.gap_minutes, "partitions": listed}, indent=1) + "\n"
        ).encode(),
        "input/users/users.csv": csv_table.table(("user_id", "country", "created_on"), world.users),
        "input/users/plan_changes.csv": csv_table.table(("user_id", "changed_at", "plan"), world.changes),
        "input/reference/dictionary.json": (
            json.dumps({"event_types": TYPES, "upload_headings": HEADINGS}, indent=1) + "\n"
        ).encode(),
        "input/legacy/features.csv": csv_table.table(list(FEATURES), model.features(world)),
        "input/tools/parquet_reader.py": parquet.reader_source(),
        "input/tools/README.md": contract.LAYOUT.encode(),
    }
    return tree


def recover(tree: Mapping[str, bytes]) -> World:
    """The world back from its clean files; the legacy features follow from it."""
    manifest = json.loads(tree["input/manifest.json"])
    paths = [entry["path"] for entry in manifest["partitions"]]
    offsets = tuple((b, d, int(s)) for b, d, s in csv_table.rows(tree["input/uploads/clock_checks.csv"]))
    offline = []
    for batch, _, ahead in offsets:
        for event, user, at, kind, value in csv_table.rows(tree[f"input/uploads/{batch}.csv"]):
            offline.append((event, user, int(at) - ahead * 1000, kind, int(value), batch))
    return World(
        tuple(path[7:17] for path in paths), manifest["gap_minutes"], tuple(map(tuple, csv_table.rows(tree["input/users/users.csv"]))),
        tuple(map(tuple, csv_table.rows(tree["input/users/plan_changes.csv"]))), offsets,
        tuple(row for path in paths for row in parquet.read(tree["input/" + path])[1]), tuple(offline),
    )  # fmt: skip


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return contract.plan(world, draw, render(world))


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    return contract.truth(world, defects)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return contract.prompt(world, defects)
