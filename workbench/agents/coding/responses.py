"""OpenAI responses, the only format that Codex speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.agents.coding.chat import error, headers
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

__all__ = ["PATH", "error", "headers", "outgoing", "results", "said", "system"]

PATH = "/responses"
_FIELDS = (
    "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "temperature", "top_p",
    "prompt_cache_key", "truncation",
)  # fmt: skip
_TOOLS = ("function", "custom")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_TRANSIENT = ("server_error", "rate_limit_exceeded", "server_is_overloaded", "slow_down")


def outgoing(body: dict[str, Any], model: str, limit: int) -> dict[str, Any]:
    """See wire.Wire. Tools that run at the provider's (search, code, MCP, images) are left out, and nothing is stored."""
    refuse_references(body.get("input"))
    made = kept(body, _FIELDS)
    if not isinstance(made.get("input"), list | str):
        raise Forbidden("a request needs input")
    if any(item.get("type") == "item_reference" for item in records(made["input"])):
        raise Forbidden("references to stored items are not passed on")
    if "tools" in made:
        made["tools"] = [tool for tool in records(made["tools"]) if tool.get("type") in _TOOLS]
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        made["include"] = ["reasoning.encrypted_content"]
    limit = capped(body, ("max_output_tokens",), limit)
    return made | {"model": model, "stream": True, "store": False, "max_output_tokens": limit}


def said(events: Iterable[dict[str, Any]]) -> Said:
    """See wire.Wire."""
    items: list[dict[str, Any]] = []
    end, last = {}, ""
    for event in events:
        kind = event.get("type")
        if kind == "response.output_item.done":
            items.append(record(event.get("item")))
        elif kind in _ENDS:
            end, last = record(event.get("response")), str(kind)
        elif kind == "error":
            end, last = {"error": event.get("error") or event}, "response.failed"
    items = items or records(end.get("output"))
    usage, problem = record(end.get("usage")), record(end.get("error"))
    calls = tuple(_call(item) for item in items if item.get("type") in _CALLS)
    return Said(
        text="".join(content_text(i.get("content")) for i in items if i.get("type") == "message"),
        thinking="\n".join(content_text(i.get("summary")) for i in items if i.get("type") == "reasoning"),
        calls=calls,
        finish=_finish(end, last, calls),
        prompt_tokens=number(usage.get("input_tokens")),
        completion_tokens=number(usage.get("output_tokens")),
        cached_tokens=number(record(usage.get("input_tokens_details")).get("cached_tokens")),
        counted=bool(usage),
        complete=last in ("response.completed", "response.incomplete"),
        error=str(problem.get("message") or problem.get("code") or "failed") if last == "response.failed" else "",
        transient=problem.get("code") in _TRANSIENT or problem.get("type") in _TRANSIENT,
    )


def _finish(end: dict[str, Any], last: str, calls: tuple[ToolCall, ...]) -> Finish:
    if last == "response.incomplete":
        reason = record(end.get("incomplete_details")).get("reason")
        return "length" if reason == "max_output_tokens" else "refused"
    return "calls" if calls else "stop"


def _call(item: dict[str, Any]) -> ToolCall:
    arguments = item.get("arguments") if item.get("type") == "function_call" else item.get("input")
    name = item.get("name") or ("local_shell" if item.get("type") == "local_shell_call" else "")
    return ToolCall(str(item.get("call_id") or item.get("id") or ""), str(name), str(arguments or ""))


def results(body: Mapping[str, Any]) -> list[Result]:
    """See wire.Wire."""
    told = [i for i in records(body.get("input")) if i.get("type") in _OUTPUTS]
    return [Result(content_text(i.get("output")), str(i.get("call_id") or i.get("id") or "")) for i in told]


def system(body: Mapping[str, Any]) -> str:
    """See wire.Wire."""
    told = [i for i in records(body.get("input")) if i.get("role") in ("system", "developer")]
    texts = [str(body.get("instructions") or ""), *(content_text(i.get("content")) for i in told)]
    return "\n".join(text for text in texts if text)
