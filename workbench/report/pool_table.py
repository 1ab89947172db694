"""What was admitted, and why the rest was not: a table to filter and sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import traitlets

from workbench.report.tables import admission_table, records
from workbench.report.widget import STATIC, View, esc, html_table, show, visible

if TYPE_CHECKING:
    import pandas as pd

STATIC_ROWS = 200


class PoolTable(View):
    """Rows of environments. Filter by `status` and `query`, sort by `sort_by`; `visible_rows` follows.

    rows: dicts with the same keys, one of them `status_column`. selected: the index in `rows` of the row that was
    clicked, -1 when none. Filtering and sorting happen here, so a script and a front end see the same.
    """

    _esm = STATIC / "pool_table.js"
    columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    statuses = traitlets.List(traitlets.Unicode()).tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    sort_by = traitlets.Unicode("").tag(sync=True)
    descending = traitlets.Bool(False).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    shown = traitlets.List().tag(sync=True)  # [{"index": i, "cells": [text, …]}, …]
    total = traitlets.Int(0).tag(sync=True)

    def __init__(self, rows: pd.DataFrame | Sequence[dict[str, Any]], status_column: str = "status"):
        self.rows = [dict(r) for r in (rows if isinstance(rows, list | tuple) else records(rows))]
        self.status_column = status_column
        columns = list(self.rows[0]) if self.rows else []
        found = dict.fromkeys(str(r.get(status_column, "")) for r in self.rows)
        super().__init__(columns=columns, statuses=sorted(filter(None, found)), total=len(self.rows))
        self._update()

    @classmethod
    def of_admissions(cls, admissions: pd.DataFrame) -> PoolTable:
        """The table of a run's `admission` records."""
        return cls(admission_table(admissions), "verdict")

    @traitlets.observe("status", "query", "sort_by", "descending")
    def _changed(self, _: Any) -> None:
        self._update()

    def _update(self) -> None:
        cells = [[visible(show(row.get(c))) for c in self.columns] for row in self.rows]
        self.shown = [{"index": i, "cells": cells[i]} for i in self._order()]

    def _order(self) -> list[int]:
        words = self.query.lower().split()
        keep = [i for i, row in enumerate(self.rows) if self._matches(row, words)]
        if self.sort_by in self.columns:
            keep.sort(key=lambda i: _sort_key(self.rows[i].get(self.sort_by)), reverse=self.descending)
        return keep

    def _matches(self, row: dict[str, Any], words: list[str]) -> bool:
        if self.status and str(row.get(self.status_column, "")) != self.status:
            return False
        text = " ".join(show(v) for v in row.values()).lower()
        return all(word in text for word in words)

    @property
    def visible_rows(self) -> list[dict[str, Any]]:
        """The rows that the filter lets through, in order."""
        return [self.rows[entry["index"]] for entry in self.shown]

    def summary(self) -> str:
        return f"{len(self.shown)} of {self.total} rows"

    def static_html(self) -> str:
        rest = len(self.shown) - STATIC_ROWS
        more = f"<p>{rest} more rows</p>" if rest > 0 else ""
        table = html_table(self.columns, self.visible_rows[:STATIC_ROWS])
        return f'<div class="wb-view"><p>{esc(self.summary())}</p>{table}{more}</div>'


def _sort_key(value: Any) -> tuple[int, Any]:
    """Numbers, then text, then what is absent; lists by their mean."""
    if isinstance(value, list | tuple):
        value = sum(value) / len(value) if value and all(isinstance(v, int | float) for v in value) else None
    if value is None or value != value:
        return (2, "")
    return (0, float(value)) if isinstance(value, int | float) else (1, str(value).lower())
