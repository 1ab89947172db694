"""Cut, broken, hostile and unknown: what any importer must live through."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from workbench.traces.reading import open_trace, read_trace
from workbench.traces.store import TraceError
from workbench.traces.trace import TraceStep
from workbench.traces.turns import count_turns, turns

SAMPLES = Path(__file__).parent / "samples"
HEAD = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}


def lines(path: Path, *entries) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    return path


def said(trace) -> list[str]:
    return [s.text for s in trace.main]


def pi(id, parent, role, content):
    return {"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": content}}


def test_unknown_types_are_kept_and_counted(tmp_path):
    strange = {"type": "telepathy", "id": "9", "parentId": "1", "thought": [1, 2]}
    path = lines(tmp_path / "s.jsonl", HEAD, pi("1", None, "user", "go"), strange, strange | {"id": "8"})
    trace = read_trace(path)
    assert trace.report.unknown == {"telepathy": 2}
    assert trace.unknown_entries[0] == strange
    assert trace.report.entries == {"session": 1, "message": 1, "telepathy": 2}


@pytest.mark.parametrize("name", ["claude-code-session.jsonl", "codex-rollout.jsonl", "pi-1.6.0-session.jsonl"])
def test_a_torn_last_line(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    last = data.rstrip(b"\n").rsplit(b"\n", 1)[1]
    (tmp_path / name).write_bytes(data.rstrip(b"\n")[: -len(last) // 2])
    trace = read_trace(tmp_path / name)
    assert trace.report.torn > 0
    assert trace.report.broken == []
    assert len(trace.steps) in (len(read_trace(SAMPLES / name).steps) - 1, len(read_trace(SAMPLES / name).steps))


@pytest.mark.parametrize("name", ["mini-swe-agent.traj.json", "atif-from-pi.json"])
def test_a_cut_document_gives_what_is_whole(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) * 2 // 3])
    trace = read_trace(tmp_path / name)
    assert trace.report.torn > 0
    assert 0 < len(trace.steps) < len(read_trace(SAMPLES / name).steps)


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        json.dumps(HEAD).encode() + b"\n{nonsense\n\xff\xfe\n[1]\n" + json.dumps(pi("1", None, "user", "go")).encode()
    )
    trace = read_trace(path)
    assert said(trace) == ["go"]
    assert [b.split(":")[0] for b in trace.report.broken] == ["line 2", "line 3", "line 4"]


def test_gzipped_files_and_cut_ones(tmp_path):
    data = gzip.compress((SAMPLES / "pi-0.73.1-session.jsonl").read_bytes())
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    assert count_turns(read_trace(tmp_path / "a.jsonl.gz").steps)["turns"] == 7
    (tmp_path / "b.jsonl.gz").write_bytes(data[: len(data) * 4 // 5])
    with pytest.raises(TraceError, match="cannot be unpacked"):
        read_trace(tmp_path / "b.jsonl.gz")


def test_an_entry_that_is_its_own_parent(tmp_path):
    first, second = pi("1", "1", "user", "go"), pi("2", "2", "user", "other")
    trace = read_trace(lines(tmp_path / "s.jsonl", HEAD, first, second, pi("3", "1", "user", "on")))
    assert said(trace) == ["go", "on"]


@pytest.mark.parametrize(
    "value", [None, 5, "x", [], {}, [1, None], {"content": {"a": 1}}, {"content": [None, 7, {"type": []}]}]
)
@pytest.mark.parametrize("format", ["claude", "pi", "codex"])
def test_hostile_shapes_never_crash(tmp_path, value, format):
    entry = {
        "claude": {"type": "assistant", "sessionId": "s", "uuid": "u", "parentUuid": {}, "message": value},
        "pi": {
            "type": "message",
            "id": value,
            "parentId": "p",
            "message": {"role": "assistant", "content": value, "usage": value},
        },
        "codex": {
            "timestamp": 1,
            "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": value},
        },
    }[format]
    first = HEAD if format == "pi" else entry
    reading = open_trace(lines(tmp_path / "x.jsonl", first, entry, entry | {"type": value}))
    assert all(isinstance(i.to_json(), dict) for i in reading if isinstance(i, TraceStep))


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, dropped, doubled, or values swapped for others of another type."""
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + rng.randint(1, 200) :]
        elif kind == 2:
            data = data[:at] + data[at : at + 50] + data[at:]
        else:
            value = rng.choice([b"null", b"7", b"[]", b"{}", b'"x"', b"[[1]]", b"true"])
            data = re.sub(
                rb': ("[^"]{0,20}"|\d+|true|false|null)(?=[,}])', b": " + value, data, count=rng.randint(1, 30)
            )
    return data


@pytest.mark.parametrize("name", sorted(p.name for p in SAMPLES.iterdir() if p.name != "pi-models.json"))
def test_damaged_files_are_read_or_refused_by_name(tmp_path, name):
    """Whatever happened to a file: steps, or a TraceError that names it; never another exception."""
    rng, source, read, errors = random.Random(name), (SAMPLES / name).read_bytes(), 0, []
    path = tmp_path / "damaged"
    for _ in range(60):
        path.write_bytes(mutated(source, rng))
        try:
            trace = read_trace(path)
            turns(trace)
            json.dumps([s.to_json() for s in trace.steps])
            read += 1
        except TraceError as error:
            errors.append(str(error))
    assert all(str(path) in error for error in errors)
    assert not [e for e in errors if re.search(r"damaged: (broken|not) [^.]*: \w+Error ", e)], (
        "an importer stumbled over the shape of one entry"
    )
    assert read >= 5
