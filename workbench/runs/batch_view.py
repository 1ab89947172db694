"""How far each run of a batch is: bars in a terminal, a widget in JupyterLab, plain lines where nobody watches."""

from __future__ import annotations

import html
import os
import sys
import threading
import time
from typing import Any

from workbench.runs.progress import PROGRESS_ENV, clean, describe, in_kernel, write_line

SECONDS_BETWEEN_LINES = 5.0  # of one run, in plain lines
SECONDS_BETWEEN_PAINTS = 0.3  # of the widget
DONE_BEFORE = "was done already"
MOST_ENDED = 500  # rows of the widget


class BatchView:
    """Plain lines. The other views replace `_show_*`; every method may be called from any thread.

    slot: which of the `jobs` places a run has while it is at work.
    """

    def __init__(self, notebook: str, total: int, jobs: int):
        self.notebook, self.total, self.jobs = notebook, total, jobs
        self.count, self.failed = 0, 0
        self.labels: dict[int, str] = {}
        self.begun = time.monotonic()
        self._lock = threading.RLock()
        self._spoke: dict[int, float] = {}
        self._spoke_before = 0.0

    def began(self, slot: int, label: str) -> None:
        with self._lock:
            self.labels[slot] = clean(label)
            self._show_began(slot)

    def at(self, slot: int, cell: int, cells: int) -> None:
        """Cell `cell` of `cells` (counted from 0) begins."""
        with self._lock:
            self._show_at(slot, cell, cells)

    def line(self, slot: int, text: str) -> None:
        """Something that the run printed."""
        with self._lock:
            self._show_line(slot, clean(text))

    def ended(self, slot: int, label: str, state: str, message: str, seconds: float, skipped: bool) -> None:
        with self._lock:
            self.count += 1
            self.failed += state == "failed"
            told = DONE_BEFORE if skipped else f"{state} in {seconds:.0f} s"
            self._show_ended(slot, clean(label), state, told, ": ".join(map(clean, message.splitlines())))
            self.labels.pop(slot, None)

    def close(self) -> None:
        """Nothing more will come."""

    def _show_began(self, slot: int) -> None:
        self._spoke[slot] = 0.0

    def _show_at(self, slot: int, cell: int, cells: int) -> None:
        self._speak(slot, f"cell {cell + 1} of {cells}")

    def _show_line(self, slot: int, text: str) -> None:
        self._speak(slot, text)

    def _speak(self, slot: int, text: str) -> None:
        now = time.monotonic()
        if now - self._spoke.get(slot, 0.0) >= SECONDS_BETWEEN_LINES:
            self._spoke[slot] = now
            write_line(f"[{self.labels.get(slot, '')}] {text}")

    def _show_ended(self, slot: int, label: str, state: str, told: str, message: str) -> None:
        now, last = time.monotonic(), self.count == self.total
        if told == DONE_BEFORE and not last and now - self._spoke_before < SECONDS_BETWEEN_LINES:
            return  # hundreds of them pass in a second
        self._spoke_before = now if told == DONE_BEFORE else self._spoke_before
        note = f"{label} {told}" + (f": {message}" if message else "")
        write_line(describe(self.notebook, self.count, self.total, time.monotonic() - self.begun, note))


class TerminalView(BatchView):
    """One bar for all, and one for each run at work."""

    def __init__(self, notebook: str, total: int, jobs: int):
        from tqdm import tqdm

        super().__init__(notebook, total, jobs)
        self._tqdm = tqdm
        self._all = tqdm(total=total, desc=clean(notebook), unit="run", position=0, dynamic_ncols=True, file=sys.stderr)
        self._bars: dict[int, Any] = {}

    def _show_began(self, slot: int) -> None:
        form = "{desc}: {n_fmt}/{total_fmt} cells {elapsed}{postfix}"
        self._bars[slot] = self._tqdm(
            desc=f"  {self.labels[slot]}", position=slot + 1, leave=False, bar_format=form, dynamic_ncols=True,
            total=0, file=sys.stderr,
        )  # fmt: skip

    def _show_at(self, slot: int, cell: int, cells: int) -> None:
        bar = self._bars[slot]
        bar.total, bar.n = cells, cell
        bar.refresh()

    def _show_line(self, slot: int, text: str) -> None:
        self._bars[slot].set_postfix_str(text[:100])

    def _show_ended(self, slot: int, label: str, state: str, told: str, message: str) -> None:
        self._bars.pop(slot).close()
        if state != "done":
            self._tqdm.write(f"{label}: {told}: {message}", file=sys.stderr)
        self._all.set_postfix_str(f"{self.failed} failed" if self.failed else "", refresh=False)
        self._all.update()

    def close(self) -> None:
        with self._lock:
            for bar in self._bars.values():
                bar.close()
            self._all.close()


class WidgetView(BatchView):
    """A bar and a table in JupyterLab."""

    def __init__(self, notebook: str, total: int, jobs: int):
        from IPython.display import display
        from ipywidgets import HTML, IntProgress, Layout, VBox

        super().__init__(notebook, total, jobs)
        wide = Layout(width="100%")
        self._bar = IntProgress(0, 0, total, description=f"0/{total}", layout=wide)
        self._table = HTML(layout=Layout(max_height="24em", overflow="auto"))
        self._now: dict[int, tuple[str, str]] = {}
        self._ended: list[tuple[str, str, str]] = []
        self._painted = 0.0
        self.widget = VBox([self._bar, self._table])
        display(self.widget)

    def _show_began(self, slot: int) -> None:
        self._now[slot] = ("starts", "")
        self._paint()

    def _show_at(self, slot: int, cell: int, cells: int) -> None:
        self._now[slot] = (f"cell {cell + 1} of {cells}", self._now[slot][1])
        self._paint()

    def _show_line(self, slot: int, text: str) -> None:
        self._now[slot] = (self._now[slot][0], text[:200])
        self._paint()

    def _show_ended(self, slot: int, label: str, state: str, told: str, message: str) -> None:
        self._now.pop(slot)
        self._ended.append((label, told, message))
        self._bar.value, self._bar.description = self.count, f"{self.count}/{self.total}"
        self._bar.bar_style = "danger" if self.failed else ""
        self._paint()

    def _paint(self, now: bool = False) -> None:
        if not now and time.monotonic() - self._painted < SECONDS_BETWEEN_PAINTS:
            return
        self._painted = time.monotonic()
        live = [(self.labels.get(slot, ""), *what) for slot, what in sorted(self._now.items())]
        rows = [*live, *reversed(self._ended[-MOST_ENDED:])]
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        self._table.value = f"<table><tr><th>run</th><th>state</th><th>last line</th></tr>{body}</table>"

    def close(self) -> None:
        with self._lock:
            self._paint(now=True)


def choose_view(notebook: str, total: int, jobs: int) -> BatchView:
    """The view that whoever watches can see."""
    if os.environ.get(PROGRESS_ENV):
        return BatchView(notebook, total, jobs)
    if in_kernel():
        try:
            return WidgetView(notebook, total, jobs)
        except ImportError:  # no ipywidgets in this kernel
            return BatchView(notebook, total, jobs)
    return (TerminalView if sys.stderr.isatty() else BatchView)(notebook, total, jobs)
