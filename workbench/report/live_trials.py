"""Every trial of a journal within reach: where each one's line stands (eight bytes a trial), read when it is looked at."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.report.live_journal import MOST_LINE, decode
from workbench.report.trace_viewer import read_trial
from workbench.report.widget import show, visible

PAGE = 12  # trials shown at a time
SEARCH_SECONDS = 0.12  # of looking for a text; then it says how far it came
MOST_TRACE = 64 << 20  # bytes of one trial's file that are read
_CELL = 80


@dataclass(frozen=True)
class Page:
    """Trials of a journal, newest first. rows: [position, id, task, agent, outcome, reward] as texts but for the position.
    searched: how many were looked at; complete: whether these were all that there are from the start of the page on."""

    rows: list[list[Any]] = field(default_factory=list)
    searched: int = 0
    complete: bool = True


class TrialIndex:
    """Positions count from 0 at the oldest trial."""

    def __init__(self) -> None:
        self.offsets = array("Q")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int) -> None:
        self.offsets.append(offset)

    def page(self, path: Path, before: int | None = None, query: str = "", seconds: float = SEARCH_SECONDS) -> Page:
        """The newest PAGE trials older than position `before` (None: of all) whose line holds `query`, upper and lower case
        alike. Only as many as `seconds` allow are searched."""
        top = len(self.offsets) if before is None else min(before, len(self.offsets))
        word, deadline, rows, at = query.lower().encode(), time.monotonic() + seconds, [], top
        with path.open("rb") as file:
            while at > 0 and len(rows) < PAGE and time.monotonic() < deadline:
                at -= 1
                line = _line(file, self.offsets[at])
                if word and word not in line.lower():
                    continue
                rows.append(_row(at, decode(line)))
        return Page(rows, top - at, at == 0 or len(rows) == PAGE)

    def record(self, path: Path, position: int) -> Mapping[str, Any]:
        """The record at a position, with its episodes when its trace is there. KeyError when it cannot be read."""
        if not 0 <= position < len(self.offsets):
            raise KeyError(f"no trial {position}: there are {len(self.offsets)}, from 0")
        with path.open("rb") as file:
            row = decode(_line(file, self.offsets[position]))
        if row is None:
            raise KeyError(f"trial {position} has a record of more than {MOST_LINE >> 20} MB, which is not read")
        return with_trace(path.parent, row)

    def find(self, path: Path, trial_id: str) -> int:
        """The position of the newest trial with this id. KeyError when there is none."""
        sign = trial_id.encode()
        with path.open("rb") as file:
            for at in reversed(range(len(self.offsets))):
                line = _line(file, self.offsets[at])
                if sign in line[:400] and (row := decode(line)) and row["id"] == trial_id:
                    return at
        raise KeyError(f"no trial {visible(trial_id)[:200]!r} among {len(self.offsets)}")


def with_trace(folder: Path, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A trial's record with its episodes, from the run's `traces/`; the record alone when there are none to read."""
    path = folder / "traces" / f"{row['id']}.json"
    try:
        inside = path.parent.resolve() == path.resolve().parent and path.stat().st_size <= MOST_TRACE
        return read_trial(path) if inside else row
    except (OSError, ValueError, RecursionError):
        return row


def _line(file: Any, offset: int) -> bytes:
    file.seek(offset)
    return file.readline(MOST_LINE + 1)


def _row(position: int, row: Mapping[str, Any] | None) -> list[Any]:
    if row is None:
        return [position, "", "(a record too long to read)", "", "", "–"]
    named = (row["id"], row.get("what") or row.get("task"), row.get("agent") or row.get("role"), row.get("outcome"))
    return [position, *(visible(str(v if v is not None else "")[:_CELL]) for v in named), show(row.get("reward"))[:20]]
