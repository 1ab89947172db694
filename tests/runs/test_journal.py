from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.runs.journal import FileLock, Journal, RunLocked, Tail, is_locked, plain, read_journal, restore


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "journal.jsonl"


def test_a_record_has_a_head_and_is_one_line(path):
    journal = Journal(path, "run-1")
    before = time.time()
    record = journal.record("trial", {"reward": 0.5, "note": "two\nlines \u2028"}, id="a")
    assert path.read_bytes().count(b"\n") == 1
    read = next(read_journal(path))
    assert read == record
    assert (read["kind"], read["id"], read["run_id"], read["note"]) == ("trial", "a", "run-1", "two\nlines \u2028")
    assert before <= read["time"] <= time.time()


def test_a_rows_own_id_run_and_time_are_kept(path):
    record = Journal(path, "run-1").record("trial", {"id": "x", "run_id": "other", "time": 5.0})
    assert (record["id"], record["run_id"], record["time"]) == ("x", "other", 5.0)


def test_a_kind_of_its_own_is_refused(path):
    with pytest.raises(ValueError, match="kind"):
        Journal(path, "r").record("trial", {"kind": "oops"})


def test_what_has_no_plain_form_is_refused_and_nothing_is_written(path):
    with pytest.raises(TypeError, match="journal row cannot hold object"):
        Journal(path, "r").record("trial", {"x": object()})
    assert path.read_bytes() == b""


class Colour(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: tuple[float, ...]


def test_values_that_json_lacks(path):
    row = {
        "nan": math.nan, "inf": math.inf, "down": -math.inf, "np": np.float64("nan"), "array": np.arange(3),
        "path": Path("/a"), "point": Point(1, (2.0, math.inf)), "set": {"b", "a"}, "colour": Colour.RED,
        "$float": "nan", "nested": {"$float": "nan"}, "half": "\ud800", 3: "key",
    }  # fmt: skip
    Journal(path, "r").record("x", row)
    assert "NaN" not in path.read_text(encoding="ascii")
    read = next(read_journal(path))
    assert math.isnan(read["nan"])
    assert math.isnan(read["np"])
    assert (read["inf"], read["down"]) == (math.inf, -math.inf)
    assert read["array"] == [0, 1, 2]
    assert read["point"] == {"x": 1, "y": [2.0, math.inf]}
    assert (read["path"], read["set"], read["colour"], read["half"], read["3"]) == (
        "/a",
        ["a", "b"],
        "red",
        "\ud800",
        "key",
    )
    assert read["$float"] == "nan"  # a row that looks like our own sign comes back as it was
    assert read["nested"] == {"$float": "nan"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("$float"), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_plain_value_comes_back(value):
    assert json.loads(json.dumps(plain(value), allow_nan=False), object_hook=restore) == value


@given(st.data())
def test_a_cut_line_is_ignored_and_healed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "journal.jsonl"
    journal = Journal(path, "r")
    for key in "abc":
        journal.record("trial", {"text": "some { text }", "n": math.nan, "time": 1.5}, id=key)
    journal.close()
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    before = [r["id"] for r in read_journal(path)]
    again = Journal(path, "r")
    assert [k for k in "abc" if again.done("trial", k)] == before
    again.record("trial", {"n": 1}, id="d")
    assert [r["id"] for r in read_journal(path)] == [*before, "d"]  # what was whole stays, what was cut never appears
    assert again.get("trial", "d")["n"] == 1
    again.close()


def test_garbage_lines_are_skipped(path):
    path.write_bytes(b'\xff\xfe\n[1]\n{"kind": "x"}\nnull\n\n{"kind": "x", "id": "1"}\n')
    assert [r["id"] for r in read_journal(path)] == ["1"]


def test_once_runs_once_across_reopening(path):
    calls = []
    for _ in range(3):
        journal = Journal(path, "r")
        row = journal.once("task", "t1", lambda: calls.append(1) or {"reward": math.inf, "pair": (1, 2)})
        assert (row["reward"], row["pair"]) == (math.inf, [1, 2])  # the same form the first time and when resumed
        journal.close()
    assert len(calls) == 1


def test_once_that_fails_records_nothing(path):
    journal = Journal(path, "r")
    with pytest.raises(ZeroDivisionError):
        journal.once("task", "t", lambda: {"x": 1 / 0})
    assert not journal.done("task", "t")
    assert journal.once("task", "t", lambda: {"x": 1})["x"] == 1


def test_threads_never_mix_lines_and_share_once(path):
    journal, calls = Journal(path, "r"), []

    def work(n: int) -> None:
        for i in range(50):
            journal.record("trial", {"text": "x" * 2000, "n": n}, id=f"{n}-{i}")
            journal.once("shared", str(i), lambda: calls.append(1) or {})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(calls) == 50
    ids = [r["id"] for r in read_journal(path) if r["kind"] == "trial"]
    assert len(ids) == len(set(ids)) == 400
    assert path.read_bytes().count(b"\n") == 450
    assert all(journal.get("trial", k)["id"] == k for k in ids)


WRITER = """
import sys
from pathlib import Path
from workbench.runs.journal import Journal
journal = Journal(Path(sys.argv[1]), "r")
n = 0
while True:
    journal.once("work", str(n), lambda: {"n": n, "text": "y" * 3000})
    n += 1
"""


def test_kill_minus_nine_loses_nothing_and_repeats_nothing(path):
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        size, deadline = path.stat().st_size if path.exists() else 0, time.monotonic() + 20
        while (path.stat().st_size if path.exists() else 0) < size + 50_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    numbers = [r["n"] for r in read_journal(path)]
    assert len(numbers) > 20
    assert numbers == list(range(len(numbers)))


def test_a_tail_sees_each_whole_record_once_while_it_is_written(path):
    tail = Tail(path)
    assert tail.new() == []
    journal = Journal(path, "r")
    journal.record("a", {}, id="1")
    assert [r["id"] for r in tail.new()] == ["1"]
    with path.open("ab") as file:
        file.write(b'{"kind": "a", "id": "2"')
    assert tail.new() == []
    with path.open("ab") as file:
        file.write(b"}\n")
    assert [r["id"] for r in tail.new()] == ["2"]
    assert tail.new() == []


def test_a_full_disk_raises_and_the_journal_recovers(path, monkeypatch):
    journal = Journal(path, "r")
    journal.record("a", {}, id="1")
    real, calls = os.write, []

    def full(fd, data):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(fd, data[:20])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            journal.record("a", {}, id="2")
    assert not journal.done("a", "2")
    journal.record("a", {}, id="3")
    assert [r["id"] for r in read_journal(path)] == ["1", "3"]


def test_the_lock_keeps_a_second_process_out_and_dies_with_its_holder(tmp_path):
    lock = tmp_path / "run" / "journal.lock"
    lock.parent.mkdir()
    code = (
        "import sys, time; from pathlib import Path; from workbench.runs.journal import FileLock;"
        "l = FileLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        assert is_locked(lock)
        with pytest.raises(RunLocked, match=f"process {process.pid}"):
            FileLock(lock)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert not is_locked(lock)
    FileLock(lock).release()


def test_a_forked_child_must_not_write(path):
    journal = Journal(path, "r")
    pid = os.fork()
    if pid == 0:
        try:
            journal.record("a", {})
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert list(read_journal(path)) == []
