"""The chat-completions dialect of the gateway: what a request asks, and how an answer is written down."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.models.chat_format import content_of, parse_tool_calls

ROLES = {"system", "user", "assistant", "tool"}
MESSAGES = 4096  # of one request
# Fields that would change the answer in ways that an engine does not offer; silence about them would be a wrong answer.
REFUSED = ("logit_bias", "functions", "function_call", "audio", "logprobs", "top_logprobs", "prediction")


class BadRequest(ValueError):
    """The request cannot be answered as it is asked; the text says why. code: the API's own word, where it has one."""

    def __init__(self, said: str, code: str = "invalid_request"):
        super().__init__(said)
        self.code = code


@dataclass(frozen=True)
class Asked:
    """What counts of a request. max_tokens: None when it names none."""

    messages: tuple[dict, ...]
    tools: tuple[dict, ...]
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    usage: bool


def read_request(body: object) -> Asked:
    """Check a parsed body. Raises BadRequest. Temperature, top_p, seed and penalties are the session's, not the client's."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    refused = [k for k in REFUSED if body.get(k)]
    if refused or body.get("n") not in (None, 1):
        raise BadRequest(f"not offered here: {', '.join(refused) or 'n other than 1'}")
    if body.get("tool_choice") not in (None, "auto") or (body.get("response_format") or {}).get("type") not in (None, "text"):  # fmt: skip
        raise BadRequest("not offered here: tool_choice other than auto, response_format other than text")
    stop = body.get("stop") or ()
    stop = (stop,) if isinstance(stop, str) else tuple(stop)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (type(limit) is not int or limit < 1):
        raise BadRequest("max_tokens must be a positive integer")
    if not all(isinstance(s, str) for s in stop) or len(stop) > 16:
        raise BadRequest("stop must be up to 16 strings")
    return Asked(
        messages=_messages(body.get("messages")),
        tools=_tools(body.get("tools")),
        max_tokens=limit,
        stop=stop,
        stream=bool(body.get("stream")),
        usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def message_of(text: str, call: int, tools: bool) -> dict:
    """The assistant's message for a sampled text. Calls are looked for only where tools were offered."""
    content, calls = parse_tool_calls(text) if tools else (text, [])
    message: dict = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{call}_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ]
    return message


def completion(message: Mapping, finish: str, prompt_tokens: int, completion_tokens: int, name: str, call: int) -> dict:
    """The body of an answer that is not streamed."""
    return {
        "id": f"chatcmpl-{call}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else finish}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }  # fmt: skip


def stream_of(body: Mapping, usage: bool) -> bytes:
    """The same answer as server-sent events: the message in one piece, since it is sampled as a whole."""
    choice = body["choices"][0]
    delta = {k: v for k, v in choice["message"].items() if k != "tool_calls"}
    deltas = [delta]
    for number, call in enumerate(choice["message"].get("tool_calls", [])):
        deltas.append({"tool_calls": [{"index": number, **call}]})
    head = {k: body[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if usage:
        chunks.append({**head, "choices": [], "usage": body["usage"]})
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def _messages(messages: object) -> tuple[dict, ...]:
    if not isinstance(messages, list) or not 0 < len(messages) <= MESSAGES:
        raise BadRequest(f"messages must be a list of 1 to {MESSAGES}")
    out = []
    for message in messages:
        if not isinstance(message, dict):
            raise BadRequest("a message must be an object")
        role = {"developer": "system"}.get(str(message.get("role")), message.get("role"))
        if role not in ROLES:
            raise BadRequest(f"no role {str(role)[:40]!r}: use one of {sorted(ROLES)}")
        content_of(message)  # only text
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(_is_function(c) for c in calls):
            raise BadRequest("tool_calls must be a list of function calls")
        out.append({**message, "role": role})
    if out[-1]["role"] == "assistant":
        raise BadRequest("the last message is the assistant's own: answers cannot be prefilled here")
    return tuple(out)


def _tools(tools: object) -> tuple[dict, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list) or len(tools) > 256 or not all(_is_function(t) for t in tools):
        raise BadRequest("tools must be a list of up to 256 functions")
    return tuple(tools)


def _is_function(value: object) -> bool:
    function = value.get("function") if isinstance(value, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
