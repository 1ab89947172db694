"""mini-swe-agent trajectories: one JSON file with `info` and `messages`.

A reply without a valid call is kept by the program only inside the complaint that it got; here it is a step of the agent
again. Left out: whole responses of the provider, but for their usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.traces.files import Broken, json_members
from workbench.traces.importers.drafts import (
    Draft,
    Drafts,
    UnknownEntry,
    blocks,
    count,
    ignore,
    iso,
    plain_text,
    record,
    unknown,
    whole,
)
from workbench.traces.trace import Report, Result, TraceInfo, TraceStep, Usage, arguments_text

FORMATS = ("mini-swe-agent",)


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself."""
    info: dict[str, Any] = {}
    version = ""
    for name, value in json_members(path, {"messages"}):
        if name == "info":
            info = record(value)
        elif name == "trajectory_format":
            version = str(value)
    config = record(info.get("config"))
    return TraceInfo(
        agent="mini-swe-agent",
        format=format,
        model=str(record(config.get("model")).get("model_name") or ""),
        version=str(info.get("mini_version") or ""),
        cwd=str(record(config.get("environment")).get("cwd") or ""),
        extra={"trajectory_format": version}
        | {k: info[k] for k in ("exit_status", "submission", "model_stats", "config") if info.get(k)},
    )


def read(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in the order of the messages."""
    drafts = Drafts()
    for name, message in json_members(path, {"messages"}, broken):
        if name != "messages":
            continue
        role = str(record(message).get("role"))
        count(report, role)
        if role == "exit":
            ignore(report, role)
        elif role not in _ROLES:
            yield unknown(report, role, message)
        else:
            _ROLES[role](drafts, message, record(message.get("extra")))
        yield from drafts.finished()
    yield from drafts.rest()


def _said(message: dict[str, Any]) -> str:
    return plain_text(message.get("content"))[0]


def _system(drafts: Drafts, message: dict[str, Any], extra: dict[str, Any]) -> None:
    drafts.begin(Draft("system", texts=[_said(message)], timestamp=iso(extra.get("timestamp"))))


def _user(drafts: Drafts, message: dict[str, Any], extra: dict[str, Any]) -> None:
    last = drafts.last
    if isinstance(extra.get("response"), dict):  # a complaint about a reply
        _reply(drafts, extra)
    elif last and last.source == "agent" and last.waits():  # actions in fenced blocks are answered by the user
        last.results.append(Result(_said(message), last.calls[0].id, **_outcome(extra)))
        return
    notes = {"interrupt_type": extra["interrupt_type"]} if extra.get("interrupt_type") else {}
    drafts.begin(Draft("user", texts=[_said(message)], timestamp=iso(extra.get("timestamp")), extra=notes))


def _reply(drafts: Drafts, extra: dict[str, Any]) -> None:
    """The refused reply that is inside of a complaint."""
    choices = extra["response"].get("choices")
    reply = record(record(choices[0]).get("message")) if isinstance(choices, list) and choices else {}
    draft = drafts.begin(Draft("agent", texts=[_said(reply)], usage=_usage(extra), extra={"refused": True}))
    for call in blocks(reply.get("tool_calls")):
        function = record(call.get("function"))
        draft.call(call.get("id"), function.get("name"), arguments_text(function.get("arguments") or ""))


def _assistant(drafts: Drafts, message: dict[str, Any], extra: dict[str, Any]) -> None:
    model = record(extra.get("response")).get("model")
    draft = drafts.begin(
        Draft(
            "agent",
            texts=[_said(message)],
            thoughts=[str(message.get("reasoning_content") or "")],
            model=str(model or ""),
            timestamp=iso(extra.get("timestamp")),
            usage=_usage(extra),
        )
    )
    for call in blocks(message.get("tool_calls")):
        function = record(call.get("function"))
        made = draft.call(call.get("id"), function.get("name"), arguments_text(function.get("arguments") or ""))
        drafts.called(draft, made)
    if not draft.calls:
        for action in blocks(extra.get("actions")):
            given = {"command": str(action.get("command") or "")}
            draft.call(None, "bash", json.dumps(given, ensure_ascii=False))


def _tool(drafts: Drafts, message: dict[str, Any], extra: dict[str, Any]) -> None:
    result = Result(_said(message), str(message.get("tool_call_id") or ""), **_outcome(extra))
    drafts.result(result, iso(extra.get("timestamp")))


_ROLES = {"system": _system, "user": _user, "assistant": _assistant, "tool": _tool}


def _outcome(extra: dict[str, Any]) -> dict[str, Any]:
    code = whole(extra.get("returncode"))
    return {} if code is None else {"error": code != 0, "extra": {"exit_code": code}}


def _usage(extra: dict[str, Any]) -> Usage | None:
    usage, cost = record(record(extra.get("response")).get("usage")), extra.get("cost")
    if not usage:
        return None
    cached = record(usage.get("prompt_tokens_details")).get("cached_tokens")
    usd = float(cost) if isinstance(cost, int | float) else None
    return Usage(whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens")), whole(cached), usd)
