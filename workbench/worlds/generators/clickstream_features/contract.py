"""The public contract of the clickstream features, their defect plan and sealed answers."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec
from workbench.worlds.draw import Draw
from workbench.worlds.generators.clickstream_features import model

PLANS = ("free", "basic", "pro", "team")
TYPES = {
    "view": ["page_view", "PV", "screen"], "search": ["query", "SRCH", "find"], "cart": ["add_to_cart", "basket", "ATC"],
    "purchase": ["order", "checkout_done", "BUY"], "refund": ["chargeback", "RFND", "money_back"],
}  # fmt: skip
HEADINGS = {"event_id": ["eid", "uid_event"], "user_id": ["account", "member"], "device_ts": ["t", "local_time"], "type": ["action", "kind"], "value_cents": ["amount", "cents"]}  # fmt: skip
EVENTS = {"event_id": "string", "user_id": "string", "ts_ms": "integer", "type": "string", "value_cents": "integer"}
PERIODS = {"user_id": "string", "plan": "string", "valid_from": "string", "valid_to": "string"}
SESSIONS = {"session_id": "string", "user_id": "string", "start_ms": "integer", "end_ms": "integer", "events": "integer", "purchases": "integer", "revenue_cents": "integer", "plan": "string"}  # fmt: skip
FEATURES = {
    "user_id": "string", "country": "string", "events": "integer", "sessions": "integer", "active_days": "integer", "purchases": "integer",
    "revenue_cents": "integer", "mean_session_seconds": "integer", "favourite_type": "string", "plan": "string", "upgrades": "integer", "recency_hours": "integer",
}  # fmt: skip
SPEC = Spec(
    name="clickstream_features", revision=1, domain="9.2", title="Clickstream sessions and feature parity",
    summary="Rebuild sessions, plan history and user features from Parquet partitions and late uploads, and audit an older pipeline.",
    outputs=(
        Output("output/staging/events.csv", "csv", "every genuine event at its true time, by ts_ms, then event_id", EVENTS),
        Output("output/plan_history.csv", "csv", "periods of plans, by user_id, then valid_from", PERIODS),
        Output("output/sessions.jsonl", "jsonl", "one session a line, by user_id, then start", SESSIONS),
        Output("output/features.csv", "csv", "one row a user, by user_id", FEATURES),
        Output(
            "output/audit.json", "json", "where the data came from, and where the legacy features are wrong",
            {
                "partitions": [{"path": "string", "source": "string", "rows": "integer"}],
                "uploads": [{"path": "string", "rows_read": "integer", "duplicates": "integer", "unknown_users": "integer", "kept": "integer"}],
                "legacy_mismatches": [{"user_id": "string", "feature": "string", "legacy": "string", "computed": "string"}],
                "features_wrong": {"<feature>": "integer"},
            },
        ),
    ),
    curriculum_layer="mastery", workflow_stages=("profile", "history", "reconcile", "sessionize", "aggregate", "audit"), tools=("python3",),
    artifact_roles=("records", "columnar-partition", "spool", "change-log", "manifest", "dictionary", "legacy-output", "tool"),
    relation_types=("partition", "temporal", "checksum", "precedence", "synonym"), source_kind="product analytics",
)  # fmt: skip
LAYOUT = """# Reading the partitions

The files under `events/` are ordinary Parquet: one row group, required columns, PLAIN encoding, no compression. Times are int64
milliseconds since 1970 in UTC, texts are UTF-8.

    python3 input/tools/parquet_reader.py input/events/DAY.parquet

