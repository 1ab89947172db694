"""Our own traces: an Episode as JSON (a run's `traces/`), and the record that `workbench traces import` writes.

An episode becomes what it becomes in ATIF (workbench.traces.atif), so that step numbers and labels agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.traces import Turn
from workbench.traces.atif import agent_step
from workbench.traces.files import Broken, json_lines, json_members
from workbench.traces.importers.atif import step_of
from workbench.traces.importers.drafts import UnknownEntry, count, record, unknown
from workbench.traces.trace import Report, TraceInfo, TraceStep

FORMATS = ("episode", "workbench-trace")
_COUNTS = ("entries", "ignored", "unknown")
_TURN = {f.name for f in fields(Turn)}


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself."""
    if format == "workbench-trace":
        head = next((e for e in json_lines(path) if e.get("type") == "trace"), {})
        return TraceInfo(**record(head.get("info")))
    head = {name: value for name, value in json_members(path, {"turns"}) if name != "turns"}
    ended = {k: head[k] for k in ("submitted", "ended_by", "error") if k in head}
    extra = {"atif_fields": {"extra": {"workbench": ended}}}  # where to_atif puts it
    return TraceInfo(str(head.get("agent") or "unknown"), format, str(head.get("model") or ""), extra=extra)


def read(path: Path, report: Report, broken: Broken, format: str) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in order."""
    return _record(path, report, broken) if format == "workbench-trace" else _episode(path, report, broken)


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
    if head.get("system"):
        yield TraceStep("system", str(head["system"]))
    yield TraceStep("user", str(head.get("instruction") or ""))
    for name, value in json_members(path, {"turns"}, broken):
        if name == "turns" and isinstance(value, dict):
            count(report, "turn")
            yield step_of(agent_step(_turn(value), bool(head.get("model"))))


def _turn(data: dict[str, Any]) -> Turn:
    """A turn of the file: unknown fields are left out, null stands for an unknown price."""
    known = {k: v for k, v in data.items() if k in _TURN}
    if "usd" in known and known["usd"] is None:
        known["usd"] = math.nan
    return Turn(**{"index": 0, **known})
