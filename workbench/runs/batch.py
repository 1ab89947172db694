"""Grids of one notebook, run side by side; what is done already is not done again, what was stopped is gone on with.

A batch keeps a journal of its own, `results/<notebook>/batches/<id>.jsonl`: one record `batch` (what was asked), one
`attempt` each time somebody works on it, and one `run` each time something becomes of a run. It may be killed at any
point: what a run did stands in the run's own folder, and whether a run is done is read from there.
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import paths
from workbench.runs.batch_claims import Claims
from workbench.runs.batch_view import BatchView, choose_view
from workbench.runs.folder import Run, RunError
from workbench.runs.grid import Point, label, points
from workbench.runs.journal import FileLock, Journal, read_journal
from workbench.runs.machine import memory_bytes, revision
from workbench.runs.notebooks import NotebookError, Stop, execute, resolve_notebook, signals

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "batch-"
JOB_BYTES = 4 * 2**30  # what a notebook's defaults need at most
AGAIN_SECONDS = 0.5  # between looks at a run that another process has
OUTCOMES = ("done", "failed", "interrupted", "left")  # left: never started, the batch was stopped


@dataclass
class Batch:
    """One batch: what it was asked for, and `rows`: of each run its values, folder, state, exit code and message.

    state: done, failed, interrupted or left. skipped: it was done before this batch looked at it.
    """

    id: str
    path: Path
    notebook: Path
    points: list[Point]
    again: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: int = 0  # the signal that ended it

    @property
    def exit_code(self) -> int:
        """0: every run is done. 1: one is not. 128 + the signal: stopped."""
        if self.stopped:
            return 128 + self.stopped
        return 0 if len(self.rows) == len(self.points) and all(r["state"] == "done" for r in self.rows) else 1

    def counts(self) -> dict[str, int]:
        """How many runs are of each state; those done before are counted as `skipped` as well."""
        found = {state: sum(r["state"] == state for r in self.rows) for state in OUTCOMES}
        return {**found, "skipped": sum(r["skipped"] for r in self.rows)}

    def frame(self) -> pd.DataFrame:
        """One row a run: the grid's values, then run, state, exit_code, message, seconds, skipped."""
        import pandas as pd

        return pd.DataFrame([{**r["varied"], **{k: v for k, v in r.items() if k != "varied"}} for r in self.rows])

    def summary(self) -> str:
        """What became of it in one line, then one for each run that failed."""
        counts = self.counts()
        told = f"{counts['done']} of {len(self.points)} runs done"
        told += f" ({counts['skipped']} before)" if counts["skipped"] else ""
        told += "".join(f", {counts[s]} {s}" for s in OUTCOMES[1:] if counts[s])
        lost = [r for r in self.rows if r["state"] == "failed"]
        failed = [f"  {label(r['varied'])}: {': '.join(r['message'].splitlines())} [{r['run']}]" for r in lost]
        return "\n".join([f"{self.id}: {told}", *failed])

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False, escape=True)


def default_jobs(runs: int) -> int:
    """One for each core and each 4 GiB of memory, at most one a run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(memory_bytes() // JOB_BYTES), runs))


def run_grid(
    notebook: str | Path,
    grid: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, Any] | None = None,
    *,
    jobs: int | None = None,
    again: bool = False,
) -> Batch:
    """Run a notebook with every combination of the grid's values, and show how far each run is.

    `run_grid("40_flywheel", {"seed": range(5)}, {"profile": "smoke"})`. jobs: notebooks side by side (default:
    `default_jobs`). again: also what is done already with the same parameters and code. KeyboardInterrupt once every
    kernel is stopped; the same call, or `resume_batch`, then goes on. ParameterError and NotebookError before anything
    is started. Failed runs raise nothing: see `exit_code` and `rows`.
    """
    batch = work(new_batch(notebook, grid, parameters, again=again), jobs)
    if batch.stopped:
        raise KeyboardInterrupt(batch.summary())
    return batch


def new_batch(
    notebook: str | Path,
    grid: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, Any] | None = None,
    *,
    again: bool = False,
) -> Batch:
    """Check everything and write the batch's record; `work` does the rest."""
    path = resolve_notebook(notebook)
    grid = {name: list(v) if isinstance(v, range | tuple) else v for name, v in grid.items()}
    found = points(path, grid, parameters)
    home = paths.results() / path.stem / "batches"
    home.mkdir(parents=True, exist_ok=True)
    id = PREFIX + time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)
    asked = {
        "notebook": path.stem, "source": str(path), "grid": grid, "parameters": dict(parameters or {}), "again": again,
        "cwd": str(Path.cwd()), "runs": len(found),
    }  # fmt: skip
    batch = Batch(id, home / f"{id}.jsonl", path, found, again)
    journal = Journal(batch.path, id)
    journal.record("batch", asked, id=id)
    journal.close()
    return batch


