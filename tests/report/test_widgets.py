"""Widgets without a browser: traits are what a front end sees, and setting one is what it does."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

from report_rows import HOSTILE, admission

from workbench.report.pool_table import PoolTable
from workbench.report.progress_view import ProgressView
from workbench.report.trace_viewer import TraceViewer
from workbench.report.widget import STATIC, esc, visible


def html_of(widget) -> str:
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"] == repr(widget)
    assert len(repr(widget)) < 400
    assert "0x" not in repr(widget)
    return data["text/html"]


def trial() -> dict:
    turns = [
        {
            "index": 0,
            "text": f"look {HOSTILE}",
            "command": "ls",
            "observation": "a\nb",
            "exit_code": 0,
            "model_seconds": 1.0,
        },
        {"index": 1, "text": "done", "command": None, "observation": "", "exit_code": None, "completion_tokens": 7},
    ]
    return {
        "id": "t1", "task": HOSTILE, "agent": "terminal", "model": "m", "outcome": "graded", "reward": 0.5,
        "tests": {f"test_{HOSTILE}": "passed", "test_b": "failed"}, "episodes": [{"turns": turns}],
        "steps": [{"stdout": HOSTILE}], "usd": float("nan"),
    }  # fmt: skip


def test_pool_table_filters_and_sorts(admissions):
    table = PoolTable.of_admissions(admissions)
    assert table.statuses == ["admitted", "no verdict", "refused"]
    assert len(table.visible_rows) == 5
    table.status = "refused"
    assert [r["task"] for r in table.visible_rows] == ["no-build", "weak", "easy"]
    table.sort_by = "task"
    assert [r["task"] for r in table.visible_rows] == ["easy", "no-build", "weak"]
    table.descending = True
    assert [r["task"] for r in table.visible_rows] == ["weak", "no-build", "easy"]
    table.query = "CALIBRATION easy"
    assert [r["task"] for r in table.visible_rows] == ["easy"]
    assert repr(table) == "PoolTable(1 of 5 rows)"
    table.query, table.status, table.sort_by, table.descending = "", "", "rewards", False
    assert [r["task"] for r in table.visible_rows][:2] == ["good", "easy"]  # by mean; tasks without rewards last


def test_an_empty_pool_table():
    assert "0 of 0 rows" in html_of(PoolTable([]))


def test_trace_viewer_shows_one_trial(run):
    run.path("traces", "t1.json").write_text(json.dumps({**trial(), "usd": {"$float": "nan"}}))
    viewer = TraceViewer.of_trial(run, "t1")
    assert viewer.turns[0]["command"] == "ls"
    assert viewer.turns[1]["head"] == "turn 1 · 7 tokens"
    assert ["usd", "–"] in viewer.facts
    assert viewer.matches == [0, 1]
    viewer.query = "LOOK"
    assert viewer.matches == [0]
    assert "1 of 2 tests passed" in repr(viewer)


def test_a_trial_without_a_trace_is_shown_from_its_record(run):
    run.record("trial", {"task": "t", "agent": "oracle", "outcome": "graded", "reward": 1.0}, id="x")
    assert ["reward", "1"] in TraceViewer.of_trial(run, "x").facts
    with pytest.raises(KeyError, match="no trial 'y'"):
        TraceViewer.of_trial(run, "y")
    with pytest.raises(KeyError, match="no trial"):
        TraceViewer.of_trial(run, "../params")


def test_progress_view_follows_a_journal(run):
    view = ProgressView(run, follow=False)
    assert view.counts == {"attempt": 1}
    run.record("admission", admission(HOSTILE, "noop", kind="noop-passes"))
    run.record("trial", {"task": "t", "agent": "terminal", "outcome": "graded", "reward": 0.25})
    (run.folder / "progress.log").write_text("[trials] 1/2 50%\n")
    view.refresh()
    assert view.counts == {"attempt": 1, "admission": 1, "trial": 1}
    assert view.latest[0] == "t: terminal reward 0.25"
    assert "refused (noop-passes)" in view.latest[1]
    assert view.lines == ["[trials] 1/2 50%"]
    assert view.state == "interactive"
    run.write_status("done", 0)
    view.refresh()
    assert view.over
    assert "done" in repr(view)
    view.close()


def test_progress_view_follows_by_itself_until_the_run_is_over(run):
    import time

    view = ProgressView(run)
    run.record("thing", {})
    run.write_status("done", 0)
    deadline = time.monotonic() + 20
    while not view.over and time.monotonic() < deadline:
        time.sleep(0.05)
    assert view.counts == {"attempt": 1, "thing": 1}


def test_hostile_text_is_text(run, admissions):
    run.record("admission", admission(HOSTILE, "noop", kind=HOSTILE))
    widgets = [
        PoolTable([{"task": HOSTILE, "status": HOSTILE}]),
        TraceViewer(trial()),
        ProgressView(run, follow=False),
    ]
    for widget in widgets:
        html = html_of(widget)
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        for sign in ("\x1b", "\u202e"):
            assert sign not in html
            assert sign not in json.dumps(
                widget.get_state(["title"] if widget.has_trait("title") else ["shown"]), ensure_ascii=False
            )


def test_every_text_of_a_widget_is_cut():
    assert len(visible("x" * 10**6)) < 30_000
    assert "characters more" in visible("x" * 10**6)
    assert esc('"<&') == "&quot;&lt;&amp;"


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda p: p.name)
def test_scripts_never_parse_markup_and_load_nothing(path):
    source = path.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc", source)
    assert not re.search(r"https?:|import\s*\(|^import ", source, re.MULTILINE)
    assert ("export default { render }" in source) != path.name.endswith(
        "_parts.js"
    )  # parts stand before another script


def test_widgets_are_static_html_in_a_headless_notebook(run, tmp_path):
    pytest.importorskip("papermill", reason="the notebook extra is not installed")
    from workbench.runs.notebooks import run_notebook

    sources = [
        ["parameters", 'profile: str = "smoke"  # which\nfolder: str = ""  # of a run'],
        [
            "",
            "from workbench.report.pool_table import PoolTable\nfrom workbench.report.progress_view import ProgressView\n"
            "from workbench.report.trace_viewer import TraceViewer\nfrom workbench.runs import open_run",
        ],
        ["", "ProgressView(open_run(folder))"],
        ["", 'PoolTable([{"task": "<b>x", "status": "active"}])'],
        ["", 'TraceViewer.of_trial(open_run(folder), "x")'],
    ]
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {"tags": [tag]}, "outputs": [], "source": source}
        for tag, source in sources
    ]
    path = tmp_path / "60_widgets.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    run.record("trial", {"task": "t", "agent": "oracle", "outcome": "graded", "reward": 1.0}, id="x")
    folders = []
    assert run_notebook(path, {"folder": str(run.folder)}, show=print, started=lambda r: folders.append(r.folder)) == 0
    executed = json.loads((folders[0] / "executed.ipynb").read_text())
    shown = ["".join(c["outputs"][0]["data"]["text/html"]) for c in executed["cells"][-3:]]
    assert "<td>trial</td><td>1</td>" in shown[0]
    assert "&lt;b&gt;x" in shown[1]
    assert "oracle" in shown[2]
