"""A trial that a run already holds is read back, not run again: what makes a killed run go on without paying twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from workbench.traces import Episode
from workbench.trials import Grade, Trial


class Recorder(Protocol):
    """The part of a run that trials need (workbench.runs.Run)."""

    id: str

    def record(self, kind: str, row: Mapping[str, Any]) -> object: ...

    def get(self, kind: str, id: str) -> dict[str, Any] | None: ...

    def path(self, kind: str, name: str) -> Path: ...


def write_down(trial: Trial, run: Recorder, kind: str = "trial") -> None:
    """The row to the journal; turns and the verifier's words to `traces/<trial id>.json`, written first, so that a
    trial in the journal has its trace."""
    from workbench.runs.folder import write_json

    row = trial.to_row()
    episodes = [episode.to_json() for episode in trial.episodes]
    write_json(run.path("traces", f"{trial.id}.json"), {**row, "episodes": episodes, "steps": trial.steps})
    run.record(kind, row)


def recall(run: Recorder, id: str, digest: str) -> Trial | None:
    """The finished trial of that id, whole, or None. One that infrastructure ended, or that was of a task with other
    bytes (digest), is none: it is run anew."""
    from workbench.runs.journal import restore

    row = run.get("trial", id)
    if row is None or row["outcome"] == "infra" or row["digest"] != digest:
        return None
    try:
        data = json.loads(run.path("traces", f"{id}.json").read_text(), object_hook=restore)
    except (OSError, ValueError):
        return None  # removed or damaged by hand: the journal alone does not hold the turns
    known = set(Trial.__dataclass_fields__) - {"steps", "episodes", "progress"}
    return Trial(
        **{key: value for key, value in row.items() if key in known},
        progress=tuple(row.get("progress") or ()),
        steps=tuple(Grade(**grade) for grade in data["steps"]),
        episodes=tuple(Episode.from_json(episode) for episode in data["episodes"]),
    )