prints one as CSV. The tool refuses what it can't read; it does not compare checksums.
"""


def _where(draw: Draw, ids: list[str], share: int) -> dict[str, list[str]]:
    return {"event_id": sorted(draw.sample(ids, max(2, len(ids) // share)))}


def plan(world: Any, draw: Draw, tree: dict[str, bytes]) -> tuple[Defect, ...]:
    """The legacy features are always wrong somewhere; up to six more defects of partitions, uploads and the change log."""
    spooled = [f"input/events/{day}.parquet" for day in draw.sample(world.days[-3:], 2)]
    batch = {b: [e[0] for e in world.offline if e[5] == b] for b, _, _ in world.offsets}
    spots = {name: draw.choice(list(batch)) for name in ("type", "unit", "twice", "orphan", "heading", "sign")}
    path = {name: f"input/uploads/{b}.csv" for name, b in spots.items()}
    rows = model.features(world)
    column = draw.choice(("sessions", "revenue_cents", "mean_session_seconds", "recency_hours", "active_days"))
    at, wrong = list(FEATURES).index(column), sorted(draw.sample(range(len(rows)), max(2, len(rows) // 8)))
    size, half = len(tree[spooled[0]]), len(tree[spooled[0]]) // 2
    log = "input/users/plan_changes.csv"
    orphans = [
        {
            "event_id": e[0] + "x",
            "user_id": e[1][:-1] + "z",
            "device_ts": str(e[2]),
            "type": e[3],
            "value_cents": str(e[4]),
        }
        for e in draw.sample([e for e in world.offline if e[5] == spots["orphan"]], 2)
    ]
    flips = sorted(draw.sample(range(half // 2, half), 3))
    offered = {
        "rot": Defect("bit_rot", spooled[0], {"offsets": flips, "masks": [draw.integer(1, 255) for _ in flips]}, "a partition whose bits flipped"),
        "cut": Defect("truncated_file", spooled[1], {"bytes": draw.integer(40, size // 3)}, "a partition without its footer"),
        "type": Defect("category_drift", path["type"], {"column": "type", "where": _where(draw, batch[spots["type"]], 2), "mapping": TYPES}, "another client's names of events"),
        "unit": Defect("unit_drift", path["unit"], {"column": "device_ts", "factor": "0.001", "where": _where(draw, batch[spots["unit"]], 2)}, "seconds instead of milliseconds"),
        "twice": Defect("duplicate_records", path["twice"], {"where": _where(draw, batch[spots["twice"]], 5)}, "an upload that was retried"),
        "orphan": Defect("orphan_records", path["orphan"], {"records": orphans}, "events of unknown users"),
        "heading": Defect("schema_drift", path["heading"], {"rename": {k: draw.choice(v) for k, v in HEADINGS.items()}, "order": draw.shuffled(list(HEADINGS))}, "another client's columns"),
        "sign": Defect("delimiter_drift", path["sign"], {"to": draw.choice((";", "|"))}),
        "when": Defect("date_format_drift", log, {"column": "changed_at", "from": "%Y-%m-%d %H:%M:%S", "to": "%d.%m.%Y %H:%M:%S", "rows": sorted(draw.sample(range(len(world.changes)), len(world.changes) // 3))}, "day-first times"),
        "again": Defect("duplicate_records", log, {"rows": sorted(draw.sample(range(len(world.changes)), len(world.changes) // 8))}, "changes logged twice"),
        "legacy": Defect("contradictory_record", "input/legacy/features.csv", {"column": column, "rows": wrong, "values": [str(rows[r][at] + draw.integer(1, 9)) for r in wrong]}, "the old pipeline was wrong"),
    }  # fmt: skip
    damaged = draw.sample(("rot", "cut"), draw.integer(1, 2))
    others = draw.sample([k for k in offered if k not in ("rot", "cut", "legacy")], draw.integer(0, 6 - len(damaged)))
    return tuple(d for name, d in offered.items() if name in {"legacy", *damaged, *others})


def truth(world: Any, defects: tuple[Defect, ...]) -> dict[str, Any]:
    rows = [list(row) for row in model.features(world)]
    names = list(FEATURES)
    wrong = []
    for defect in defects:
        if defect.kind == "contradictory_record":
            column = defect.params["column"]
            wrong += [
                (rows[r][0], column, value, str(rows[r][names.index(column)]))
                for r, value in zip(defect.params["rows"], defect.params["values"], strict=True)
            ]
    broken = {d.path for d in defects if d.kind in ("bit_rot", "truncated_file")}
    extra = {
        (d.kind, d.path): len(d.params.get("records") or d.params.get("where", {}).get("event_id", ())) for d in defects
    }
    partitions, uploads = [], []
    for day in world.days:
        path, low = f"input/events/{day}.parquet", model.epoch_ms(day + " 00:00:00")
        count = sum(low <= e[2] < low + model.DAY for e in world.events)
        partitions.append({"path": path[6:], "source": "spool" if path in broken else "parquet", "rows": count})
    for batch, _, _ in world.offsets:
        path, kept = f"input/uploads/{batch}.csv", sum(e[5] == batch for e in world.offline)
        twice, orphans = extra.get(("duplicate_records", path), 0), extra.get(("orphan_records", path), 0)
        uploads.append(
            {
                "path": path[6:],
                "rows_read": kept + twice + orphans,
                "duplicates": twice,
                "unknown_users": orphans,
                "kept": kept,
            }
        )
    found = [dict(zip(("user_id", "feature", "legacy", "computed"), w, strict=True)) for w in sorted(wrong)]
    counts = {f: sum(w["feature"] == f for w in found) for f in sorted({w["feature"] for w in found})}
    return {
        "columns": {"events": list(EVENTS), "plans": list(PERIODS), "features": names}, "events": [list(map(str, e)) for e in model.events(world)],
        "plans": [list(p) for p in model.plans(world)], "sessions": model.sessions(world), "features": [list(map(str, r)) for r in rows],
        "audit": {"partitions": partitions, "uploads": uploads, "legacy_mismatches": found, "features_wrong": counts},
    }  # fmt: skip


def prompt(world: Any, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="Rebuild clean events, plan history, sessions and user features of an online service, and audit what an older pipeline computed from the same days.",
        inputs={
            "input/manifest.json": "the daily partitions with their checksums, and gap_minutes",
            "input/events/": "one Parquet file a UTC day; input/tools/ has a reader",
            "input/spool/": "the collector's own JSON lines of the last days, always right",
            "input/uploads/": "late batches of single devices (CSV), and clock_checks.csv with how far each clock was ahead of the server",
            "input/users/": "all users, and the log of plan changes",
            "input/reference/dictionary.json": "canonical event types and upload headings with their variants",
            "input/legacy/features.csv": "the older pipeline's features",
        },
        requirements=(
            "staging/events.csv: all events of partitions and uploads. The true time of an uploaded event is its device_ts minus the device's lead; output whole milliseconds.",
            "plan_history.csv: a period starts with each change to a different plan and ends where the next starts; valid_to of the last is empty. Times as YYYY-MM-DD HH:MM:SS, all times are UTC.",
            "sessions.jsonl: a user's events in order of ts_ms, then event_id; a pause of more than gap_minutes starts a new session, midnight does not. session_id is user_id, a hyphen and the session's number from 1. revenue_cents: purchases minus refunds. plan: the one valid at the start (a period includes its first second).",
            "features.csv, over the partitions' days, for every user of users.csv: active_days are UTC days with an event; mean_session_seconds = total length of the sessions in ms / (1000 * sessions), cut to whole seconds, 0 without sessions; favourite_type: the most frequent, ties by alphabet, none without events; plan: valid in the last moment of the last day; upgrades: periods that start within these days with a plan above the previous one (free < basic < pro < team); recency_hours: whole hours from the last event to the end of the last day, -1 without events.",
            "audit.json: partitions in order of day (path relative to input/, source parquet or spool); uploads by path; legacy_mismatches: every cell of the legacy features that differs from yours, both as text, by user_id, then feature; features_wrong: how many per feature, only those above 0.",
        ),
        authority=(
            "A partition whose sha256 differs from the manifest's is not to be used: take that day from the spool.",
            "In an upload, of records with the same event_id the first counts, the others are duplicates; records of users not in users.csv are unknown_users and dropped.",
            "Variants of event types and headings become canonical. A device_ts with a decimal point is in seconds. Batches may use another separator.",
            "In the change log, identical records count once; times are YYYY-MM-DD HH:MM:SS, or day first with dots.",
            "The legacy features are compared, never used.",
        ),
    )  # fmt: skip
