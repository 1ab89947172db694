from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from workbench.runs import progress, say
from workbench.runs.progress import Follower, clean, describe


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "progress.log"
    monkeypatch.setenv("WORKBENCH_PROGRESS", str(path))
    return path


def test_lines_say_how_far_it_is():
    assert describe("trials", 0, 12, 0.0) == "[trials] 0/12 0% 0:00"
    assert describe("trials", 3, 12, 41.0, "task\x1b[31m x") == "[trials] 3/12 25% 0:41, 2:03 left: task [31m x"
    assert describe("", 5, None, 3725.0) == "5 1:02:05"
    assert describe("none", 0, 0, 1.0) == "[none] 0/0 0:01"


def test_iterating_counts_to_the_end(log):
    assert list(progress([1, 2, 3], "things")) == [1, 2, 3]
    lines = log.read_text().splitlines()
    assert lines[0].startswith("[things] 0/3 0%")
    assert lines[-1].startswith("[things] 3/3 100%")
    assert len(lines) == 2  # quick work is not told step by step


def test_a_count_that_does_not_move_is_shown_again(log, monkeypatch):
    monkeypatch.setattr(sys.modules["workbench.runs.progress"], "QUIET_SECONDS", 0.03)
    with progress(label="slow", total=2) as step:
        until = time.monotonic() + 20
        while len(log.read_text().splitlines()) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    lines = log.read_text().splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("[slow] 0/2 0%") for line in lines)
    assert not step.beat(), "closed: its thread ends"
    step = progress(label="full", total=1)
    step()
    assert not step.beat(), "all is done: its thread ends, though nobody closed it"


def test_work_that_stops_early_says_where(log):
    for item in progress(range(9), "things"):
        if item == 4:
            break
    assert log.read_text().splitlines()[-1].startswith("[things] 4/9 44%")


def test_the_callback_may_be_called_from_threads(log):
    with progress(label="trials", total=400) as step:
        threads = [threading.Thread(target=lambda: [step(1) for _ in range(100)]) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert log.read_text().splitlines()[-1].startswith("[trials] 400/400 100%")


def test_plain_lines_on_stderr_where_nobody_watches(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROGRESS", "plain")
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    list(progress("ab", "letters"))
    say("two\nlines\x07")
    assert stderr.getvalue().splitlines()[-1] == "two lines"
    assert "[letters] 2/2" in stderr.getvalue()


def test_a_terminal_gets_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("WORKBENCH_PROGRESS", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    list(progress(range(3), "things"))
    assert "3/3" in terminal.getvalue()
    assert "\r" in terminal.getvalue()


def test_progress_never_ends_the_work(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROGRESS", "/nonexistent/folder/file")
    assert list(progress([1], "things")) == [1]


def test_a_follower_shows_whole_lines_once(tmp_path):
    path, seen = tmp_path / "log", []
    path.write_text("old\n")
    follower = Follower(path, seen.append, interval=0.01)
    with path.open("a") as file:
        file.write("one\ntw")
        file.flush()
        file.write("o\n")
    follower.close()
    assert seen == ["one", "two"]


def test_what_is_shown_is_one_printable_line():
    assert clean("a\x1b]0;title\x07b\n\u202ec" + "x" * 1000).startswith("a ]0;title b  c")
    assert len(clean("x" * 1000)) == 300
