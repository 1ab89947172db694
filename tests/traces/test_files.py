"""Big files in bounded memory, and what a file looks like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.traces.files import Broken, json_lines, json_members
from workbench.traces.reading import open_trace
from workbench.traces.sniff import FORMATS, sniff
from workbench.traces.store import TraceError

SAMPLES = Path(__file__).parent / "samples"
TEXT = "x" * 900 + '"quoted" \\ new\nline é'


def test_members_come_one_element_at_a_time(tmp_path):
    data = {"a": 1, "number": 123456, "steps": [{"i": i, "t": TEXT} for i in range(4000)], "z": {"steps": [1]}}
    path = tmp_path / "a.json"
    for indent in (None, 1):
        path.write_text(json.dumps(data, indent=indent), encoding="utf-8")  # of several chunks
        found = list(json_members(path, {"steps"}))
        assert found[:2] == [("a", 1), ("number", 123456)]
        assert [v for k, v in found if k == "steps"] == data["steps"]
        assert found[-1] == ("z", {"steps": [1]})


def test_numbers_at_the_edge_of_a_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.traces.files._CHUNK", 1)
    path = tmp_path / "a.json"
    path.write_text('{"a": 12345.5e2, "b": [10, 20, -3], "c": "\\u00e9\\"x"}')
    expected = [("a", 1234550.0), ("b", 10), ("b", 20), ("b", -3), ("c", 'é"x')]
    assert list(json_members(path, {"b"})) == expected


@pytest.mark.parametrize(
    "text", ['{"a": 1, "steps": [1, 2, {"x": ', '{"a": 1, "steps": [1, 2 3', '{"a": 1, "steps": [1, 2, nope]}']
)
def test_what_is_whole_before_the_cut(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    broken = Broken()
    assert list(json_members(tmp_path / "a.json", {"steps"}, broken)) == [("a", 1), ("steps", 1), ("steps", 2)]
    assert broken.torn > 0


def test_a_nest_of_brackets(tmp_path):
    (tmp_path / "a.json").write_text('{"a": ' + "[" * 200_000)
    broken = Broken()
    assert list(json_members(tmp_path / "a.json", (), broken)) == []
    assert broken.torn
    (tmp_path / "b.jsonl").write_text('{"a": 1}\n{"a": ' + "[" * 200_000 + "\n")
    assert list(json_lines(tmp_path / "b.jsonl", broken)) == [{"a": 1}]


def test_a_line_without_end_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.traces.files.MAX_PIECE", 1000)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"b": "' + "x" * 5000 + '"}\n{"c": 3}\n')
    broken = Broken()
    assert list(json_lines(tmp_path / "a.jsonl", broken)) == [{"a": 1}, {"c": 3}]
    assert "line 2: longer than" in broken.places[0]


LOOKS = {
    "claude-code-session.jsonl": "claude-code-session",
    "claude-code-stream-json.jsonl": "claude-code-stream",
    "codex-rollout.jsonl": "codex-rollout",
    "codex-exec-json.jsonl": "codex-exec",
    "pi-0.73.1-session.jsonl": "pi-session",
    "pi-1.6.0-session.jsonl": "pi-session",
    "pi-0.73.1-events.jsonl": "pi-events",
    "mini-swe-agent.traj.json": "mini-swe-agent",
    "atif-from-mini.json": "atif",
    "atif-from-codex.json": "atif",
}


@pytest.mark.parametrize("name", LOOKS)
def test_content_decides_not_the_name(tmp_path, name):
    (tmp_path / "x.log").write_bytes((SAMPLES / name).read_bytes())
    assert sniff(tmp_path / "x.log") == LOOKS[name]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x00\x01\x02", "binary file"),
        (b"SQLite format 3\x00" + b"\x00" * 50, "a SQLite database"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, "a PNG image"),
        (b"PK\x03\x04" + b"\x00" * 50, "a ZIP archive: unpack it"),
        (b"%PDF-1.4\n", "a PDF document"),
        (b'{"a\x1b[31mb": 1}', r"members 'a\\x1b\[31mb'"),
        ('{"type": "session"}\n'.encode("utf-16"), "text in UTF-16: save it as UTF-8"),
        ('{"é": 1}\n'.encode("latin-1"), "a JSON object with the members"),
        (b"hello there\nyou", "plain text \\('hello there'\\)"),
        (b'{"cells": [], "nbformat": 4}', "a Jupyter notebook"),
        (b'{"trial_name": "t", "verifier_result": {}}', "Harbor's result.json; the trace is agent/trajectory.json"),
        (b'{"kind": "trial", "id": "1", "run_id": "r"}\n', "a run's journal; traces are in the run's folder traces/"),
        (b'{"trace": "t", "label": "read", "annotator": "a"}\n', "a journal of labels"),
        (b'{"messages": [{"role": "user"}]}\n', "chat messages"),
        (b'{"type": "odd"}\n{"type": "odd"}\n', "JSON lines of type 'odd'"),
        (b'[1, 2]', "a JSON list"),
        (b'{"foo": 1', "a JSON object with the members foo"),
        (b"\x1f\x8bnot really", "cannot be unpacked"),
    ],
)  # fmt: skip
def test_a_wrong_file_hears_what_it_looks_like(tmp_path, data, says):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(TraceError, match=says):
        open_trace(tmp_path / "x")


def test_a_wrong_format_hears_the_right_one():
    with pytest.raises(
        TraceError, match="looks like a Codex exec --json stream, not a Codex rollout: use format 'codex-exec'"
    ):
        open_trace(SAMPLES / "codex-exec-json.jsonl", format="codex-rollout")
    with pytest.raises(TraceError, match="no format 'cursor': use one of claude-code-session"):
        open_trace(SAMPLES / "codex-exec-json.jsonl", format="cursor")


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(TraceError, match="is a folder"):
        open_trace(tmp_path)
    with pytest.raises(TraceError, match="does not exist"):
        open_trace(tmp_path / "none")


# Memory: measured in a process of its own, as the growth of its peak over what imports alone take.

_MEASURE = """
import sys
from pathlib import Path
from workbench.traces.reading import open_trace
from workbench.traces.record import import_trace
from workbench.traces.export import write_atif
def peak():  # getrusage would tell the peak of the parent, when that is larger
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024
import_trace(open_trace(sys.argv[2]), Path(sys.argv[3]))
before = peak()
found = import_trace(open_trace(sys.argv[1]), Path(sys.argv[3]))
write_atif(Path(sys.argv[3]) / "out.json", (r := open_trace(found.path)).info, r)
print(found.turns["turns"], peak() - before)
"""


def _claude(path: Path, megabytes: int) -> int:
    """A session of about this size. Returns its number of turns."""
    output, made, number = "0123456789abcdef" * 1024, 0, 0
    with path.open("w") as file:
        while made < megabytes << 20:
            message = {
                "id": f"m{number}",
                "role": "assistant",
                "model": "m",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
            use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"cat {number}"}}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            parent = f"r{number - 1}" if number else None
            for entry in (
                {
                    "type": "assistant",
                    "uuid": f"a{number}",
                    "parentUuid": parent,
                    "message": {**message, "content": [use]},
                },
                {
                    "type": "user",
                    "uuid": f"r{number}",
                    "parentUuid": f"a{number}",
                    "message": {"role": "user", "content": [result]},
                },
            ):
                made += file.write(json.dumps(entry | {"sessionId": "s"}) + "\n")
            number += 1
    return number


def _atif(path: Path, megabytes: int) -> int:
    """The same as one ATIF document."""
    step = {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls"}}],
    }
    step["observation"] = {"results": [{"source_call_id": "c", "content": "0123456789abcdef" * 1024}]}
    count = (megabytes << 20) // len(json.dumps(step))
    with path.open("w") as file:
        file.write('{"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [')
        for number in range(1, count + 1):
            file.write(("," if number > 1 else "") + json.dumps({"step_id": number, **step}))
        file.write("]}")
    return count


def _import_and_export(tmp_path: Path, make, megabytes: int) -> tuple[int, int, int]:
    """(turns made, turns found, growth of the peak in MiB)."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc, which this system lacks")
    make(tmp_path / "small", 1)
    wanted = make(tmp_path / "big", megabytes)
    command = [sys.executable, "-c", _MEASURE, str(tmp_path / "big"), str(tmp_path / "small"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, growth = map(int, done.stdout.split())
    return wanted, found, growth


@pytest.mark.parametrize("make", [_claude, _atif])
def test_a_big_file_takes_little_memory(tmp_path, make):
    wanted, found, growth = _import_and_export(tmp_path, make, 24)
    assert found == wanted
    assert growth < 12, f"the peak grew by {growth} MiB over a file of 24 MiB"


@pytest.mark.slow
@pytest.mark.parametrize("make", [_claude, _atif])
def test_500_megabytes_take_little_memory(tmp_path, make):
    wanted, found, growth = _import_and_export(tmp_path, make, 500)
    assert found == wanted
    assert growth < 60, f"the peak grew by {growth} MiB over a file of 500 MiB"


def test_every_format_has_a_reader():
    from workbench.traces.reading import _IMPORTERS

    assert set(FORMATS) == set(_IMPORTERS)
