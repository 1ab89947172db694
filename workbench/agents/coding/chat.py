"""OpenAI chat completions, which Pi speaks (and vLLM, llama.cpp, and most servers)."""

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

PATH = "/chat/completions"
_FIELDS = (
    "messages", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "top_k", "stop", "seed",
    "reasoning_effort", "response_format", "presence_penalty", "frequency_penalty", "prompt_cache_key",
)  # fmt: skip
_LIMITS = ("max_completion_tokens", "max_tokens")
_FINISH: dict[Any, Finish] = {"stop": "stop", "tool_calls": "calls", "length": "length", "content_filter": "refused"}


def outgoing(body: dict[str, Any], model: str, limit: int) -> dict[str, Any]:
    """See wire.Wire. Tools other than functions are left out: they would run at the provider's."""
    refuse_references(body.get("messages"))
    made = kept(body, _FIELDS)
    if not isinstance(made.get("messages"), list):
        raise Forbidden("a request needs messages")
    if "tools" in made:
        made["tools"] = [tool for tool in records(made["tools"]) if tool.get("type") == "function"]
    name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
    made |= {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    return made | {name: capped(body, _LIMITS, limit)}


def said(events: Iterable[dict[str, Any]]) -> Said:
    """See wire.Wire."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    finish, usage, error = None, {}, ""
    for event in events:
        if event.get("error"):
            error = str(record(event["error"]).get("message") or event["error"])
        usage = record(event.get("usage")) or usage
        for choice in records(event.get("choices"))[:1]:
            finish = choice.get("finish_reason") or finish
            delta = record(choice.get("delta"))
            texts.append(delta.get("content") or "")
            thoughts.append(delta.get("reasoning_content") or delta.get("reasoning") or "")
            for piece in records(delta.get("tool_calls")):
                _add(calls, piece)
    found = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for _, c in sorted(calls.items()))
    ended = _FINISH.get(finish, "stop")
    return Said(
        text="".join(map(str, texts)),
        thinking="".join(map(str, thoughts)),
        calls=found,
        finish="calls" if found and ended == "stop" else ended,
        prompt_tokens=number(usage.get("prompt_tokens")),
        completion_tokens=number(usage.get("completion_tokens")),
        cached_tokens=number(record(usage.get("prompt_tokens_details")).get("cached_tokens")),
        counted=bool(usage),
        complete=finish is not None,
        error=error,
        transient=bool(error),
    )


def _add(calls: dict[int, dict[str, str]], piece: dict[str, Any]) -> None:
    call = calls.setdefault(number(piece.get("index")), {"id": "", "name": "", "arguments": ""})
    function = record(piece.get("function"))
    call["id"] = call["id"] or str(piece.get("id") or "")
    call["name"] = call["name"] or str(function.get("name") or "")
    call["arguments"] += str(function.get("arguments") or "")


def results(body: Mapping[str, Any]) -> list[Result]:
    """See wire.Wire."""
    told = [m for m in records(body.get("messages")) if m.get("role") == "tool"]
    return [Result(content_text(m.get("content")), str(m.get("tool_call_id") or "")) for m in told]


def system(body: Mapping[str, Any]) -> str:
    """See wire.Wire."""
    told = [m for m in records(body.get("messages")) if m.get("role") in ("system", "developer")]
    return "\n".join(content_text(m.get("content")) for m in told)


def error(message: str) -> dict[str, Any]:
    """See wire.Wire."""
    return {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


def headers(key: str) -> dict[str, str]:
    """See wire.Wire."""
    return {"authorization": f"Bearer {key}"} if key else {}
