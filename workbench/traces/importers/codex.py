"""Codex: rollout files of sessions, and the stream of `codex exec --json`.

In a rollout the items of one model response (text, reasoning, calls) become one step; arguments are verbatim. The
stream does not say which items came from one response: each is a step of its own, and tokens are known for the whole only.
Left out: events that repeat what response items say, the world state, encrypted reasoning.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.traces.files import Broken, json_lines
from workbench.traces.importers.drafts import (
    Draft,
    Drafts,
    UnknownEntry,
    count,
    flag,
    ignore,
    iso,
    plain_text,
    record,
    unknown,
    whole,
)
from workbench.traces.trace import Report, Result, TraceInfo, TraceStep, Usage, arguments_text

FORMATS = ("codex-rollout", "codex-exec")
IGNORED = frozenset("session_meta turn_context world_state event_msg token_usage_record ghost_snapshot".split())
STREAM_IGNORED = frozenset("thread.started turn.started turn.completed turn.failed item.updated error".split())
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_PROVIDER_CALLS = {"web_search_call": "action", "tool_search_call": "arguments", "image_generation_call": "prompt"}


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself."""
    info: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for entry in json_lines(path):
        kind, payload = entry.get("type"), record(entry.get("payload"))
        if kind == "session_meta" and "session" not in info:
            info |= {"session": str(payload.get("id") or ""), "cwd": str(payload.get("cwd") or "")}
            info["version"] = str(payload.get("cli_version") or "")
            if isinstance(text := record(payload.get("base_instructions")).get("text"), str):
                extra["base_instructions"] = text
        elif kind == "turn_context" and payload.get("model"):
            info.setdefault("model", str(payload["model"]))
        elif kind == "thread.started":
            info.setdefault("session", str(entry.get("thread_id") or ""))
        elif kind in ("turn.completed", "turn.failed"):
            extra.setdefault("turns", []).append({k: v for k, v in entry.items() if k in ("type", "usage", "error")})
    return TraceInfo(agent="codex", format=format, extra=extra, **info)


