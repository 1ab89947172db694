"""The live view of a flywheel that runs in another kernel, another terminal, or has long ended.

    from workbench.report.live import follow
    follow("latest")

It reads the run's journal as it grows, locks nothing and writes nothing. Every text of it may come from a sandbox and is
shown as text. A trial is opened by a click or by Enter and appears below, turn by turn.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, TextIO

import ipywidgets

from workbench.report.live_view import INTERVAL, LiveView, save
from workbench.report.trace_viewer import TraceViewer
from workbench.report.widget import esc
from workbench.runs.folder import Run, find_run, open_run


class LivePanel(ipywidgets.VBox):
    """The view, and below it the trial that was opened last. view: the LiveView. viewer: a TraceViewer, or None."""

    def __init__(self, view: LiveView):
        self.view, self.viewer, self.error = view, None, ""
        super().__init__([view])
        view.observe(lambda change: self.open_trial(change["new"]), "chosen")

    def open_trial(self, trial: int | str) -> TraceViewer | None:
        """Show a trial by its position or its id; -1 and "" close it. KeyError for an id that is not there."""
        if isinstance(trial, str) and trial:
            trial = self.view.state.trials.find(self.view.run.journal_path, trial)
        if isinstance(trial, str) or trial < 0:
            self.viewer, self.children, self.view.chosen = None, [self.view], -1
            return None
        if self.view.chosen != trial:
            self.view.chosen = trial  # which opens it
            return self.viewer
        self._show(trial)
        return self.viewer

    def _show(self, position: int) -> None:
        try:
            viewer = TraceViewer(self.view.state.trials.record(self.view.run.journal_path, position))
        except (KeyError, OSError) as error:
            self.viewer = None
            self.children = [self.view, ipywidgets.HTML(f"<p>cannot open the trial: {esc(error)}</p>")]
            return
        before, self.viewer = self.viewer, viewer
        self.children = [self.view, viewer]
        if before is not None:
            before.close()

    def refresh(self) -> None:
        self.view.refresh()

    def save(self, folder: str | Path) -> list[Path]:
        """live.html, live.png and live.csv into a folder (made when it is missing)."""
        return save(self.view, Path(folder))

    def text(self) -> str:
        return self.view.text()

    def static_html(self) -> str:
        return self.view.static_html() + (self.viewer.static_html() if self.viewer is not None else "")

    def close(self) -> None:
        """Stop following."""
        self.view.close()
        super().close()

    def __repr__(self) -> str:
        return f"LivePanel({self.view.summary()})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self.static_html()}, metadata


def follow(run_folder: Run | str | Path, seconds: float = INTERVAL, *, watch: bool = True) -> LivePanel:
    """A panel that follows a run: a Run, its folder, its id, or "latest". seconds: between two looks.

    watch: False reads once, for headless notebooks and reports. Raises RunError when there is no such run."""
    run = run_folder if isinstance(run_folder, Run) else open_run(find_run(run_folder))
    return LivePanel(LiveView(run, seconds, follow=watch))


def terminal(
    run_folder: Run | str | Path, seconds: float = 2.0, *, once: bool = False, out: TextIO | None = None
) -> None:
    """The same as text that is drawn again until the run is over; one page when `once`, or where `out` is no terminal."""
    view, out = follow(run_folder, watch=False).view, out or sys.stdout
    once = once or not out.isatty()
    while True:
        out.write(("" if once else "\x1b[H\x1b[2J") + view.text() + "\n")
        out.flush()
        if once or view.over:
            return
        time.sleep(seconds)
        view.refresh()


__all__ = ["LivePanel", "LiveView", "follow", "terminal"]
