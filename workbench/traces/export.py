"""Traces as ATIF 1.8, step by step, so that a trace of any size can be written. Validates with Harbor's models.

What ATIF has no field for stands in `extra["workbench_trace"]`, so that a trace comes back with the same turns and the same
digest. Lost: entries of unknown types, and where among the others a side branch began (they are sub-agents here).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from workbench.traces.importers.atif import OURS
from workbench.traces.labels import Key, Label
from workbench.traces.store import TraceError
from workbench.traces.trace import Result, ToolCall, Trace, TraceInfo, TraceStep, Usage, arguments_text

SCHEMA = "ATIF-v1.8"
_METRICS = ("prompt_token_ids", "completion_token_ids", "logprobs")


def to_atif(trace: Trace, labels: Mapping[Key, Label] | None = None) -> dict[str, Any]:
    """A whole trace as one object. labels: of its turns, put into each step's extra["labels"]."""
    return json.loads("".join(atif_chunks(trace.info, trace.steps, labels)))


def write_atif(
    path: Path, info: TraceInfo, steps: Iterable[TraceStep], labels: Mapping[Key, Label] | None = None
) -> Path:
    """Write FILE: whole or not at all. Raises TraceError when there is no step on the main branch."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.tmp")
    try:
        with made.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(atif_chunks(info, steps, labels))
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    return path


def atif_chunks(
    info: TraceInfo, steps: Iterable[TraceStep], labels: Mapping[Key, Label] | None = None
) -> Iterator[str]:
    """The JSON text in pieces. Steps of side branches wait in a temporary file."""
    by_step: dict[int, list[Label]] = {}
    for label in (labels or {}).values():
        by_step.setdefault(label.step, []).append(label)
    totals = _Totals()
    with tempfile.TemporaryFile() as spool:
        sides: dict[str, list[int]] = {}
        head = _head(info)
        yield json.dumps(head, ensure_ascii=False)[:-1] + ', "steps": ['
        for step in steps:
            if step.branch:
                sides.setdefault(step.branch, []).append(spool.tell())
                spool.write(json.dumps(step.to_json()).encode("ascii") + b"\n")
                continue
            totals.add(step)
            data = atif_step(step, totals.steps)
            if totals.steps in by_step:
                data.setdefault("extra", {})["labels"] = [_label(x) for x in by_step[totals.steps]]
            yield (",\n" if totals.steps > 1 else "\n") + json.dumps(data, ensure_ascii=False)
        if not totals.steps:
            raise TraceError("a trace without a message on its main branch cannot be ATIF")
        yield "\n]" + _members(_tail(info, totals))
        yield from _subagents(info, sides, spool)
    yield "}\n"


def _head(info: TraceInfo) -> dict[str, Any]:
    atif = info.extra.get("atif_fields") or {}
    agent = {"name": info.agent, "version": info.version or "unknown", **(atif.get("agent") or {})}
    if info.model:
        agent["model_name"] = info.model
    session = {"session_id": info.session} if info.session else {}
    return {"schema_version": SCHEMA, **session, "agent": agent}


def _tail(info: TraceInfo, totals: _Totals) -> dict[str, Any]:
    atif = dict(info.extra.get("atif_fields") or {})
    atif.pop("agent", None)
    others = {k: v for k, v in info.extra.items() if k not in ("atif_fields", "schema_version", "first_format")}
    ours = {k: v for k, v in (("cwd", info.cwd), ("extra", others)) if v}
    first = info.extra.get("first_format") or (info.format if info.format != "atif" else "")
    if first:
        ours["format"] = first
    extra = dict(atif.pop("extra", None) or {}) | ({OURS: ours} if ours else {})
    return {"final_metrics": totals.metrics(), **atif, **({"extra": extra} if extra else {})}


def _members(data: Mapping[str, Any]) -> str:
    return "".join(f", {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in data.items())


def _subagents(info: TraceInfo, sides: dict[str, list[int]], spool: IO[bytes]) -> Iterator[str]:
    for number, (branch, places) in enumerate(sides.items()):
        yield ', "subagent_trajectories": [\n' if number == 0 else ",\n"
        for place, offset in enumerate(places, 1):
            spool.seek(offset)
            step = TraceStep.from_json(json.loads(spool.readline()))
            if place == 1:
                about = step.extra.get("subagent_fields") or {"agent": _head(info)["agent"]}
                head = {**about, "schema_version": SCHEMA, "trajectory_id": branch}
                yield json.dumps(head, ensure_ascii=False)[:-1] + ', "steps": ['
            yield (",\n" if place > 1 else "\n") + json.dumps(atif_step(step, place), ensure_ascii=False)
        yield "\n]}"
    if sides:
        yield "]"


def atif_step(step: TraceStep, number: int) -> dict[str, Any]:
    """One step as ATIF."""
    atif = dict(step.extra.get("atif_fields") or {})
    ours = {"id": step.id} if step.id else {}
    data: dict[str, Any] = {"step_id": number, "source": step.source, "message": atif.pop("message", step.text)}
    if _is_iso(step.timestamp):
        data["timestamp"] = step.timestamp
    elif step.timestamp:
        ours["timestamp"] = step.timestamp
    if step.source == "agent":
        data |= _agent_fields(step)
    if step.results:
        ids = {c.id for c in step.calls}
        data["observation"] = {"results": [_result(r, ids) for r in step.results]}
    extra = {k: v for k, v in step.extra.items() if k not in ("atif_fields", "subagent_fields")} | (
        {OURS: ours} if ours else {}
    )
    return data | atif | ({"extra": extra} if extra else {})


def _agent_fields(step: TraceStep) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if step.model:
        data["model_name"] = step.model
    if step.thinking:
        data["reasoning_content"] = step.thinking
    if step.calls:
        data["tool_calls"] = [_call(c) for c in step.calls]
    if step.usage is not None:
        data["metrics"] = _metrics(step.usage)
    return data


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.parsed()
    if "Infinity" in arguments_text(arguments) or "NaN" in arguments_text(arguments):
        arguments = {}  # numbers that JSON lacks; the text as it was given is kept below
    exact = arguments_text(arguments) == call.arguments
    extra = call.extra if exact else {**call.extra, OURS: {"arguments": call.arguments}}
    data = {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}
    return data | ({"extra": extra} if extra else {})


def _result(result: Result, ids: set[str]) -> dict[str, Any]:
    atif = dict(result.extra.get("atif_fields") or {})
    ours: dict[str, Any] = {} if result.error is None else {"error": result.error}
    data: dict[str, Any] = {"content": atif.pop("content", result.text)}
    if result.call in ids:
        data["source_call_id"] = result.call
    elif result.call:
        ours["call"] = result.call
    extra = {k: v for k, v in result.extra.items() if k != "atif_fields"} | ({OURS: ours} if ours else {})
    return data | atif | ({"extra": extra} if extra else {})


def _metrics(usage: Usage) -> dict[str, Any]:
    known = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.usd,
    }
    data = {k: v for k, v in known.items() if v is not None}
    data |= {k: usage.extra[k] for k in _METRICS if k in usage.extra}
    rest = {k: v for k, v in usage.extra.items() if k not in (*_METRICS, "extra")} | (usage.extra.get("extra") or {})
    return data | ({"extra": rest} if rest else {})


def _label(label: Label) -> dict[str, Any]:
    kept = ("call", "label", "annotator", "codebook", "time", "note", "unsure", "adjudicates", "id")
    return {k: v for k in kept if (v := getattr(label, k)) not in ("", False)}


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return bool(text)


@dataclass
class _Totals:
    steps: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    def add(self, step: TraceStep) -> None:
        self.steps += 1
        if step.usage is None:
            return
        for name, value in (
            ("total_prompt_tokens", step.usage.prompt_tokens),
            ("total_completion_tokens", step.usage.completion_tokens),
            ("total_cached_tokens", step.usage.cached_tokens),
            ("total_cost_usd", step.usage.usd),
        ):
            if value is not None:
                self.sums[name] = self.sums.get(name, 0) + value

    def metrics(self) -> dict[str, Any]:
        return {**self.sums, "total_steps": self.steps}
