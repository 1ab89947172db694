"""`workbench validate` and `calibrate` on real sandboxes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("sandboxes")


def rows(done: subprocess.CompletedProcess) -> dict[str, dict]:
    return {Path(r["task"]).name: r for r in map(json.loads, done.stdout.splitlines())}


def test_one_bad_task_never_stops_the_others(workbench, task, tmp_path):
    task("good")
    task("broken-toml", toml="this is = = not toml")
    task("no-build", docker="FROM no-such-base:0\nRUN exit 3\n")
    (tmp_path / "tasks" / "empty").mkdir()
    done = workbench("validate", "tasks", "missing", "tasks/empty", "--json")
    assert done.returncode == 1
    found = rows(done)
    assert set(found) == {"good", "broken-toml", "no-build", "missing", "empty"}
    assert found["good"]["valid"] is True, found["good"]
    assert found["good"]["rewards"]["oracle"] == [1.0, 1.0]
    assert found["good"]["stage"] == "admitted"
    for name, stage in {"broken-toml": "files", "no-build": "build", "missing": "files", "empty": "files"}.items():
        assert (found[name]["valid"], found[name]["stage"]) == (False, stage), found[name]
        assert found[name]["reasons"][0]["kind"]
        assert len(found[name]["reasons"][0]["message"]) > 10
    assert found["good"]["seconds"] > 0
    assert "[validate] 5/5 100%" in done.stderr


def test_a_valid_task_exits_0_and_is_told_in_words(workbench, task):
    task("good")
    done = workbench("validate", "tasks/good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("valid ")
    assert done.stdout.endswith("1 of 1 valid\n")


def test_a_failing_solution_says_what_to_do(workbench, task):
    task("lazy", solve="#!/bin/bash\ntrue\n")
    done = workbench("validate", "tasks/lazy")
    assert done.returncode == 1
    assert "NOT VALID" in done.stdout
    assert "[oracle] oracle-fails" in done.stdout


def test_calibrate_with_an_agent_that_always_passes(workbench, task):
    task("good")
    done = workbench("calibrate", "tasks/good", "--agent", "oracle", "--rollouts", "2", "--more", "2", "--json")
    assert done.returncode == 1, done.stderr
    (row,) = rows(done).values()
    assert (row["rewards"], row["mean"], row["keep"]) == ([1.0, 1.0], 1.0, False)
    assert row["reasons"][0]["kind"] == "too-easy"
    assert "run folder:" in done.stderr


def processes_with(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_cleanly(task, tmp_path, number, code):
    mark = f"6{os.getpid()}{int(number)}"
    task("slow", solve=f"#!/bin/bash\nsetsid sleep {mark} &\nsleep {mark}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", "validate", "tasks/slow", "--json"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(processes_with(f"sleep\0{mark}")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(f"sleep\0{mark}")
    process.send_signal(number)
    _, err = process.communicate(timeout=40)
    assert process.returncode == code, err
    assert f"stopped by {number.name}" in err
    deadline = time.monotonic() + 10
    while processes_with(f"sleep\0{mark}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(f"sleep\0{mark}") == []


def test_folders_are_expanded_in_order(task, tmp_path):
    from workbench.cli.tasks import expand

    a, b = task("a"), task("b")
    (b / "task.toml").unlink()  # still looks like a task: it must not be passed over in silence
    (tmp_path / "tasks" / "notes").mkdir()
    assert expand([str(tmp_path / "tasks")]) == [a, b]
    assert expand([str(b), str(tmp_path / "tasks")]) == [b, a]
    assert expand([str(a), str(tmp_path / "nowhere")]) == [a, tmp_path / "nowhere"]
