"""ATIF 1.0 to 1.8 trajectories, of any producer. Nothing is left out: what a step has no field for is in `extra`.

Sub-agents' trajectories are side branches. A step that is marked as copied context stays, and is no turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.traces.files import Broken, json_members
from workbench.traces.importers.drafts import UnknownEntry, blocks, count, flag, plain_text, record, unknown, whole
from workbench.traces.store import TraceError
from workbench.traces.trace import Report, Result, ToolCall, TraceInfo, TraceStep, Usage, arguments_text

FORMATS = ("atif",)
VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
OURS = "workbench_trace"  # below `extra`: what ATIF has no field for
_RESERVED = (OURS, "atif_fields", "subagent_fields")
_STEP = {"step_id", "source", "message", "timestamp", "model_name", "reasoning_content", "tool_calls", "observation"}
_STEP |= {"metrics", "extra"}


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself. Raises TraceError for another version."""
    root = {
        k: v
        for k, v in json_members(path, {"steps", "subagent_trajectories"})
        if k not in ("steps", "subagent_trajectories")
    }
    version = root.pop("schema_version", None)
    if version not in VERSIONS:
        raise TraceError(f"{path}: schema_version is {version!r}: versions {VERSIONS[0]} to {VERSIONS[-1]} can be read")
    agent = record(root.pop("agent", None))
    session = root.pop("session_id", None)
    ours = record(record(root.get("extra")).get(OURS))
    rest = {k: v for k, v in root.items() if v is not None and k != "extra"}
    others = {k: v for k, v in record(root.get("extra")).items() if k not in _RESERVED}
    details = {k: v for k, v in agent.items() if k not in ("name", "version", "model_name") and v is not None}
    atif = rest | ({"extra": others} if others else {}) | ({"agent": details} if details else {})
    first = {"first_format": ours["format"]} if ours.get("format") else {}
    return TraceInfo(
        agent=str(agent.get("name") or "unknown"),
        format=format,
        model=str(agent.get("model_name") or ""),
        version=str(agent.get("version") or ""),
        session=str(session or ""),
        cwd=str(ours.get("cwd") or ""),
        extra={"schema_version": version, **first, **record(ours.get("extra"))}
        | ({"atif_fields": atif} if atif else {}),
    )


def read(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    """Steps of the trajectory, then those of the sub-agents that are embedded in it."""
    for name, value in json_members(path, {"steps", "subagent_trajectories"}, broken):
        if name == "steps":
            yield from _entry(value, report, "")
        elif name == "subagent_trajectories" and isinstance(value, dict):
            branch = str(value.get("trajectory_id") or "subagent")
            about = {k: v for k, v in value.items() if k != "steps"}
            for number, step in enumerate(blocks(value.get("steps"))):
                for made in _entry(step, report, branch):
                    if number == 0 and isinstance(made, TraceStep):
                        made.extra["subagent_fields"] = about
                    yield made


def _entry(value: Any, report: Report, branch: str) -> Iterator[TraceStep | UnknownEntry]:
    source = record(value).get("source")
    count(report, f"step/{source}")
    if source in ("system", "user", "agent"):
        yield step_of(value, branch)
    else:
        yield unknown(report, f"step/{source}", value)


def step_of(data: dict[str, Any], branch: str = "") -> TraceStep:
    """One ATIF step."""
    extra = {k: v for k, v in record(data.get("extra")).items() if k not in _RESERVED}
    ours = record(record(data.get("extra")).get(OURS))
    text, _ = plain_text(data.get("message"))
    atif = {k: v for k, v in data.items() if k not in _STEP and v is not None}
    if isinstance(data.get("message"), list):
        atif["message"] = data["message"]
    observation = data.get("observation")
    if isinstance(observation, dict) and not observation.get("results"):
        atif["observation"] = observation
    return TraceStep(
        source=data["source"],
        text=text,
        thinking=str(data.get("reasoning_content") or ""),
        calls=tuple(_call(c) for c in blocks(data.get("tool_calls"))),
        results=tuple(_result(r) for r in blocks(record(observation).get("results"))),
        model=str(data.get("model_name") or ""),
        timestamp=str(data.get("timestamp") or ours.get("timestamp") or ""),
        id=str(ours.get("id") or ""),
        usage=_usage(data["metrics"]) if isinstance(data.get("metrics"), dict) else None,
        branch=branch,
        extra=extra | ({"atif_fields": atif} if atif else {}),
    )


def _call(call: dict[str, Any]) -> ToolCall:
    extra = {k: v for k, v in record(call.get("extra")).items() if k not in _RESERVED}
    verbatim = record(record(call.get("extra")).get(OURS)).get("arguments")
    arguments = verbatim if isinstance(verbatim, str) else arguments_text(call.get("arguments") or {})
    return ToolCall(str(call.get("tool_call_id") or ""), str(call.get("function_name") or ""), arguments, extra)


def _result(result: dict[str, Any]) -> Result:
    extra = {k: v for k, v in record(result.get("extra")).items() if k not in _RESERVED}
    ours = record(record(result.get("extra")).get(OURS))
    atif = {k: v for k, v in result.items() if k == "subagent_trajectory_ref" and v is not None}
    text, _ = plain_text(result.get("content"))
    if isinstance(result.get("content"), list):
        atif["content"] = result["content"]
    call = str(result.get("source_call_id") or ours.get("call") or "")
    return Result(text, call, flag(ours.get("error")), extra | ({"atif_fields": atif} if atif else {}))


def _usage(metrics: dict[str, Any]) -> Usage:
    known = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    cost = metrics.get("cost_usd")
    return Usage(
        *(whole(metrics.get(k)) for k in known[:3]),
        usd=float(cost) if isinstance(cost, int | float) else None,
        extra={k: v for k, v in metrics.items() if k not in known and v is not None},
    )