def read(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in the order in which they began, of either format."""
    state = _State()
    for entry in json_lines(path, broken):
        kind, payload = str(entry.get("type")), record(entry.get("payload"))
        name = f"{kind}/{payload['type']}" if isinstance(payload.get("type"), str) else kind
        item = record(entry.get("item"))
        if kind in ("item.started", "item.completed"):
            name = f"{kind}/{item.get('type')}"
        count(report, name)
        taken = _entry(state, entry, kind, payload, item)
        if taken is None:
            ignore(report, name)
        elif not taken:
            yield unknown(report, name, entry)
        yield from state.drafts.finished()
    yield from state.drafts.rest()


class _State:
    """drafts, and whether the next item of the agent belongs to the last one (`open`)."""

    def __init__(self) -> None:
        self.drafts, self.open, self.agent, self.model = Drafts(), False, None, ""

    def agent_draft(self, entry: dict[str, Any], id: Any) -> Draft:
        if not self.open or self.agent is None:
            about = {"timestamp": iso(entry.get("timestamp")), "id": str(id or ""), "model": self.model}
            self.agent, self.open = self.drafts.begin(Draft("agent", **about)), True
        return self.agent


def _entry(state: _State, entry: dict, kind: str, payload: dict, item: dict) -> bool | None:
    """Take an entry. None: known, and no message. False: not known."""
    if kind == "response_item":
        return _response_item(state, entry, payload)
    if kind == "compacted":
        extra = {"codex_entry": kind}
        text = str(payload.get("message") or "")
        state.drafts.begin(Draft("user", texts=[text], timestamp=iso(entry.get("timestamp")), extra=extra))
        state.open = False
        return True
    if kind in ("item.started", "item.completed"):
        return _stream_item(state, item, kind == "item.completed")
    if kind in STREAM_IGNORED:
        return None
    if kind not in IGNORED:
        return False
    if kind == "turn_context":
        state.model = str(payload.get("model") or state.model)
    elif kind == "token_usage_record":
        _used(state, record(payload.get("usage")), replace=True)
    elif payload.get("type") == "token_count":  # older versions have only this one
        _used(state, record(record(payload.get("info")).get("last_token_usage")), replace=False)
    return None


def _used(state: _State, usage: dict[str, Any], replace: bool) -> None:
    if state.agent is not None and usage and (replace or state.agent.usage is None):
        tokens = (usage.get("input_tokens"), usage.get("output_tokens"), usage.get("cached_input_tokens"))
        reasoning = whole(usage.get("reasoning_output_tokens"))
        extra = {"reasoning_output_tokens": reasoning} if reasoning else {}
        state.agent.usage = Usage(*map(whole, tokens), extra=extra)
    state.open = False  # usage ends a response


def _response_item(state: _State, entry: dict[str, Any], payload: dict[str, Any]) -> bool:
    kind, id = payload.get("type"), payload.get("id")
    if kind == "message":
        _message(state, entry, payload)
    elif kind == "reasoning":
        text = [plain_text(payload.get(k))[0] for k in ("summary", "content")]
        state.agent_draft(entry, id).thoughts += [t for t in text if t]
    elif kind in _CALLS or kind in _PROVIDER_CALLS:
        draft = state.agent_draft(entry, id)
        given = payload.get(_CALLS.get(kind) or _PROVIDER_CALLS[kind])
        name = payload.get("name") or {"local_shell_call": "shell"}.get(kind, kind.removesuffix("_call"))
        call = draft.call(payload.get("call_id") or id, name, arguments_text(given if given is not None else {}))
        if kind in _CALLS:
            state.drafts.called(draft, call)
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        _output(state, entry, payload)
    else:
        return False
    return True


def _message(state: _State, entry: dict[str, Any], payload: dict[str, Any]) -> None:
    text, parts = plain_text(payload.get("content"))
    extra = {"parts": parts} if parts else {}
    if payload.get("role") == "assistant":
        draft = state.agent_draft(entry, payload.get("id"))
        draft.texts.append(text)
        draft.extra |= extra
        return
    source = "user" if payload.get("role") == "user" else "system"
    about = {"timestamp": iso(entry.get("timestamp")), "id": str(payload.get("id") or "")}
    state.drafts.begin(Draft(source, texts=[text], extra=extra, **about))
    state.open = False


def _output(state: _State, entry: dict[str, Any], payload: dict[str, Any]) -> None:
    output, error = payload.get("output"), None
    if isinstance(output, dict):
        error = None if flag(output.get("success")) is None else not output["success"]
        output = output.get("content")
    text, parts = plain_text(output)
    extra = {"parts": parts} if parts else {}
    state.drafts.result(Result(text, str(payload.get("call_id") or ""), error, extra), iso(entry.get("timestamp")))
    state.open = False


def _stream_item(state: _State, item: dict[str, Any], done: bool) -> bool | None:
    kind, key = item.get("type"), str(item.get("id") or "")
    draft = state.drafts.find(key)
    if kind == "error":  # of the program, not the agent's
        if done:
            state.drafts.begin(Draft("system", texts=[str(item.get("message") or "")], id=key))
        return True
    if not isinstance(kind, str):
        return False
    if draft is None:
        draft = state.drafts.begin(Draft("agent", key=key, id=key))
    if kind in ("agent_message", "reasoning"):
        (draft.texts if kind == "agent_message" else draft.thoughts)[:] = [str(item.get("text") or "")]
        return True
    if not draft.calls:
        name, arguments = _stream_call(kind, item)
        state.drafts.called(draft, draft.call(key, name, arguments))
    if done:
        draft.results[:] = [_stream_result(item, draft.calls[0].id)]
    return kind in _STREAM_CALLS


_STREAM_CALLS = {
    "command_execution": "shell",
    "file_change": "apply_patch",
    "mcp_tool_call": "mcp",
    "web_search": "web_search",
    "todo_list": "update_plan",
    "collab_tool_call": "collab",
}
_STREAM_OUTCOME = ("id", "type", "status", "aggregated_output", "exit_code", "result", "error", "output")


def _stream_call(kind: str, item: dict[str, Any]) -> tuple[str, str]:
    given = {k: v for k, v in item.items() if k not in _STREAM_OUTCOME}
    if kind == "command_execution" and isinstance(given.get("command"), str):
        given["command"] = _script(given["command"])
    name = item.get("tool") if kind == "mcp_tool_call" else None
    return str(name or _STREAM_CALLS.get(kind, kind)), json.dumps(given, ensure_ascii=False)


def _script(command: str) -> str:
    """What bash was given in "/bin/bash -lc 'SCRIPT'"; other commands as they are."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[0].endswith("sh") and words[1] in ("-c", "-lc") else command


def _stream_result(item: dict[str, Any], call: str) -> Result:
    shown = next((item[k] for k in ("aggregated_output", "output", "result", "error") if item.get(k)), "")
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    code = whole(item.get("exit_code"))
    error = code != 0 if code is not None else item.get("status") == "failed"
    return Result(text, call, error, {} if code is None else {"exit_code": code})
