"""Which run is whose: batches of one notebook, in any number of processes, never do the same run twice."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workbench import paths
from workbench.runs.folder import FOLDERS, Run, new_run, open_run
from workbench.runs.grid import Point
from workbench.runs.journal import FileLock, RunLocked, plain
from workbench.runs.notebooks import runner_lock

UNBORN_SECONDS = 60.0
PATIENCE_SECONDS = 60.0  # for the lock of all claims, which is held for milliseconds


class Claims:
    """Finds or makes the run of a point. only_mine: runs of other batches do not count (`--again`)."""

    def __init__(self, notebook: str, batch: str, only_mine: bool = False):
        self.notebook, self.batch, self.only_mine = notebook, batch, only_mine
        self.home = paths.results() / notebook
        self._seen: set[str] = set()
        self._runs: dict[str, list[Path]] = {}  # key → folders, oldest first
        self._mutex = threading.Lock()
        remove_unborn(self.home)

    def take(self, point: Point) -> tuple[Run, FileLock | None, str]:
        """(run, its runner's lock, "ours"), or (run, None, "done" or "busy")."""
        with self._mutex, self._alone():
            self._look()
            runs = [open_run(folder) for folder in self._runs.get(point.key, []) if folder.is_dir()]
            states = [run.state() for run in runs]
            for run, state in zip(runs, states, strict=True):
                if state["state"] == "done":
                    return run, None, "done"
            for run, state in zip(runs, states, strict=True):
                if state["alive"]:
                    return run, None, "busy"
            run = runs[-1] if runs else new_run(self.notebook, point.parameters, facts=self._facts(point))
            try:
                return run, runner_lock(run), "ours"
            except RunLocked:  # `workbench resume` was quicker
                return run, None, "busy"

    def _facts(self, point: Point) -> dict[str, str]:
        return {**point.facts, "batch": self.batch}

    def _look(self) -> None:
        """Take in the runs that are new since the last look; what stands in a params.json never changes."""
        for path in sorted(self.home.glob("*/params.json")):
            if path.parent.name in self._seen:
                continue
            self._seen.add(path.parent.name)
            params = json.loads(path.read_text())
            if not self.only_mine or params.get("batch") == self.batch:
                self._runs.setdefault(params.get("key", ""), []).append(path.parent)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other batch claims a run of this notebook meanwhile."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                lock = FileLock(self.home / "batches" / "claims.lock")
                break
            except RunLocked:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        try:
            yield
        finally:
            lock.release()


def done_by_other_code(notebook: str, points: Sequence[Point]) -> int:
    """How many points will be done although a finished run has their parameters, because other code made it."""
    asked = {_words(point.parameters): point for point in points}
    same, other = set(), set()
    for path in (paths.results() / notebook).glob("*/params.json"):
        params = json.loads(path.read_text())
        point = asked.get(words := _words(params["parameters"]))
        if point and params.get("code") and open_run(path.parent).state()["state"] == "done":
            (same if params["code"] == point.facts["code"] else other).add(words)
    return len(other - same)


def _words(parameters: Mapping[str, Any]) -> str:
    return json.dumps(plain(parameters), sort_keys=True)


def remove_unborn(home: Path) -> None:
    """Remove run folders that a kill left before their params.json was written. Only empty folders can go this way."""
    for folder in home.glob("*-*-*"):
        with suppress(OSError):  # not empty, gone, or no folder
            if (folder / "params.json").exists() or time.time() - folder.stat().st_mtime < UNBORN_SECONDS:
                continue
            for draft in folder.glob(".params.json.*"):
                draft.unlink()
            for name in FOLDERS:
                if (folder / name).exists():
                    (folder / name).rmdir()
            folder.rmdir()
