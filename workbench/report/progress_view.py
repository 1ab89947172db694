"""Watch a run: what its journal holds so far, its latest verdicts, its last lines of progress."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import traitlets

from workbench.report.tables import verdict
from workbench.report.widget import STATIC, View, esc, html_table, visible
from workbench.runs.folder import Run, open_run
from workbench.runs.journal import Tail

LATEST = 8
INTERVAL = 1.0  # seconds


class ProgressView(View):
    """Follows a run from a thread until the run is over, or `close()`. Reads only; the run may be of another process.

    state: as Run.state(). counts: records by kind. latest: the last records worth a line, newest first.
    lines: the last lines of progress of a headless run.
    """

    _esm = STATIC / "progress_view.js"
    title = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)
    counts = traitlets.Dict().tag(sync=True)
    latest = traitlets.List(traitlets.Unicode()).tag(sync=True)
    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, run: Run | str | Path, follow: bool = True):
        self._run = run if isinstance(run, Run) else open_run(run)
        self._tail = Tail(self._run.journal_path)
        self._stop = threading.Event()
        super().__init__(title=f"{self._run.notebook}/{self._run.id}")
        self.refresh()
        if follow and not self.over:
            threading.Thread(target=self._follow, daemon=True, name="progress-view").start()

    @property
    def over(self) -> bool:
        """The run has ended: nothing more will come, unless it is resumed."""
        return self.state in ("done", "failed", "interrupted", "killed")

    def refresh(self) -> None:
        """Read what is new."""
        records = self._tail.new()
        counts = dict(self.counts)
        for record in records:
            counts[record["kind"]] = counts.get(record["kind"], 0) + 1
        told = [line for line in map(describe, records) if line]
        self.counts = counts
        self.latest = [*reversed(told), *self.latest][:LATEST]
        self.lines = _last_lines(self._run.folder / "progress.log")
        self.state = self._run.state()["state"]

    def _follow(self) -> None:
        while not self._stop.wait(INTERVAL) and not self.over:
            self.refresh()

    def close(self) -> None:
        self._stop.set()
        super().close()

    def summary(self) -> str:
        return f"{self.title} {self.state}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(self.counts.items()))

    def static_html(self) -> str:
        counts = html_table(["record", "n"], [{"record": k, "n": v} for k, v in sorted(self.counts.items())])
        latest = "".join(f"<li>{esc(line)}</li>" for line in self.latest)
        lines = esc("\n".join(self.lines))
        return (
            f'<div class="wb-view"><p><b>{esc(self.title)}</b> {esc(self.state)}</p>{counts}'
            f"<ul>{latest}</ul><pre>{lines}</pre></div>"
        )


def describe(record: dict[str, Any]) -> str:
    """One line for a record that people wait for; "" for the others."""
    if record["kind"] == "admission":
        kinds = ", ".join(r["kind"] for r in record.get("reasons") or [])
        return visible(f"{record.get('task', record['id'])}: {verdict(record)}" + (f" ({kinds})" if kinds else ""))
    if record["kind"] == "trial":
        reward = record.get("reward")
        got = record.get("outcome", "") if reward is None else f"reward {reward:.2f}"
        return visible(f"{record.get('task', '')}: {record.get('agent', '')} {got}")
    return ""


def _last_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            return [visible(line) for line in file.read().decode(errors="replace").splitlines()[-LATEST:]]
    except OSError:
        return []
