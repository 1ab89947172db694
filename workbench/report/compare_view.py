"""Two trials of one task side by side: what differs in facts and tests, and both ways turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from workbench.report import trial_text as texts
from workbench.report.trace_viewer import PAGE, trial_record
from workbench.report.widget import STATIC, View, esc, html_table, show
from workbench.runs.folder import Run


class CompareView(View):
    """facts, tests: [[name, left, right], …], "–" where a side has none. `query` keeps the turns that contain it, on both
    sides. turns: all turns of (left, right). sides: what is sent of each: title, progress, the first `limit` that match."""

    _esm = STATIC / "trace_viewer.js"
    facts = traitlets.List().tag(sync=True)
    tests = traitlets.List().tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    limit = traitlets.Int(PAGE).tag(sync=True)
    sides = traitlets.List().tag(sync=True)

    def __init__(self, left: Mapping[str, Any], right: Mapping[str, Any]):
        """left, right: records as TraceViewer takes them. ValueError when they are trials of different tasks."""
        if left.get("task") != right.get("task"):
            raise ValueError(f"trials of two tasks, {left.get('task')!r} and {right.get('task')!r}: compare within one")
        pair = (left, right)
        self._heads = [
            {"title": texts.title_of(t), "progress": texts.progress_of(t), "verifier": texts.verifier_of(t)}
            for t in pair
        ]
        self.turns = [texts.turns_of(t) for t in pair]
        super().__init__(
            facts=_joined(*(texts.facts_of(t) for t in pair)),
            tests=_joined(*(texts.tests_of(t) for t in pair)),
        )
        self._update()

    @classmethod
    def of_trials(cls, run: Run, left: str, right: str) -> CompareView:
        """By the ids of two trials of a run."""
        return cls(trial_record(run, left), trial_record(run, right))

    @traitlets.observe("query")
    def _searched(self, _: Any) -> None:
        self.limit = PAGE
        self._update()

    @traitlets.observe("limit")
    def _changed(self, _: Any) -> None:
        self._update()

    def _update(self) -> None:
        sides = []
        for head, turns in zip(self._heads, self.turns, strict=True):
            found = texts.matching(turns, self.query)
            page = [turns[i] for i in found[: max(self.limit, 0)]]
            sides.append({**head, "page": page, "counts": [len(found), len(turns)]})
        self.sides = sides

    @property
    def differing(self) -> list[str]:
        """Names of the tests that ended differently."""
        return [name for name, left, right in self.tests if left != right]

    def summary(self) -> str:
        names = " and ".join(head["title"] for head in self._heads)
        return f"{names}: {len(self.differing)} of {len(self.tests)} tests differ"

    def static_html(self) -> str:
        facts, tests = (_table(name, rows) for name, rows in (("what", self.facts), ("test", self.tests)))
        columns = "".join(
            f'<div class="wb-side"><b>{esc(head["title"])}</b>{texts.progress_svg(head["progress"])}'
            f"{texts.turns_html(side['page'], side['counts'][0])}</div>"
            for head, side in zip(self._heads, self.sides, strict=True)
        )
        return f'<div class="wb-view"><p>{esc(self.summary())}</p>{facts}{tests}<div class="wb-sides">{columns}</div></div>'


def _joined(left: list[list[str]], right: list[list[str]]) -> list[list[str]]:
    """[[name, left, right], …] in the order of the left, then what only the right has."""
    a, b = dict(left), dict(right)
    return [[name, a.get(name, show(None)), b.get(name, show(None))] for name in {**a, **b}]


def _table(name: str, rows: list[list[str]]) -> str:
    columns = [name, "left", "right", "differs"]
    return html_table(columns, [dict(zip(columns, [*r, "≠" if r[1] != r[2] else ""], strict=True)) for r in rows])
