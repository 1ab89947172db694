"""The pool, to be looked into: a table to filter and sort, and of the chosen environment its verdict, files, tests, attempts,
and lineage. An attempt that is chosen opens below, turn by turn."""

from __future__ import annotations

from typing import Any

import traitlets

from workbench.report.explore_data import PoolData, files_of, pairs, text_of
from workbench.report.explore_panel import Browser, Panel
from workbench.report.lineage import SEED, draw_lineage, lineage_of, png
from workbench.report.live_state import number, short
from workbench.report.pool_table import PoolTable
from workbench.report.widget import show
from workbench.runs.folder import Run, find_run, open_run

TABS = ["verdict", "files", "tests", "attempts", "lineage"]
HELD = "round parent direction status reasons message mean std rewards proposer_reward digest path"
JUDGED = "stage valid_paper validated admitted reward"
ASKED = "parent direction way pass_rate failure quote"
ATTEMPTS = "id agent role outcome reward turns seconds"


class EnvironmentPanel(Panel):
    """One environment of a pool. environment: its id, "" for none. show(id) changes it; a choice among attempts sets `opened`, one in the lineage shows that one."""

    environment = traitlets.Unicode("")

    def __init__(self, data: PoolData):
        self.data = data
        self.lineage = lineage_of(data.environments, data.assignments)
        self.opened: dict[str, Any] | None = None
        super().__init__(tabs=TABS, title="no environment chosen")
        self.tab = TABS[0]

    def show(self, environment: str) -> None:
        """KeyError when the pool has no such environment."""
        if environment not in self.data.environments:
            raise KeyError(f"no environment {short(environment)!r}: the pool has {len(self.data.environments)}")
        self.environment = environment
        self.item = ""
        self.draw()

    def draw(self) -> None:
        if not self.environment:
            self.items, self.blocks = (
                [],
                [{"kind": "note", "text": "choose an environment in the table: a click, or Enter on its row"}],
            )
            return
        row = self.data.environments[self.environment]
        self.title = short(f"{self.environment} · {row.get('task', '')} · {row.get('status', '')}")
        with self.hold_sync():
            getattr(self, f"_{self.tab}")(row)

    def _verdict(self, row: dict[str, Any]) -> None:
        verdict = self.data.admissions.get(self.environment, {})
        asked = self.data.assignments.get(self.environment, {})
        reasons = [r for r in verdict.get("reasons") or [] if isinstance(r, dict)][:20]
        cells = [[short(r.get(k, "")) for k in ("stage", "kind", "message")] for r in reasons]
        self.items = []
        self.blocks = [
            {"kind": "facts", "name": "standing", "rows": pairs(row, HELD)},
            {"kind": "facts", "name": "verdict of the gate", "rows": pairs(verdict, JUDGED) + _stages(verdict)},
            *(
                [{"kind": "table", "name": "reasons", "columns": ["stage", "kind", "message"], "rows": cells}]
                if cells
                else []
            ),
            *([{"kind": "facts", "name": "assignment", "rows": pairs(asked, ASKED)}] if asked else []),
        ]

    def _files(self, row: dict[str, Any], below: str = "") -> None:
        folder = self.data.folder_of(self.environment)
        if folder is None:
            self.items, self.blocks = [], [{"kind": "note", "text": "its files are not on this machine"}]
            return
        found = [(name, what) for name, what in files_of(folder) if name.startswith(below)]
        self.items = [[name, [short(name, 120), short(what, 80)]] for name, what in found]
        chosen = self.item or next((n for n, _ in found if n == "instruction.md" or (below and n.endswith(".py"))), "")
        text = {"kind": "text", "name": short(chosen), "text": text_of(folder, chosen)} if chosen else None
        self.blocks = [text or {"kind": "note", "text": "choose a file" if found else "none"}]

    def _tests(self, row: dict[str, Any]) -> None:
        self._files(row, "tests/")

    def _attempts(self, row: dict[str, Any]) -> None:
        found = self.data.attempts_of(self.environment)
        self.items = [
            [str(n), [short(show(a.get(c)), 60) for c in ("id", "agent", "outcome", "reward")]]
            for n, a in enumerate(found)
        ]
        report = self.data.admissions.get(self.environment, {}).get("report")
        measured = report.get("calibration") if isinstance(report, dict) else None
        facts = pairs(measured, "n mean std in_band posterior keep rewards") if isinstance(measured, dict) else []
        self.opened = found[int(self.item)] if self.item.isdecimal() and int(self.item) < len(found) else None
        rows = pairs(self.opened, ATTEMPTS) if self.opened else []
        self.blocks = [
            {"kind": "facts", "name": "calibration", "rows": facts}
            if facts
            else {"kind": "note", "text": "not calibrated"},
            {"kind": "facts", "name": "attempt, opened below", "rows": rows}
            if rows
            else {"kind": "note", "text": "choose an attempt to open it"},
        ]

    def _lineage(self, row: dict[str, Any]) -> None:
        if self.item and self.item in self.data.environments and self.item != self.environment:
            self.show(self.item)
            return
        family = self.lineage.family(self.environment)
        self.picture = png(draw_lineage(self.lineage, family, self.environment)[0])
        up, down = self.lineage.ancestors(self.environment), self.lineage.children.get(self.environment, [])
        rows = [("from", n) for n in up] + [("itself", self.environment)] + [("to", n) for n in down]
        known = self.data.environments
        labels = [[how, short(n.removeprefix(SEED), 80), short(self.lineage.status[n], 20)] for how, n in rows]
        self.items = [[n if n in known else f"#{i}", labels[i]] for i, (_, n) in enumerate(rows)]
        text = f"ancestors: {len(up)}, children: {len(down)}; drawn, with all descendants: {len(family)}"
        self.blocks = [
            {"kind": "note", "text": text},
            {"kind": "picture", "text": f"the lineage of {short(self.environment)}"},
        ]


