"""The run folder `results/<notebook>/<run_id>/`: parameters, journal, traces, figures, tables, executed notebook."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import paths
from workbench.runs.journal import FileLock, Journal, RunLocked, is_locked, plain, read_journal, restore
from workbench.runs.machine import machine, revision, versions

if TYPE_CHECKING:
    import pandas as pd

RUN_ENV = "WORKBENCH_RUN"  # set by the runner: the folder that the notebook's kernel writes to
FOLDERS = ("tasks", "traces", "figures", "tables")
_begin = threading.RLock()
_writers: weakref.WeakValueDictionary[Path, Run] = weakref.WeakValueDictionary()


class RunError(ValueError):
    """No such run, or a folder that is none. The message says what to do."""


class Run:
    """One run. Made by `new_run`, `Run.current` (in notebooks) or `open_run` (to read; writing starts on demand)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.params: dict[str, Any] = json.loads((folder / "params.json").read_text(), object_hook=restore)
        self.id: str = self.params["run_id"]
        self.notebook: str = self.params["notebook"]
        self._journal: Journal | None = None
        self._lock: FileLock | None = None

    @classmethod
    def current(
        cls,
        notebook: str,
        profile: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        resume: str | Path | None = None,
    ) -> Run:
        """The run that a notebook writes to: the runner's folder when there is a runner, else a new one.

        resume: a run's folder or id, or "latest", to go on with an earlier run in JupyterLab; "" and None: a new run.
        """
        if given := os.environ.get(RUN_ENV):
            run = open_run(given)
            if run.notebook != notebook:
                raise RunError(f"the runner opened a run of {run.notebook!r}, but this notebook is {notebook!r}")
        elif resume:
            run = open_run(find_run(resume, notebook))
        else:
            run = new_run(notebook, {"profile": profile, **(parameters or {})})
        return run.begin()

    @property
    def profile(self) -> str:
        return str(self.params["parameters"].get("profile", ""))

    @property
    def journal_path(self) -> Path:
        return self.folder / "journal.jsonl"

    def begin(self) -> Run:
        """Take the run for writing: RunLocked when another process has it. Each beginning is a record `attempt`."""
        with _begin:
            if self._journal is not None:
                return self
            if (other := _writers.get(self.folder)) is not None:
                return other  # the same notebook cell run twice
            self._lock = FileLock(self.folder / "journal.lock")
            self._journal = Journal(self.journal_path, self.id)
            _writers[self.folder] = self
            self._journal.record("attempt", {"revision": revision(), "pid": os.getpid()})
        return self

    @property
    def journal(self) -> Journal:
        return self.begin()._journal  # type: ignore[return-value]

    def record(self, kind: str, row: Mapping[str, Any] | None = None, *, id: str | None = None) -> dict[str, Any]:
        """Append one record (see Journal.record)."""
        return self.journal.record(kind, row, id=id)

    def done(self, kind: str, key: str) -> bool:
        """Whether this run already holds the record (kind, key)."""
        return self.journal.done(kind, key)

    def get(self, kind: str, id: str) -> dict[str, Any] | None:
        """The latest record (kind, id), or None."""
        return self.journal.get(kind, id)

    def once(self, kind: str, key: str, fn: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The record (kind, key), made by `fn` only when it is not there yet (see Journal.once)."""
        return self.journal.once(kind, key, fn)

    def rows(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Every record (of one kind), oldest first; reads the file, so it works while another process writes it."""
        return [r for r in read_journal(self.journal_path) if kind in (None, r["kind"])]

    def frame(self, kind: str) -> pd.DataFrame:
        """The records of one kind as a DataFrame, one row each; `time` becomes a UTC timestamp. Empty when none."""
        import pandas as pd

        frame = pd.DataFrame(self.rows(kind))
        if "time" in frame:
            frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
        return frame

    def kinds(self) -> dict[str, int]:
        """How many records of each kind there are."""
        counts: dict[str, int] = {}
        for record in self.rows():
            counts[record["kind"]] = counts.get(record["kind"], 0) + 1
        return counts

    def path(self, kind: str, name: str) -> Path:
        """A file of this run, say path("traces", "trial-1.json"); its folder is made. Names may not leave the folder."""
        target = (self.folder / kind / name).resolve()
        if kind not in FOLDERS or not target.is_relative_to((self.folder / kind).resolve()):
            raise RunError(
                f"{kind}/{name} is no file of a run folder: use one of {', '.join(FOLDERS)}, and a plain name"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def state(self) -> dict[str, Any]:
        """{"state": running | done | failed | interrupted | killed | interactive, "exit_code", "message"}.

        killed: the runner says running, but nobody holds the run. interactive: a notebook without a runner.
        """
        try:
            status = json.loads((self.folder / "status.json").read_text())
        except (FileNotFoundError, ValueError):
            status = {"state": "interactive", "exit_code": None, "message": ""}
        alive = any(is_locked(self.folder / name) for name in ("journal.lock", "runner.lock"))
        if status["state"] == "running" and not alive:
            status["state"] = "killed"
        return {**status, "alive": alive}

    def write_status(self, state: str, exit_code: int | None = None, message: str = "") -> None:
        """Kept by the runner; replaced in one step, so that a reader never sees half of it."""
        write_json(self.folder / "status.json", {"state": state, "exit_code": exit_code, "message": message})

    def close(self) -> None:
        """Let the run go: another process may then write it."""
        if self._journal is not None:
            if _writers.get(self.folder) is self:
                del _writers[self.folder]
            self._journal.close()
            self._journal = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Run:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"Run({self.folder})"


def new_run(
    notebook: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    results: Path | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Run:
    """Make a run folder with its params.json; `parameters["seed"]`, when there is one, is also kept by itself.

    facts: what else is kept beside the parameters (see `workbench.runs.digest.facts`).
    """
    parameters = dict(parameters or {})
    home = (results or paths.results()) / notebook
    while True:
        run_id = time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)
        folder = home / run_id
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    for name in FOLDERS:
        (folder / name).mkdir()
    params = {
        "notebook": notebook,
        "run_id": run_id,
        "time": time.time(),
        "parameters": parameters,
        "seed": parameters.get("seed"),
        "revision": revision(),
        "versions": versions(),
        "machine": machine(),
        "cwd": str(Path.cwd()),
        **(facts or {}),
    }
    write_json(folder / "params.json", params)
    return Run(folder)


def open_run(path: str | Path) -> Run:
    """Open a run folder. Reading needs no lock; the first record takes the run for writing."""
    folder = Path(path).resolve()
    if not (folder / "params.json").is_file():
        raise RunError(f"{folder} is no run folder: it has no params.json (`workbench runs` lists them)")
    return Run(folder)


def find_run(spec: str | Path, notebook: str | None = None) -> Path:
    """The folder of a run given by path, by id (or the unique start of one), by notebook/id, or as "latest"."""
    if (Path(spec) / "params.json").is_file():
        return Path(spec).resolve()
    text = str(spec)
    known = [f for f in list_runs() if notebook in (None, f.parent.name)]
    if text == "latest" and known:
        return known[-1]
    found = [f for f in known if f.name == text or f"{f.parent.name}/{f.name}" == text]
    found = found or [f for f in known if text and f.name.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{text!r} means several runs: {', '.join(f.name for f in found[-5:])}. Give more of the id")
    where = paths.results() / (notebook or "")
    last = f"; the last is {known[-1].parent.name}/{known[-1].name}" if known else ""
    raise RunError(f"no run {text!r} below {where}: there are {len(known)} runs{last} (`workbench runs` lists them)")


def list_runs(results: Path | None = None) -> list[Path]:
    """Every run folder, oldest first."""
    return sorted((p.parent for p in _params(results or paths.results())), key=lambda f: (f.name, f.parent.name))


def _params(results: Path) -> Iterator[Path]:
    return (p for p in results.glob("*/*/params.json") if p.parent.parent.name != "published")


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a small JSON file so that it is either the old one or the new one, never half."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(plain(data), indent=1, allow_nan=False) + "\n")
    draft.replace(path)


__all__ = ["Run", "RunError", "RunLocked", "find_run", "list_runs", "new_run", "open_run", "write_json"]