def find_batch(spec: str | Path) -> Path:
    """The journal of a batch given by path, or by its id or the unique start of one. RunError when there is none."""
    text = str(spec)
    if text.endswith(".jsonl") and Path(text).is_file():
        return Path(text).resolve()
    known = sorted(paths.results().glob(f"*/batches/{PREFIX}*.jsonl"), key=lambda p: p.name)
    found = [p for p in known if p.stem == text] or [p for p in known if p.stem.startswith(text)]
    if len(found) == 1:
        return found[0]
    wrong = "means several batches" if found else "is no batch"
    raise RunError(f"{text!r} {wrong}; the last are {', '.join(p.stem for p in (found or known)[-5:]) or 'none'}")


def open_batch(spec: str | Path) -> Batch:
    """A batch to go on with. Its runs are those of the code as it is now."""
    path = find_batch(spec)
    asked = next((r for r in read_journal(path) if r["kind"] == "batch"), None)
    if asked is None:
        raise RunError(f"{path} holds no batch: it was killed before it began")
    source = Path(asked["source"])
    notebook = source if source.is_file() else resolve_notebook(asked["notebook"])
    found = points(notebook, asked["grid"], asked["parameters"], asked["cwd"])
    return Batch(path.stem, path, notebook, found, asked["again"])


def work(batch: Batch, jobs: int | None = None, view: BatchView | None = None) -> Batch:
    """Do what is missing of a batch. RunLocked when another process works on it."""
    jobs = min(jobs or default_jobs(len(batch.points)), len(batch.points))
    lock = FileLock(batch.path.with_suffix(".lock"))
    journal = Journal(batch.path, batch.id)
    journal.record("attempt", {"pid": os.getpid(), "jobs": jobs, "revision": revision()})
    view = view or choose_view(f"{batch.notebook.stem}", len(batch.points), jobs)
    try:
        with signals() as stop:
            _Workers(batch, journal, view, stop).run(jobs)
        batch.stopped = stop.numbers[0] if stop.numbers else 0
    finally:
        view.close()
        journal.close()
        lock.release()
    return batch


class _Workers:
    """Threads that take runs from one queue. A notebook's work is in its kernel, so threads are enough here."""

    def __init__(self, batch: Batch, journal: Journal, view: BatchView, stop: Stop):
        self.batch, self.journal, self.view, self.stop = batch, journal, view, stop
        self.claims = Claims(batch.notebook.stem, batch.id, only_mine=batch.again)
        self.todo: queue.SimpleQueue[Point] = queue.SimpleQueue()
        self.broken: BaseException | None = None

    def run(self, jobs: int) -> None:
        for point in self.batch.points:
            self.todo.put(point)
        threads = [threading.Thread(target=self._work, args=(slot,), name=f"batch {slot}") for slot in range(jobs)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.1) if threads[0].is_alive() else time.sleep(0.1)
        finally:
            self.stop.event.set()  # only matters when this thread is leaving early
            for thread in threads:
                thread.join()
        if self.broken:
            raise self.broken
        self._leave()

    def _leave(self) -> None:
        """What was never started."""
        while not self.todo.empty():
            self._ended(self.todo.get(), None, "left", None, "", 0.0)

    def _work(self, slot: int) -> None:
        try:
            while not self.stop.event.is_set():
                try:
                    point = self.todo.get_nowait()
                except queue.Empty:
                    return
                self._one(slot, point)
        except BaseException as error:  # a full disk, say: the others stop too, and the caller is told
            self.broken = self.broken or error
            self.stop.event.set()

    def _one(self, slot: int, point: Point) -> None:
        self.view.began(slot, point.label)
        told = False
        while True:
            run, lock, state = self.claims.take(point)
            if state != "busy":
                break
            if not told:
                self.view.line(slot, f"waits for another process that has {run.folder}")
                told = True
            if self.stop.event.wait(AGAIN_SECONDS):
                return self._ended(point, run, "left", slot, "another process has it", 0.0)
        if state == "done":
            return self._ended(point, run, "done", slot, "", 0.0, skipped=True)
        self.journal.record("run", {"run": str(run.folder), "varied": point.varied, "state": "running"}, id=point.key)
        begun = time.monotonic()
        execute(
            run,
            self.batch.notebook,
            lambda text: self.view.line(slot, text),
            stop=self.stop,
            lock=lock,
            at=lambda cell, cells: self.view.at(slot, cell, cells),
        )
        state = run.state()
        return self._ended(point, run, state["state"], slot, state["message"], time.monotonic() - begun)

    def _ended(
        self, point: Point, run: Run | None, state: str, slot: int | None, message: str, seconds: float,
        skipped: bool = False,
    ) -> None:  # fmt: skip
        row = {
            "varied": point.varied, "run": str(run.folder) if run else None, "state": state,
            "message": message, "seconds": round(seconds, 1), "skipped": skipped,
        }  # fmt: skip
        self.journal.record("run", row, id=point.key)
        self.batch.rows.append(row)
        if slot is not None:
            self.view.ended(slot, point.label, state, message, seconds, skipped)


__all__ = ["Batch", "NotebookError", "default_jobs", "find_batch", "new_batch", "open_batch", "run_grid", "work"]