def _stages(verdict: dict[str, Any]) -> list[list[str]]:
    """The gate's rewards by agent and seconds by stage."""
    rewards = [[f"rewards of {short(k, 40)}", short(show(v))] for k, v in _entries(verdict.get("rewards"))]
    seconds = {k: n for k, v in _entries(verdict.get("seconds")) if (n := number(v)) is not None}
    return rewards + ([["seconds", short(", ".join(f"{k} {n:.1f}" for k, n in seconds.items()))]] if seconds else [])


def _entries(value: Any) -> list[tuple[str, Any]]:
    return list(value.items())[:20] if isinstance(value, dict) else []


class PoolBrowser(Browser):
    """table: the PoolTable. panel: the EnvironmentPanel of the chosen row. viewer: of the attempt that was opened."""

    def __init__(self, run: Run | str):
        self.data = PoolData(run if isinstance(run, Run) else open_run(find_run(run)))
        self.panel = EnvironmentPanel(self.data)
        self.ids = list(self.data.environments)
        self.table = PoolTable([self._row(i) for i in self.ids])
        super().__init__(self.table, self.panel)
        self.table.observe(self._selected, "selected")
        self.panel.observe(self._opened, ["item", "tab"])
        self.panel.observe(lambda c: self.table.set_trait("selected", self.ids.index(c["new"])), "environment")

    def open(self, environment: str | None = None) -> Any:
        """Show an environment by its id, as a click on its row does. (Without one: what ipywidgets means by it.)"""
        return super().open() if environment is None else self.panel.show(environment)

    def _row(self, key: str) -> dict[str, Any]:
        row = self.data.environments[key]
        cells = {c: short(row.get(c) or "", 60) for c in ("task", "parent", "direction", "status")}
        reasons = row.get("reasons") if isinstance(row.get("reasons"), list) else []
        return {
            "id": short(key, 60), "round": number(row.get("round")), **cells, "reasons": short(", ".join(map(str, reasons[:6])), 120),
            "mean": number(row.get("mean")), "std": number(row.get("std")), "attempts": len(self.data.attempts_of(key)),
            "children": len(self.panel.lineage.children.get(key, [])),
        }  # fmt: skip

    def _selected(self, change: Any) -> None:
        if 0 <= change["new"] < len(self.ids) and self.ids[change["new"]] != self.panel.environment:
            self.panel.show(self.ids[change["new"]])

    def _opened(self, _: Any) -> None:
        opened = self.panel.opened if self.panel.tab == "attempts" else None
        self.show_trial(self.data.trial(opened) if opened else None)


__all__ = ["EnvironmentPanel", "PoolBrowser"]
