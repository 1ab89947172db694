"""Our own traces: a trial of a run (`traces/<id>.json`), an Episode, and the record that `workbench traces import` writes.

The episodes of a trial, one for each step of its task, follow one another. Memory: one episode of a trial; one turn of an
Episode file. An episode becomes what it becomes in ATIF (workbench.traces.atif), so that step numbers and labels agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.runs.journal import restore
from workbench.traces import Turn
from workbench.traces.atif import agent_step
from workbench.traces.files import Broken, json_lines, json_members
from workbench.traces.importers.atif import step_of
from workbench.traces.importers.drafts import UnknownEntry, count, record, unknown
from workbench.traces.trace import Report, TraceInfo, TraceStep

FORMATS = ("trial", "episode", "workbench-trace")
_COUNTS = ("entries", "ignored", "unknown", "redacted")
_TRIAL = ("id", "run_id", "task", "digest", "outcome", "reward", "passed", "seconds", "seed", "backend")
_TURN = {f.name for f in fields(Turn)}


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself."""
    if format == "workbench-trace":
        head = next((e for e in json_lines(path) if e.get("type") == "trace"), {})
        return TraceInfo(**record(head.get("info")))
    if format == "trial":
        return _scan_trial(path)
    head = {name: value for name, value in json_members(path, {"turns"}) if name != "turns"}
    return _info(head, format, {})


def _scan_trial(path: Path) -> TraceInfo:
    row: dict[str, Any] = {}
    head: dict[str, Any] = {}
    for name, value in json_members(path, {"episodes", "steps"}):
        if name == "episodes":
            head = {k: v for k, v in record(_restored(value)).items() if k != "turns"}
        elif name in (*_TRIAL, "agent", "model"):
            row[name] = _restored(value)
    about = {k: row[k] for k in _TRIAL if row.get(k) is not None}
    return _info({**{k: row.get(k) for k in ("agent", "model")}, **head}, "trial", {"trial": about})


def _info(head: dict[str, Any], format: str, extra: dict[str, Any]) -> TraceInfo:
    ended = {k: head[k] for k in ("submitted", "ended_by", "error") if k in head}
    extra = extra | {"atif_fields": {"extra": {"workbench": ended}}}  # where to_atif puts it
    return TraceInfo(str(head.get("agent") or "unknown"), format, str(head.get("model") or ""), extra=extra)


def read(path: Path, report: Report, broken: Broken, format: str) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in order."""
    return {"trial": _trial, "episode": _episode, "workbench-trace": _record}[format](path, report, broken)


def _trial(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep]:
    for name, value in json_members(path, {"episodes", "steps"}, broken):
        if name == "episodes" and isinstance(value, dict):
            episode = _restored(value)
            yield from _opening(episode)
            yield from _turns(episode.get("turns"), episode, report)


def _opening(head: dict[str, Any]) -> Iterator[TraceStep]:
    if head.get("system"):
        yield TraceStep("system", str(head["system"]))
    yield TraceStep("user", str(head.get("instruction") or ""))


def _turns(turns: Any, head: dict[str, Any], report: Report) -> Iterator[TraceStep]:
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, dict):
            count(report, "turn")
            yield step_of(agent_step(_turn(turn), bool(head.get("model"))))


def _record(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    for entry in json_lines(path, broken):
        kind = entry.get("type")
        if kind == "step":
            count(report, "step")
            yield TraceStep.from_json(entry["step"])
        elif kind == "unknown":
            yield unknown(report, str(entry.get("entry_type")), entry.get("raw"))
        elif kind == "end":  # what the first import met
            for name, value in record(entry.get("report")).items():
                if name in _COUNTS and isinstance(value, dict):
                    getattr(report, name).clear()
                    getattr(report, name).update(value)


def _episode(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    head = {n: v for n, v in json_members(path, {"turns"}) if n in ("system", "instruction", "model")}
    yield from _opening(head)
    for name, value in json_members(path, {"turns"}, broken):
        if name == "turns":
            yield from _turns([value], head, report)


def _restored(value: Any) -> Any:
    """Undo what a run's JSON does to numbers that JSON lacks."""
    if isinstance(value, dict):
        return restore({k: _restored(v) for k, v in value.items()})
    return [_restored(v) for v in value] if isinstance(value, list) else value


def _turn(data: dict[str, Any]) -> Turn:
    """A turn of the file: unknown fields are left out, null stands for an unknown price."""
    known = {k: v for k, v in data.items() if k in _TURN}
    if "usd" in known and known["usd"] is None:
        known["usd"] = math.nan
    return Turn(**{"index": 0, **known})
