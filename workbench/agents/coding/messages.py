"""Anthropic messages, which Claude Code speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.agents.coding.wire import (
    Finish,
    Forbidden,
    Said,
    capped,
    content_text,
    kept,
    number,
    record,
    records,
    refuse_references,
)
from workbench.traces.trace import Result, ToolCall

PATH = "/messages"
_FIELDS = (
    "messages", "system", "tools", "tool_choice", "temperature", "top_p", "top_k", "stop_sequences", "thinking",
    "context_management", "output_config", "cache_control",
)  # fmt: skip
_LOCAL_TOOLS = ("bash_", "text_editor_", "memory_")  # typed tools that the client itself runs
_FINISH: dict[Any, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "calls", "max_tokens": "length", "refusal": "refused",
    "model_context_window_exceeded": "length",
}  # fmt: skip
_TRANSIENT = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")
_INPUTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def outgoing(body: dict[str, Any], model: str, limit: int) -> dict[str, Any]:
    """See wire.Wire. Tools that run at the provider's (search, fetch, code, MCP) are left out, and so is `metadata`."""
    refuse_references([body.get("messages"), body.get("system")])
    made = kept(body, _FIELDS)
    if not isinstance(made.get("messages"), list):
        raise Forbidden("a request needs messages")
    if "tools" in made:
        made["tools"] = [tool for tool in records(made["tools"]) if _local(tool)]
    limit = capped(body, ("max_tokens",), limit)
    if number(record(made.get("thinking")).get("budget_tokens")) >= limit:  # the endpoint would refuse it
        made.pop("thinking")
    return made | {"model": model, "stream": True, "max_tokens": limit}


def _local(tool: dict[str, Any]) -> bool:
    kind = tool.get("type")
    return kind in (None, "custom") or str(kind).startswith(_LOCAL_TOOLS)


def said(events: Iterable[dict[str, Any]]) -> Said:
    """See wire.Wire."""
    blocks: dict[int, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    reason, ended, problem = None, False, {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            usage |= record(record(event.get("message")).get("usage"))
        elif kind == "content_block_start":
            blocks[number(event.get("index"))] = {**record(event.get("content_block")), "json": ""}
        elif kind == "content_block_delta":
            _grow(blocks.setdefault(number(event.get("index")), {"json": ""}), record(event.get("delta")))
        elif kind == "message_delta":
            reason = record(event.get("delta")).get("stop_reason") or reason
            usage |= {k: v for k, v in record(event.get("usage")).items() if v is not None}
        elif kind == "message_stop":
            ended = True
        elif kind == "error":
            problem = record(event.get("error"))
    found = [block for _, block in sorted(blocks.items())]
    return Said(
        text="".join(str(b.get("text") or "") for b in found if b.get("type") == "text"),
        thinking="\n".join(str(b.get("thinking") or "") for b in found if b.get("type") == "thinking"),
        calls=tuple(
            ToolCall(str(b.get("id") or ""), str(b.get("name") or ""), b["json"])
            for b in found
            if b.get("type") == "tool_use"
        ),
        finish=_FINISH.get(reason, "stop"),
        prompt_tokens=sum(number(usage.get(name)) for name in _INPUTS),
        completion_tokens=number(usage.get("output_tokens")),
        cached_tokens=number(usage.get("cache_read_input_tokens")),
        counted="output_tokens" in usage,
        complete=ended,
        error=str(problem.get("message") or problem.get("type") or "error") if problem else "",
        transient=problem.get("type") in _TRANSIENT,
    )


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    block["json"] += str(delta.get("partial_json") or "")
    for name in ("text", "thinking"):
        if delta.get(name):
            block[name] = str(block.get(name) or "") + str(delta[name])


def results(body: Mapping[str, Any]) -> list[Result]:
    """See wire.Wire."""
    parts = [p for m in records(body.get("messages")) if m.get("role") == "user" for p in records(m.get("content"))]
    told = [part for part in parts if part.get("type") == "tool_result"]
    return [
        Result(content_text(p.get("content")), str(p.get("tool_use_id") or ""), p.get("is_error") is True) for p in told
    ]


def system(body: Mapping[str, Any]) -> str:
    """See wire.Wire."""
    told = [m for m in records(body.get("messages")) if m.get("role") == "system"]
    texts = [content_text(body.get("system")), *(content_text(m.get("content")) for m in told)]
    return "\n".join(text for text in texts if text)


def error(message: str) -> dict[str, Any]:
    """See wire.Wire."""
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def headers(key: str) -> dict[str, str]:
    """See wire.Wire."""
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
