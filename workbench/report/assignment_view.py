"""What the proposer was asked for: of each assignment the parent, its pass rate, how attempts at it fail with a line that shows
it, and what came of the answer. An attempt that is named as evidence opens below, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.report.explore_data import PoolData, pairs
from workbench.report.explore_panel import Browser, Panel
from workbench.report.live_state import number, short
from workbench.report.widget import show
from workbench.runs.folder import Run, find_run, open_run

ASKED = "round parent direction way pass_rate failure parent_digest"
ANSWERED = "proposer message seconds usd calls violations"
MOST_CLUSTERS = 50


class AssignmentPanel(Panel):
    """Tab "assignments": choose one. Tab "evidence": the attempts that it names; a choice sets `opened`."""

    def __init__(self, data: PoolData):
        self.data, self.assignment, self.opened = data, next(iter(data.assignments), ""), None
        self._by_id = {a["id"]: a for rows in data.attempts.values() for a in rows}
        super().__init__(tabs=["assignments", "evidence"], title=f"assignments: {len(data.assignments)}")
        self.tab = "assignments"

    def draw(self) -> None:
        if self.tab == "assignments" and self.item in self.data.assignments:
            self.assignment = self.item
        row = self.data.assignments.get(self.assignment, {})
        evidence = row.get("evidence")
        named = [str(t) for t in evidence[:50]] if isinstance(evidence, list) else []
        with self.hold_sync():
            if self.tab == "assignments":
                self.items = [[key, _cells(key, a)] for key, a in self.data.assignments.items()]
                self.blocks, self.opened = self._asked(row), None
            else:
                self.items = [[str(n), [short(t, 80), *self._attempt(t)]] for n, t in enumerate(named)]
                chosen = named[int(self.item)] if self.item.isdecimal() and int(self.item) < len(named) else None
                self.opened = self._by_id.get(chosen)
                missing = chosen is not None and self.opened is None
                text = "choose an attempt to open it" if named else "no attempt is named"
                text = "opened below" if self.opened else "it is not in this journal" if missing else text
                self.blocks = [{"kind": "note", "text": short(f"{self.assignment}: {text}")}]

    def _attempt(self, trial: str) -> list[str]:
        found = self._by_id.get(trial, {})
        return [short(show(found.get(name)), 40) for name in ("outcome", "reward")]

    def _asked(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        if not row:
            return [{"kind": "note", "text": "this run has no assignments"}]
        found = row.get("failures") if isinstance(row.get("failures"), Mapping) else {}
        clusters = [
            [short(show(n), 20), short(words), _quote(row, words)] for words, n in list(found.items())[:MOST_CLUSTERS]
        ]
        answer, verdict = self.data.proposals.get(self.assignment, {}), self.data.admissions.get(self.assignment, {})
        held = self.data.environments.get(self.assignment, {})
        columns = ["attempts", "how they failed", "a line that shows it"]
        return [
            {"kind": "facts", "name": short(f"assignment {self.assignment}"), "rows": pairs(row, ASKED)},
            {"kind": "table", "name": "failures, most common first", "columns": columns, "rows": clusters}
            if clusters
            else {"kind": "note", "text": "no failure: every attempt passed, or an older run that did not record them"},
            {"kind": "facts", "name": "answer", "rows": pairs(answer, ANSWERED) + pairs(verdict, "stage admitted") + pairs(held, "status reasons message")},
        ]  # fmt: skip


def _quote(row: Mapping[str, Any], words: str) -> str:
    """The assignment quotes the failure that it is about."""
    return (
        f"{short(row.get('quote'))} ({short(row.get('quoted', ''), 80)})"
        if row.get("quote") and words == row.get("failure")
        else ""
    )


def _cells(key: str, row: Mapping[str, Any]) -> list[str]:
    rate = number(row.get("pass_rate"))
    return [short(key, 40), short(row.get("parent", ""), 60), short(row.get("direction", ""), 20), show(rate)]


class AssignmentView(Browser):
    """panel: the AssignmentPanel. viewer: of the evidence that was opened."""

    def __init__(self, run: Run | str | PoolData):
        if not isinstance(run, PoolData):
            run = PoolData(run if isinstance(run, Run) else open_run(find_run(run)))
        self.data, self.panel = run, AssignmentPanel(run)
        super().__init__(self.panel)
        self.panel.observe(self._opened, ["item", "tab"])

    def _opened(self, _: Any) -> None:
        opened = self.panel.opened
        self.show_trial(self.data.trial(opened) if opened else None)


__all__ = ["AssignmentPanel", "AssignmentView"]
