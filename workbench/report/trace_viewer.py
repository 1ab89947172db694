"""One trial, or one trace of any agent, turn by turn: what was said and run, what was seen, what the tests said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traitlets

from workbench.report import trial_text as texts
from workbench.report.turn_text import title
from workbench.report.widget import STATIC, View, esc, html_table, visible
from workbench.runs.folder import Run
from workbench.runs.journal import restore
from workbench.traces.trace import Trace

PAGE = 50  # turns sent at a time


class TraceViewer(View):
    """A trial's record with its episodes. Observations are folded; `query` keeps the turns that contain it.

    facts: [[name, text], …]. tests: [[name, status], …]. progress: Φ after each turn, [] when the task has none.
    turns: all of them, as dicts of text. page: the first `limit` of those that match, which is what is sent.
    """

    _esm = STATIC / "trace_viewer.js"
    title = traitlets.Unicode().tag(sync=True)
    facts = traitlets.List().tag(sync=True)
    tests = traitlets.List().tag(sync=True)
    verifier = traitlets.Unicode().tag(sync=True)
    progress = traitlets.List().tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    limit = traitlets.Int(PAGE).tag(sync=True)
    page = traitlets.List().tag(sync=True)
    counts = traitlets.List([0, 0]).tag(sync=True)  # turns that match, of all
    turns = traitlets.List()

    def __init__(self, trial: Mapping[str, Any]):
        """trial: a record as in traces/<id>.json (Trial.to_row() with `episodes` and `steps`)."""
        progress = texts.progress_of(trial)
        super().__init__(
            title=texts.title_of(trial),
            facts=texts.facts_of(trial),
            turns=texts.turns_of(trial),
            tests=texts.tests_of(trial),
            verifier=texts.verifier_of(trial),
            progress=progress if any(p is not None for p in progress) else [],
        )
        self._update()

    @classmethod
    def of_trial(cls, run: Run, trial_id: str) -> TraceViewer:
        """The viewer of one trial of a run; of its record alone when the trial left no trace."""
        return cls(trial_record(run, trial_id))

    @classmethod
    def from_file(cls, path: Path) -> TraceViewer:
        return cls(read_trial(path))

    @classmethod
    def of_trace(cls, trace: Trace, name: str = "") -> TraceViewer:
        """The viewer of a trace of any agent. name: of its file."""
        viewer = cls({})
        viewer.title, viewer.facts = title(trace, name), texts.facts_of_trace(trace)
        viewer.turns = texts.turns_of_trace(trace)
        return viewer

    @property
    def matches(self) -> list[int]:
        """Positions in `turns` that `query` keeps."""
        return texts.matching(self.turns, self.query)

    @traitlets.observe("query")
    def _searched(self, _: Any) -> None:
        self.limit = PAGE
        self._update()

    @traitlets.observe("limit", "turns")
    def _changed(self, _: Any) -> None:
        self._update()

    def _update(self) -> None:
        matches = self.matches
        self.page = [self.turns[i] for i in matches[: max(self.limit, 0)]]
        self.counts = [len(matches), len(self.turns)]

    def summary(self) -> str:
        passed = sum(status == "passed" for _, status in self.tests)
        tests = f", {passed} of {len(self.tests)} tests passed" if self.tests else ""
        return f"{self.title}, {len(self.turns)} turns{tests}"

    def static_html(self) -> str:
        facts = html_table(["what", "value"], [{"what": k, "value": v} for k, v in self.facts])
        tests = html_table(["test", "status"], [{"test": k, "status": v} for k, v in self.tests]) if self.tests else ""
        turns = texts.turns_html(self.page, self.counts[0])
        verifier = f"<details><summary>verifier output</summary><pre>{esc(self.verifier)}</pre></details>"
        return (
            f'<div class="wb-view"><p><b>{esc(self.title)}</b></p>{facts}{texts.progress_svg(self.progress)}'
            f"{turns}{tests}{verifier * bool(self.verifier)}</div>"
        )


def trial_record(run: Run, trial_id: str) -> Mapping[str, Any]:
    """The record of a trial with its episodes, or without them when it left no trace. KeyError: no such trial."""
    path = run.folder / "traces" / f"{trial_id}.json"
    if path.resolve().parent == (run.folder / "traces").resolve() and path.is_file():
        return read_trial(path)
    rows = run.rows("trial")
    for row in reversed(rows):
        if row["id"] == trial_id:
            return row
    last = [row["id"] for row in rows][-1:]
    raise KeyError(f"no trial {visible(trial_id)!r} in {run.folder}: it has {len(rows)}, the last is {last}")


def read_trial(path: Path) -> Mapping[str, Any]:
    """A file of a run's `traces/`."""
    return json.loads(Path(path).read_text(encoding="utf-8"), object_hook=restore)
