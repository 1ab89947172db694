"""Find text in the turns of many traces, and read what stands around it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import traitlets

from workbench.report.trace_viewer import TraceViewer
from workbench.report.turn_text import FOLDED, GLANCE, blocks, head
from workbench.report.widget import STATIC, View, esc, html_table, visible
from workbench.traces.reading import read_trace
from workbench.traces.search import Hit, search, trace_files
from workbench.traces.turns import turns

AROUND = 3  # turns before and after the one that was found
TELL_SECONDS = 0.2  # between two looks at what was found so far


class TraceSearch(View):
    """A line to type in, the turns that hold it, and the one that was chosen.

    query: what is shown; setting it searches in the background and a newer query ends an older one. `find` waits instead.
    hits: the first `limit`, as texts. status: how far the search is. selected: position in `hits`, -1 for none. shown: the
    turn that was selected with its neighbours. Secrets are replaced before anything is looked at.
    """

    _esm = STATIC / "trace_search.js"
    query = traitlets.Unicode("").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    hits = traitlets.List().tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, paths: Iterable[Path | str] | Path | str, query: str = "", limit: int = 200):
        """paths: trace files, or folders with all the traces below them (a run's `traces/`, an import's folder)."""
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        self.paths, self.limit = [Path(p) for p in given], limit
        missing = [p for p in self.paths if not p.exists()]
        if missing:
            raise FileNotFoundError(f"no such trace or folder: {', '.join(map(str, missing))}")
        self.found: list[Hit] = []
        self.skipped: list[str] = []
        self._newest, self._waits = 0, False
        super().__init__()
        if query:
            self.find(query)

    def find(self, query: str) -> list[Hit]:
        """Search to the end, or to `limit` turns; returns what was found. skipped: files that are no traces, and why."""
        self._waits = True
        try:
            self.query = query
        finally:
            self._waits = False
        self._newest += 1
        self._search(query, self._newest)
        return self.found

    @traitlets.observe("query")
    def _asked(self, change: Any) -> None:
        if self._waits:
            return  # `find` does it itself
        self._newest += 1
        work = threading.Thread(
            target=self._search, args=(change["new"], self._newest), daemon=True, name="trace-search"
        )
        work.start()

    def _search(self, query: str, number: int) -> None:
        found, skipped = [], []
        start = told = time.monotonic()
        files = list(trace_files(self.paths)) if query else []
        self.selected = -1
        self._tell(number, found, skipped, f"0 of {len(files):,} files …" if query else "")
        for done, path in enumerate(files, 1):
            for hit in search([path], query, skipped=skipped):
                found.append(hit)
                if len(found) >= self.limit:
                    break
            if number != self._newest or len(found) >= self.limit:
                break
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                self._tell(number, found, skipped, f"{len(found)} turns in {done:,} of {len(files):,} files …")
        if not query:
            return
        what = (
            f"the first {len(found)} turns"
            if len(found) >= self.limit
            else f"{len(found)} turns in {len(files):,} files"
        )
        others = f", {len(skipped)} of them no traces" if skipped else ""
        self._tell(number, found, skipped, f"{what}{others}, {time.monotonic() - start:.2f} s")

    def _tell(self, number: int, found: list[Hit], skipped: list[str], status: str) -> None:
        if number != self._newest:
            return
        self.found, self.skipped = found, skipped
        with self.hold_sync():
            self.hits, self.status = [_told(hit, self.query) for hit in found], status

    @traitlets.observe("selected")
    def _chosen(self, _: Any) -> None:
        hit = self.found[self.selected] if 0 <= self.selected < len(self.found) else None
        self.shown = _around(hit) if hit else {}

    def viewer(self, hit: int = 0) -> TraceViewer:
        """The whole trace of a hit, by its position."""
        path = Path(self.found[hit].path)
        return TraceViewer.of_trace(read_trace(path), path.name)

    def summary(self) -> str:
        return f"{visible(self.query)!r}: {self.status}"

    def static_html(self) -> str:
        rows = [
            {"trace": h["file"], "turn": h["place"], "text": f"{h['before']}{h['match']}{h['after']}"}
            for h in self.hits
        ]
        return f'<div class="wb-view"><p>{esc(self.summary())}</p>{html_table(["trace", "turn", "text"], rows)}</div>'


def _told(hit: Hit, query: str) -> dict[str, str]:
    found = re.search(re.escape(query), hit.snippet, re.IGNORECASE)
    start, end = found.span() if found else (0, 0)
    place = f"step {hit.step}" + (f", call {hit.call}" if hit.call > 1 else "")
    return {
        "file": visible(Path(hit.path).name),
        "place": f"{place}, {hit.field}",
        "before": _line(hit.snippet[:start]),
        "match": _line(hit.snippet[start:end]),
        "after": _line(hit.snippet[end:]),
    }


def _line(text: str) -> str:
    return visible(text.replace("\n", " ⏎ "))


def _around(hit: Hit) -> dict[str, Any]:
    """{"title", "turns": [{"head", "blocks", "now"}, …]} of the turn and its neighbours."""
    views = turns(read_trace(Path(hit.path)))
    place = next((i for i, turn in enumerate(views) if (turn.step, turn.call) == (hit.step, hit.call)), 0)
    near = views[max(0, place - AROUND) : place + AROUND + 1]
    return {
        "title": visible(f"{Path(hit.path).name}, turn {place + 1} of {len(views)}"),
        "turns": [
            {"head": head(t), "now": t is views[place], "blocks": blocks(t, FOLDED if t is views[place] else GLANCE)}
            for t in near
        ],
    }
