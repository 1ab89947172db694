from __future__ import annotations

import gzip
import json
import math

import pytest

from workbench.traces import Episode, Turn
from workbench.traces.store import TraceError, iter_episodes, list_episodes, read_episode, write_episode


def episode(**changes) -> Episode:
    turn = Turn(
        0, "say", "ls", "[exit code 0]\n\udcffé☃", 0, (1, 2), (3,), (-0.5,), 2, 1, 0.25, 1.5, 0.5, 0.75, {"a": [1]}
    )
    return Episode(
        **{"agent": "terminal", "model": "m", "turns": (turn, Turn(1, "done")), "submitted": True, **changes}
    )


def test_written_and_read_back_equal(tmp_path):
    path = write_episode(tmp_path / "traces", "trial-1.0", episode())
    assert read_episode(path) == episode()
    assert [p.name for p in path.parent.iterdir()] == ["trial-1.0.json.gz"]  # nothing half-written beside it


def test_same_episode_same_bytes(tmp_path):
    first, second = write_episode(tmp_path, "a", episode()), write_episode(tmp_path, "b", episode())
    assert first.read_bytes() == second.read_bytes()


def test_file_is_strict_json_and_unknown_price_stays_unknown(tmp_path):
    path = write_episode(tmp_path, "a", episode(turns=(Turn(0, usd=math.nan),)))

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    json.loads(gzip.decompress(path.read_bytes()), parse_constant=refuse)
    assert math.isnan(read_episode(path).turns[0].usd)


def test_fields_of_a_later_version_are_ignored_and_missing_ones_default(tmp_path):
    data = {"agent": "x", "later": 1, "turns": [{"index": 0, "mood": "fine"}]}
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    assert read_episode(path) == Episode("x", (Turn(0),))


@pytest.mark.parametrize(
    "data", [b"", b"text", gzip.compress(b"[1]"), gzip.compress(b"{}"), gzip.compress(b'{"agent": "a"')]
)
def test_a_file_that_is_no_trace_is_named(tmp_path, data):
    path = tmp_path / "bad.json.gz"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=r"bad\.json\.gz"):
        read_episode(path)


def test_a_torn_file_is_named(tmp_path):
    path = write_episode(tmp_path, "a", episode())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TraceError, match=r"a\.json\.gz"):
        read_episode(path)


def test_listing_is_sorted_and_leaves_out_unfinished_files(tmp_path):
    for name in ("b", "a"):
        write_episode(tmp_path, name, episode(agent=name))
    (tmp_path / ".c.123.tmp").write_text("half")
    assert list_episodes(tmp_path) == ["a", "b"]
    assert [(n, e.agent) for n, e in iter_episodes(tmp_path)] == [("a", "a"), ("b", "b")]
    assert list_episodes(tmp_path / "none") == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b"])
def test_names_that_would_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="trace name"):
        write_episode(tmp_path, name, episode())
