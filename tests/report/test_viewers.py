"""The viewer of traces, two trials side by side, and the search over many: without a browser."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

from report_rows import HOSTILE

from workbench.report.compare_view import CompareView
from workbench.report.trace_search import TraceSearch
from workbench.report.trace_viewer import PAGE, TraceViewer
from workbench.traces.trace import Result, ToolCall, Trace, TraceInfo, TraceStep, Usage


def trial(name: str, phi: tuple[float, ...] = (0.25, 0.25, 1.0), failed: str = "", task: str = "t") -> dict:
    turns = [
        {"index": i, "command": f"echo {name} {i}", "observation": f"{name} {i}", "exit_code": 0, "prompt_tokens": 100,
         "completion_tokens": 7, "usd": 0.002, "progress": p, "model_seconds": 0.5}
        for i, p in enumerate(phi)
    ]  # fmt: skip
    tests = {"a": "passed", "b": "failed" if failed == "b" else "passed"}
    steps = [{"reward": 0.5, "rewards": {"reward": 0.5, "passed": 0.0}, "tests": tests, "stdout": f"ran {name}"}]
    return {
        "id": name, "task": task, "agent": "terminal", "model": "m", "outcome": "graded", "reward": 0.5, "usd": 0.006,
        "prompt_tokens": 300, "tests": tests, "steps": steps, "episodes": [{"turns": turns}],
    }  # fmt: skip


def test_a_trial_shows_rewards_progress_tokens_and_cost():
    viewer = TraceViewer(trial("one"))
    facts = dict(viewer.facts)
    assert facts["rewards"] == "reward 0.5, passed 0"
    assert facts["Φ at the end"] == "1"
    assert (facts["outcome"], facts["usd"], facts["prompt_tokens"]) == ("graded", "0.006", "300")
    assert viewer.progress == [0.25, 0.25, 1.0]
    heads = [turn["head"] for turn in viewer.turns]
    assert heads[0] == "turn 0 · exit 0 · 100 → 7 tokens · $0.002 · 0.5 s · Φ 0.25 (+0.25)"
    assert heads[1].endswith("Φ 0.25")
    assert heads[2].endswith("Φ 1 (+0.75)")
    assert viewer.tests == [["a", "passed"], ["b", "passed"]]
    assert "<svg" in viewer.static_html()
    assert TraceViewer({**trial("x"), "episodes": []}).progress == []


def test_a_long_trial_is_sent_a_page_at_a_time():
    viewer = TraceViewer(trial("long", phi=(0.0,) * 500))
    assert (len(viewer.page), viewer.counts) == (PAGE, [500, 500])
    assert "450 more turns" in viewer.static_html()
    viewer.limit = 250
    assert len(viewer.page) == 250
    viewer.query = "long 499"
    assert viewer.counts == [1, 500]
    assert viewer.limit == PAGE
    assert "turns" not in viewer.get_state()


def test_a_trace_of_any_agent():
    steps = (
        TraceStep("user", "go"),
        TraceStep("agent", "Looking.", calls=(ToolCall("1", "Read", '{"file_path": "/a"}'), ToolCall("2", "bash", '{"command": "ls"}')),
                  results=(Result("text", "1"), Result("no such file", "2", error=True)), usage=Usage(90, 12, usd=0.01)),
    )  # fmt: skip
    viewer = TraceViewer.of_trace(Trace(TraceInfo("claude-code", "claude-code", model="m"), steps), "s.jsonl")
    assert [turn["command"] for turn in viewer.turns] == ["", "file_path: /a", "ls"]
    assert "90 → 12 tokens · $0.01" in viewer.turns[0]["head"]
    assert "tokens" not in viewer.turns[1]["head"]
    assert [turn["failed"] for turn in viewer.turns] == ["", "", "yes"]
    assert ["prompt_tokens", "90"] in viewer.facts
    assert repr(viewer) == "TraceViewer(s.jsonl · claude-code · m, 3 turns)"


def test_two_trials_side_by_side(run):
    for name, failed in (("one", ""), ("two", "b")):
        run.path("traces", f"{name}.json").write_text(json.dumps(trial(name, failed=failed)))
    view = CompareView.of_trials(run, "one", "two")
    assert view.differing == ["b"]
    assert ["b", "passed", "failed"] in view.tests
    assert ["reward", "0.5", "0.5"] in view.facts
    assert [side["counts"] for side in view.sides] == [[3, 3], [3, 3]]
    view.query = "two 1"
    assert [side["counts"] for side in view.sides] == [[0, 3], [1, 3]]
    view.query = ""
    html = view.static_html()
    assert "<td>b</td><td>passed</td><td>failed</td><td>≠</td>" in html
    assert "echo one 0" in html
    assert "echo two 2" in html
    assert "1 of 2 tests differ" in repr(view)
    with pytest.raises(ValueError, match="compare within one"):
        CompareView(trial("one"), trial("x", task="another"))
    with pytest.raises(KeyError, match="no trial 'three'"):
        CompareView.of_trials(run, "one", "three")


@pytest.fixture
def folder(tmp_path):
    for i in range(30):
        text = f"needle {HOSTILE}" if i % 10 == 3 else "hay"
        steps = [{"step_id": 1, "source": "user", "message": "go"}]
        steps += [{"step_id": n, "source": "agent", "message": f"{text} {i} {n}"} for n in range(2, 12)]
        trace = {
            "schema_version": "ATIF-v1.6",
            "session_id": str(i),
            "agent": {"name": "a", "version": "1"},
            "steps": steps,
        }
        (tmp_path / f"t{i:02d}.json").write_text(json.dumps(trace))
    (tmp_path / "other.json").write_text('["needle"]')
    return tmp_path


def test_find_over_many_traces(folder):
    view = TraceSearch(folder, "NEEDLE")
    assert len(view.found) == 30
    assert view.hits[0]["file"] == "t03.json"
    assert view.hits[0]["match"] == "needle"
    assert view.status.startswith("30 turns in 31 files, ")
    view.selected = 2
    assert view.shown["title"] == "t03.json, turn 3 of 10"
    assert [t["now"] for t in view.shown["turns"]] == [False, False, True, False, False, False]
    assert view.viewer(2).counts == [10, 10]
    view.find("no such words")
    assert (view.hits, view.selected, view.shown) == ([], -1, {})
    assert TraceSearch(folder, "hay", limit=5).status.startswith("the first 5 turns")
    with pytest.raises(FileNotFoundError, match="no such trace or folder"):
        TraceSearch(folder / "none")


def test_typing_searches_in_the_background_and_the_last_query_counts(folder):
    view = TraceSearch(folder)
    for query in ("n", "ne", "hay 29", "needle"):
        view.query = query
    deadline = time.monotonic() + 20
    while "30 turns in" not in view.status and time.monotonic() < deadline:
        time.sleep(0.02)
    assert {hit["match"] for hit in view.hits} == {"needle"}
    view.query = ""
    while view.hits and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (view.hits, view.status) == ([], "")


def test_hostile_text_is_text(folder):
    search = TraceSearch(folder, "needle")
    search.selected = 0
    record = {**trial(HOSTILE, task=HOSTILE), "message": HOSTILE}
    for widget in (search, CompareView(record, record), TraceViewer(record)):
        data, _ = widget._repr_mimebundle_()
        assert "&lt;script&gt;" in data["text/html"]
        assert "<script" not in data["text/html"]
        state = {k: v for k, v in widget.get_state().items() if k not in ("layout", "tabbable", "tooltip")}
        shown = json.dumps(state, ensure_ascii=False, default=str) + data["text/html"] + repr(widget)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
