"""What the three wire formats share: the record of one reply, server-sent events, and what may not leave a sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from workbench.traces.trace import Result, ToolCall

Finish = Literal["stop", "calls", "length", "refused"]


@dataclass(frozen=True)
class Said:
    """One reply of a model, read from its stream. Tokens as the endpoint counts them; prompt_tokens includes cached ones.

    complete: the stream came to its own end. error: what the endpoint said in the middle of a stream; transient: whether
    asking again may help. counted: whether the endpoint told its usage."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    counted: bool = False
    complete: bool = False
    error: str = ""
    transient: bool = False


class Forbidden(ValueError):
    """A request asks the endpoint for more than an answer: its own tools, or to fetch something."""


class Wire(Protocol):
    """One wire format: a module with these names."""

    PATH: str

    def outgoing(self, body: dict[str, Any], model: str, limit: int) -> dict[str, Any]:
        """The request as it leaves the host: known fields only, `model` set, streamed, at most `limit` tokens of reply.
        Raises Forbidden."""

    def said(self, events: Iterable[dict[str, Any]]) -> Said:
        """The reply that a stream carried."""

    def results(self, body: Mapping[str, Any]) -> list[Result]:
        """The tool results that a request holds, in order."""

    def system(self, body: Mapping[str, Any]) -> str:
        """The system prompt of a request."""

    def error(self, message: str) -> dict[str, Any]:
        """An error as this format tells it."""

    def headers(self, key: str) -> dict[str, str]:
        """How this format carries its key."""


def events(data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events; {"type": "[DONE]"} for the mark at the end of chat streams.
    What is no JSON object is passed over."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    for block in text.split("\n\n"):
        value = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if value.strip() == "[DONE]":
            yield {"type": "[DONE]"}
            continue
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def kept(body: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Only the fields of a request that are known to ask for nothing but an answer."""
    return {name: body[name] for name in names if name in body}


def refuse_references(value: Any) -> None:
    """Raise Forbidden where content names something that the endpoint would fetch: a sandbox without a network must not
    reach one through its model. Data that is sent along (base64) stays; so do the arguments of tool calls."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name in ("input", "arguments") and str(value.get("type")) not in ("", "None", "message"):
                    continue
                if name in ("file_id", "file_url") and inner:
                    raise Forbidden(f"{name} is not passed on: send the content itself")
                if name in ("url", "image_url") and isinstance(inner, str) and not inner.startswith("data:"):
                    raise Forbidden("a link is not passed on: send the content itself")
                stack.append(inner)


def number(value: Any) -> int:
    """A count that an endpoint told, 0 when it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def records(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def content_text(value: Any) -> str:
    """The text of a content that is a string or a list of parts."""
    if isinstance(value, str):
        return value
    return "\n".join(part["text"] for part in records(value) if isinstance(part.get("text"), str))


def capped(body: Mapping[str, Any], names: tuple[str, ...], limit: int) -> int:
    """The smallest of `limit` and what the request asks for."""
    asked = [number(body.get(name)) for name in names]
    return max(min([limit, *(value for value in asked if value)]), 1)
