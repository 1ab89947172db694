"""One user, worked out by hand; the Parquet files against another reader."""

from __future__ import annotations

import hashlib
import io
import json

import pytest

from workbench.worlds.formats import parquet
from workbench.worlds.generators.clickstream_features import alternative, reference

COLUMNS = {"event_id": "string", "user_id": "string", "ts_ms": "int64", "type": "string", "value_cents": "int64"}
NOON = 1_704_110_400_000  # 2024-01-01 12:00 UTC
PARTITION = parquet.write(
    COLUMNS,
    [("a", "u1", NOON, "view", 0), ("b", "u1", NOON + 600_000, "view", 0), ("c", "u1", NOON + 1_200_001, "cart", 0)],
)
TREE = {
    "input/manifest.json": json.dumps(
        {
            "gap_minutes": 10,
            "partitions": [{"path": "events/2024-01-01.parquet", "sha256": hashlib.sha256(PARTITION).hexdigest(), "rows": 3}],
        }
    ).encode(),
    "input/events/2024-01-01.parquet": PARTITION,
    "input/uploads/clock_checks.csv": b"batch,device,device_minus_server_seconds\nx,d1,60\n",
    # The device is a minute ahead: truly 12:25; once in seconds, then sent again, then an unknown user's.
    "input/uploads/x.csv": f"eid;user_id;device_ts;type;value_cents\nd;u1;{NOON // 1000 + 1560}.5;BUY;700\nd;u1;1;BUY;700\ne;u9;1;BUY;1\n".encode(),
    "input/users/users.csv": b"user_id,country,created_on\nu0,AT,2023-01-01\nu1,BE,2023-01-01\n",
    "input/users/plan_changes.csv": (
        b"user_id,changed_at,plan\nu0,2023-01-01 00:00:00,free\nu1,2023-01-01 00:00:00,free\n"
        b"u1,01.01.2024 12:20:00,pro\nu1,2024-01-01 12:20:00,pro\nu1,2024-01-01 23:00:00,basic\n"
    ),
    "input/reference/dictionary.json": b'{"event_types": {"purchase": ["BUY"]}, "upload_headings": {"event_id": ["eid"]}}',
    "input/legacy/features.csv": (",".join(reference.FEATURES) + "\nu0,AT,0,0,0,0,0,0,none,free,0,-1\nu1,BE,4,3,1,1,700,200,view,basic,1,11\n").encode(),
}  # fmt: skip


@pytest.mark.parametrize("solve", [lambda t: list(reference.solve(t))[-1][1], alternative.solve])
def test_one_user_by_hand(solve):
    out = solve(TREE)
    sessions = [json.loads(line) for line in out["output/sessions.jsonl"].decode().splitlines()]
    # The pause of exactly ten minutes does not end the session, the millisecond more does.
    assert [(s["start_ms"] - NOON, s["end_ms"] - NOON, s["events"], s["plan"]) for s in sessions] == [
        (0, 600_000, 2, "free"),
        (1_200_001, 1_500_500, 2, "pro"),
    ]
    assert out["output/features.csv"].decode().splitlines()[1:] == [
        "u0,AT,0,0,0,0,0,0,none,free,0,-1",
        "u1,BE,4,2,1,1,700,450,view,basic,1,11",  # (600000 + 300499) / 2000 = 450.2
    ]
    audit = json.loads(out["output/audit.json"])
    assert audit["uploads"] == [
        {"path": "uploads/x.csv", "rows_read": 3, "duplicates": 1, "unknown_users": 1, "kept": 1}
    ]
    assert audit["features_wrong"] == {"mean_session_seconds": 1, "sessions": 1}
    assert out["output/plan_history.csv"].decode().splitlines()[3] == "u1,pro,2024-01-01 12:20:00,2024-01-01 23:00:00"


def test_another_reader_opens_the_partitions():
    pyarrow = pytest.importorskip("pyarrow.parquet")
    names, rows = parquet.read(PARTITION)
    assert pyarrow.read_table(io.BytesIO(PARTITION)).to_pylist() == [dict(zip(names, row, strict=True)) for row in rows]


def test_a_damaged_file_says_so():
    for size in range(0, len(PARTITION), 7):
        with pytest.raises(parquet.ParquetError):
            parquet.read(PARTITION[:size])
