"""Claude Code: project sessions (a file a session) and `--output-format stream-json`.

One API message is split over lines, one line a content block, which share message.id and repeat usage: they become one
step, and usage counts once. Rewound prompts and sub-agents are side branches. Left out: `toolUseResult` (what the
program kept and the model never saw), attachments, hooks, file snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.traces.files import Broken, json_lines
from workbench.traces.importers.drafts import (
    Draft,
    Drafts,
    Tree,
    UnknownEntry,
    blocks,
    count,
    flag,
    ignore,
    iso,
    plain_text,
    record,
    total,
    unknown,
    whole,
)
from workbench.traces.trace import Report, Result, TraceInfo, TraceStep, Usage, arguments_text

FORMATS = ("claude-code-session", "claude-code-stream")
IGNORED = frozenset(
    "attachment queue-operation last-prompt summary file-history-snapshot progress custom-title ai-title agent-name tag "
    "mode permission-mode api-request api-request-shape tools-used cost-state atis-latch result stream_event "
    "rate_limit_event control_request control_response keep_alive tool_progress auth_status tool_use_summary "
    "system".split()
)
_SYNTHETIC = "<synthetic>"  # the model name of messages that the program itself writes, such as API errors


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself; reads all of it."""
    info: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for entry in json_lines(path):
        kind, message = entry.get("type"), record(entry.get("message"))
        model = message.get("model") or (entry.get("model") if entry.get("subtype") == "init" else None)
        found = {
            "session": entry.get("sessionId") or entry.get("session_id"),
            "version": entry.get("version") or entry.get("claude_code_version"),
            "cwd": entry.get("cwd"),
            "model": model if model != _SYNTHETIC else None,
        }
        for name, value in found.items():
            if isinstance(value, str) and value:
                info.setdefault(name, value)
        if kind == "result":
            extra["result"] = {k: entry[k] for k in _OUTCOME if k in entry}
    return TraceInfo(agent="claude-code", format=format, extra=extra, **info)


_OUTCOME = (
    "subtype",
    "is_error",
    "api_error_status",
    "num_turns",
    "duration_ms",
    "total_cost_usd",
    "usage",
    "stop_reason",
)


def read(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in the order in which they began."""
    branches, drafts = _Branches(path), Drafts()
    for entry in json_lines(path, broken):
        kind = str(entry.get("type"))
        count(report, kind)
        message = entry.get("message")
        if kind == "assistant" and isinstance(message, dict):
            _assistant(entry, message, drafts, branches.of(entry))
        elif kind == "user" and isinstance(message, dict):
            _user(entry, message, drafts, branches.of(entry))
        elif kind in IGNORED:
            ignore(report, kind)
        else:
            yield unknown(report, kind, entry)
        yield from drafts.finished()
    yield from drafts.rest()


class _Branches:
    """Which branch an entry is on. The live one ends at the last message of the file. Pieces of one message count as
    one entry, since tools that run side by side make forks which are no branches."""

    def __init__(self, path: Path):
        self._tree, self._alive, leaf, whole_side = Tree(), set(), "", True
        messages: list[tuple[str, str]] = []
        for entry in json_lines(path):
            if not _place(entry) or entry.get("isSidechain"):
                continue
            parent = entry.get("parentUuid") or entry.get("logicalParentUuid")
            self._tree.add(_place(entry), parent if isinstance(parent, str) else None)
            if entry.get("type") in ("user", "assistant"):
                leaf, whole_side = _place(entry), False
                messages.append((_place(entry), _message_id(entry)))
        self._tree.settle(leaf)
        self._alive = {message for place, message in messages if message and self._tree.live(place)}
        self._all_side = whole_side

    def of(self, entry: dict[str, Any]) -> str:
        if parent := entry.get("parent_tool_use_id"):
            return f"subagent-{parent}"
        if entry.get("isSidechain"):
            return "" if self._all_side else f"subagent-{entry.get('agentId') or 'sidechain'}"
        if not _place(entry) or "parentUuid" not in entry or _message_id(entry) in self._alive:
            return ""
        return self._tree.side(_place(entry))


def _place(entry: dict[str, Any]) -> str:
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) else ""


def _message_id(entry: dict[str, Any]) -> str:
    found = record(entry.get("message")).get("id")
    return found if isinstance(found, str) else ""


def _assistant(entry: dict[str, Any], message: dict[str, Any], drafts: Drafts, branch: str) -> None:
    draft = drafts.find(_message_id(entry))
    if draft is None:
        draft = drafts.begin(_new(entry, message, branch))
    for block in blocks(message.get("content")):
        _block(block, draft, drafts)
    if isinstance(message.get("usage"), dict) and draft.source == "agent":
        draft.usage = _usage(message["usage"])  # the last line of a message has the final numbers
    if message.get("stop_reason"):
        draft.extra["stop_reason"] = message["stop_reason"]


def _new(entry: dict[str, Any], message: dict[str, Any], branch: str) -> Draft:
    ours = message.get("model") == _SYNTHETIC or entry.get("isApiErrorMessage")
    return Draft(
        "system" if ours else "agent",
        key=_message_id(entry),
        model="" if ours else str(message.get("model") or ""),
        timestamp=iso(entry.get("timestamp")),
        id=_place(entry),
        branch=branch,
        extra={"written_by": "claude-code"} if ours else {},
    )


def _block(block: dict[str, Any], draft: Draft, drafts: Drafts) -> None:
    kind = block.get("type")
    if kind == "text":
        draft.texts.append(str(block.get("text") or ""))
    elif kind == "thinking":
        draft.thoughts.append(str(block.get("thinking") or ""))
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        call = draft.call(block.get("id"), block.get("name"), arguments_text(block.get("input", {})))
        drafts.called(draft, call)
    elif isinstance(block.get("tool_use_id"), str):  # results of tools that run at the provider
        text, others = plain_text(block.get("content"))
        extra = {"parts": others} if others else {}
        drafts.result(Result(text, block["tool_use_id"], extra=extra), draft.timestamp, draft.branch)
    else:
        draft.extra.setdefault("blocks", []).append(block)


def _usage(usage: dict[str, Any]) -> Usage:
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    return Usage(
        total(usage.get("input_tokens"), cached, written),
        whole(usage.get("output_tokens")),
        whole(cached),
        extra={"cache_creation_input_tokens": written} if written else {},
    )


def _user(entry: dict[str, Any], message: dict[str, Any], drafts: Drafts, branch: str) -> None:
    said, others = [], []
    time = iso(entry.get("timestamp"))
    for block in blocks(message.get("content")):
        if block.get("type") == "tool_result":
            text, parts = plain_text(block.get("content"))
            extra = {"parts": parts} if parts else {}
            result = Result(text, str(block.get("tool_use_id") or ""), flag(block.get("is_error")), extra)
            drafts.result(result, time, branch)
        else:
            text, parts = plain_text([block])
            said += [text] if text else []
            others += parts
    if said or others:
        notes = {k: True for k in ("isMeta", "isCompactSummary", "isSynthetic") if entry.get(k)}
        extra = notes | ({"parts": others} if others else {})
        drafts.begin(Draft("user", texts=said, timestamp=time, id=_place(entry), branch=branch, extra=extra))
