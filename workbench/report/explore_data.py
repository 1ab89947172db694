"""What a run's journal and folders say of its environments, read once: standings, verdicts, assignments, attempts, files.

The journal is read as the live view reads it (a torn or overlong line is passed over). A task's folder is a sandbox's work:
links are named and never followed, only regular files are opened, and of each no more than is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.report.live_journal import Follower
from workbench.report.live_state import number, short
from workbench.report.live_trials import with_trace
from workbench.report.widget import show, visible
from workbench.runs.folder import Run
from workbench.tasks.digest import TooMany, open_plain, walk

ATTEMPT = ("id", "task", "what", "digest", "agent", "role", "model", "outcome", "reward", "turns", "seconds")
MOST_FILES = 2_000  # of one environment that are listed
MOST_TEXT = 20_000  # bytes of one file that are shown
_REVISION = re.compile(r"-rev\d+$")


class PoolData:
    """Everything by id. environments: the latest standing of each, oldest first. attempts: rows by digest, in their order."""

    def __init__(self, run: Run):
        self.run = run
        self.environments: dict[str, dict[str, Any]] = {}
        self.admissions: dict[str, dict[str, Any]] = {}
        self.assignments: dict[str, dict[str, Any]] = {}
        self.proposals: dict[str, dict[str, Any]] = {}
        self.attempts: dict[str, list[dict[str, Any]]] = {}
        for entry in Follower(run.journal_path).new():
            if entry.record is not None:
                self._take(entry.kind, entry.record)

    def _take(self, kind: str, row: dict[str, Any]) -> None:
        key = str(row["id"])
        if kind in ("standing", "review"):
            self.environments[key] = {**self.environments.get(key, {}), **row}
        elif kind in ("trial", "diagnostic", "rollout"):
            small = {
                name: row[name] if name in ("id", "digest") else _scalar(row.get(name))
                for name in ATTEMPT
                if name in row
            }
            digest = row.get("digest") or row.get("task")
            self.attempts.setdefault(str(digest), []).append({**small, "kind": kind})
        elif kind == "admission":
            self.admissions[_REVISION.sub("", key)] = row
        elif kind in ("assignment", "proposal"):
            getattr(self, f"{kind}s")[_REVISION.sub("", key)] = row

    def attempts_of(self, environment: str) -> list[dict[str, Any]]:
        """Every attempt at it: the gate's, calibration's, and later rollouts."""
        digest = self.environments[environment].get("digest")
        return self.attempts.get(str(digest), []) if digest else []

    def folder_of(self, environment: str) -> Path | None:
        """Where its files are: as recorded, else below the run's own tasks/ (a run that was moved). None when they are not here."""
        recorded = str(self.environments[environment].get("path") or "")
        places = [Path(recorded)] if recorded else []
        places.append(self.run.folder / "tasks" / (Path(recorded).name or environment))
        return next((p for p in places if "\0" not in str(p) and not p.is_symlink() and p.is_dir()), None)

    def trial(self, attempt: Mapping[str, Any]) -> Mapping[str, Any]:
        """The record of an attempt with its episodes, as TraceViewer takes it."""
        return with_trace(self.run.folder, attempt)


def _scalar(value: Any) -> Any:
    return value if number(value) is not None or value is None else short(value, 120)


def files_of(folder: Path) -> list[tuple[str, str]]:
    """[(path made visible, what it is), …]: sizes of files, targets of links (which are not followed), in order of their names."""
    found = []
    try:
        for entry in walk(folder, MOST_FILES):
            found.append(
                (
                    visible(entry.path),
                    f"{entry.size:,} bytes" if entry.kind == "file" else f"{entry.kind} {entry.target}".strip(),
                )
            )
    except (TooMany, OSError) as error:
        found.append(("…", short(error)))
    return sorted(found)


def text_of(folder: Path, name: str) -> str:
    """The text of the file that `files_of` calls `name`, safe to show: control characters are dots, long ones are cut. Words
    where it cannot be shown."""
    try:
        path = next((e.path for e in walk(folder, MOST_FILES) if visible(e.path) == name), None)
        if path is None:
            return "no such file"
        with open_plain(folder / path) as file:
            data = file.read(MOST_TEXT + 1)
    except (OSError, ValueError) as error:
        return f"not shown: {short(error)}"
    if b"\0" in data:
        return "not shown: not a text"
    cut = f"\n[… cut at {MOST_TEXT:,} bytes]" if len(data) > MOST_TEXT else ""
    return visible(data[:MOST_TEXT].decode(errors="replace")) + cut


def pairs(row: Mapping[str, Any], names: str) -> list[list[str]]:
    """[[name, text], …] of the fields that say something."""
    return [[name, short(show(row[name]))] for name in names.split() if row.get(name) not in (None, "", [], {})]
