"""The widget of the live view: one trait for what is seen, one for the page of trials, and what a person does."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import traitlets

from workbench.report import live_picture as picture
from workbench.report.live_journal import Follower
from workbench.report.live_state import LiveState
from workbench.report.live_trials import Page
from workbench.report.live_watch import OVER, state_of, time_left
from workbench.report.widget import STATIC, View, visible
from workbench.runs.folder import Run
from workbench.runs.progress import Progress

CSS = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("views.css", "live.css"))
SCRIPT = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("view_parts.js", "live.js"))
INTERVAL = 1.0  # seconds between looks
BUDGET = 0.1  # seconds of reading in one look while others wait


class LiveView(View):
    """Follows a run of any process. Reads only, and touches no lock.

    seen: {"title", "standing", "facts", "lines", "rejected", "last"}, replaced when something changed. trials: {"rows",
    "note", "newer", "older"}. query: keeps the trials whose record holds it. before: the page begins below this position (-1: at the newest).
    chosen: position of the trial that was opened, -1 for none.
    """

    _esm = SCRIPT
    _css = CSS
    seen = traitlets.Dict().tag(sync=True)
    trials = traitlets.Dict().tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    before = traitlets.Int(-1).tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)

    def __init__(self, run: Run, seconds: float = INTERVAL, follow: bool = True):
        self.run, self.seconds = run, seconds
        self.state, self.standing = LiveState(), {"state": "", "message": "", "alive": None}
        self._follower = Follower(run.journal_path)
        self._reading, self._stop = threading.RLock(), threading.Event()
        super().__init__()
        self._read_all()
        if follow and not self.over:
            threading.Thread(target=self._follow, daemon=True, name="live-view").start()

    @property
    def title(self) -> str:
        return visible(f"{self.run.notebook}/{self.run.id}")

    @property
    def over(self) -> bool:
        """Nothing more will come, unless the run is resumed."""
        return self.standing["state"] in OVER and not self._follower.behind()

    def refresh(self, seconds: float = BUDGET) -> None:
        """Read what is new, for at most `seconds` (what is left comes with the next look), and show it."""
        with self._reading:
            self.standing = state_of(self.run)
            before, restarted = sum(self.state.counts.values()), self._follower.restarted
            trials = len(self.state.trials)
            for entry in self._follower.new(seconds):
                if self._follower.restarted != restarted:  # the file is another one now
                    self.state, restarted = LiveState(), self._follower.restarted
                self.state.fold(entry)
            self._show()
            grew = len(self.state.trials) != trials or before == 0
            if self.before < 0 and (grew or not self.trials) and not self.query:
                self._turn()

    def _read_all(self) -> None:
        """The first look, to the end of what is there; a bar is shown when that takes long."""
        bar: Progress | None = None
        began = time.monotonic()
        self.refresh()
        while (left := self._follower.behind()) > 0:
            if bar is None and time.monotonic() - began > 2:
                bar = Progress(label="journal, MB", total=(self._follower.offset + left) >> 20)
            self.refresh()
            if bar is not None:
                bar.update(max(0, (self._follower.offset >> 20) - bar.count))
        if bar is not None:
            bar.close()

    def _follow(self) -> None:
        while not self._stop.wait(self.seconds if not self._follower.behind() else 0.05):
            self.refresh()
            if self.over:
                return

    def _now(self) -> float:
        """The time that ages are counted to: a run that is over does not grow older."""
        return self.state.latest if self.standing["state"] in OVER else time.time()

    def _left(self) -> str:
        if self.standing["state"] in OVER:
            return "the run is over"
        if self.standing["alive"] is False:
            return "nobody writes it"
        begun = self.state.first
        return time_left(self.run, self.state.round, self.state.counts["update"], begun, self.state.latest)

    def _words(self) -> str:
        more = {True: "", False: ", nobody writes it", None: ""}[self.standing["alive"]]
        if self.standing["state"] in OVER:
            more = f": {self.standing['message']}" if self.standing.get("message") else ""
        behind = self._follower.behind()
        unread = f", {behind / 1e6:.1f} MB not read yet" if behind > 1e5 else ""
        return visible(f"{self.standing['state']}{more}"[:300] + unread)

    def _show(self) -> None:
        lines = [{**one, "values": [round(v, 4) for v in one["values"]]} for one in picture.series(self.state)]
        seen = {
            "title": self.title,
            "standing": self._words(),
            "facts": picture.facts(self.state, self._left(), self._now()),
            "lines": [{**one, "colour": picture.COLOURS[one["name"]]} for one in lines],
            "rejected": list(self.state.rejected),
            "last": [[k, [[name, picture.show(n)] for name, n in v.items()]] for k, v in self.state.last.items()],
        }
        if seen != self.seen:
            self.seen = seen

    @traitlets.observe("query")
    def _asked(self, _: Any) -> None:
        if self.before != -1:
            self.before = -1  # which turns the page
        else:
            self._turn()

    @traitlets.observe("before")
    def _paged(self, _: Any) -> None:
        self._turn()

    def _turn(self) -> None:
        with self._reading:
            page = self._page()
            total = len(self.state.trials)
            rows = [[r[0], [visible(c) for c in r[1:]]] for r in page.rows]
            note = (
                f"{total:,} trials" if not self.query else f"{len(rows)} found in {page.searched:,} of {total:,} trials"
            )
            more = "" if page.complete else ", not all searched yet: “older” goes on"
            top = self.before if self.before >= 0 else total
            self.trials = {"rows": rows, "note": note + more, "newer": self.before >= 0, "older": top - page.searched}

    def _page(self) -> Page:
        try:
            return self.state.trials.page(self.run.journal_path, self.before if self.before >= 0 else None, self.query)
        except OSError:
            return Page()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        super().close()

    # ---- what is read without a browser

    def summary(self) -> str:
        told = "; ".join(f"{name} {value}" for name, value, _ in self.seen["facts"][:5])
        return f"{self.title} {self.seen['standing']}: {told}"[:300]

    def text(self) -> str:
        """A page for a terminal."""
        return picture.text(self.title, self._words(), self.state, self._left(), self._now())

    def static_html(self) -> str:
        with self._reading:
            rows = self.state.trials.page(self.run.journal_path).rows if len(self.state.trials) else []
            return picture.html(self.title, self._words(), self.state, rows, self._left(), self._now())

    def figure(self) -> Any:
        """(figure, table) as workbench.report.figures has them."""
        with self._reading:
            return picture.figure(f"{self.title} {self._words()}", self.state, self._left(), self._now())


def save(view: LiveView, folder: Path) -> list[Path]:
    """live.html, live.png, and live.csv with the lines, below `folder`."""
    import matplotlib.style

    from workbench.report.figures import STYLE

    folder.mkdir(parents=True, exist_ok=True)
    fig, table = view.figure()
    page, drawing, numbers = (folder / f"live.{kind}" for kind in ("html", "png", "csv"))
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><title>live</title><style>{CSS}</style>{view.static_html()}',
        encoding="utf-8",
    )
    with matplotlib.style.context(STYLE):
        fig.savefig(drawing, metadata={"Software": None})
    table.to_csv(numbers, index=False, lineterminator="\n")
    return [page, drawing, numbers]


__all__ = ["LiveView", "save"]
