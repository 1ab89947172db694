"""A scripted model behind a real HTTP server that speaks the three wire formats of coding agents, streaming.

    python tests/agents/wire_endpoints.py SCRIPT.json [PORT]      serve a script until interrupted

A script is a list, one item a request, the last one for ever. `Say` (in JSON: {"text": …, "calls": [[tool, arguments]],
"finish": …}) is a reply; a number is an HTTP error; "cut" is a stream that breaks off; "hang" never answers. Which format
is spoken follows from the path: …/chat/completions, …/responses, …/messages.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Say:
    """One reply. calls: (tool, arguments); arguments that are a string go out as they are, well formed or not.
    finish: "" for what follows from the calls, or "length". body: with a status, what an error says."""

    text: str = ""
    calls: Sequence[tuple[str, Any]] = field(default_factory=tuple)
    finish: str = ""
    status: int = 200
    body: str = ""
    prompt_tokens: int = 1000
    completion_tokens: int = 50

    def arguments(self) -> Iterator[tuple[int, str, str]]:
        for number, (name, value) in enumerate(self.calls):
            yield number, name, value if isinstance(value, str) else json.dumps(value)


Event = tuple[str, Any]  # (event name or "", data)


def chat(say: Say, number: int) -> Iterator[Event]:
    """OpenAI chat completions."""

    def chunk(delta: dict, finish: str | None = None, **more: Any) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return "", {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
                    "choices": choices, **more}  # fmt: skip

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(say.text):
        yield chunk({"content": piece})
    for index, name, arguments in say.arguments():
        head = {"index": index, "id": f"call_{number}_{index}", "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, say.finish or ("tool_calls" if say.calls else "stop"))
    total = say.prompt_tokens + say.completion_tokens
    usage = {"prompt_tokens": say.prompt_tokens, "completion_tokens": say.completion_tokens, "total_tokens": total}
    yield "", {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
               "choices": [], "usage": usage}  # fmt: skip
    yield "", "[DONE]"


def responses(say: Say, number: int) -> Iterator[Event]:
    """OpenAI responses. A call to `apply_patch` goes out as a custom tool call."""

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    items: list[dict] = []
    yield event("response.created", response={"id": f"resp_{number}", "status": "in_progress", "output": []})
    if say.text:
        part = {"type": "output_text", "text": say.text, "annotations": []}
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
                      "content": [part]})  # fmt: skip
        opening = {**items[-1], "status": "in_progress", "content": []}
        yield event("response.output_item.added", output_index=0, item=opening)
        for piece in _pieces(say.text):
            yield event(
                "response.output_text.delta", output_index=0, item_id=f"msg_{number}", content_index=0, delta=piece
            )
        yield event("response.output_item.done", output_index=0, item=items[-1])
    for index, name, arguments in say.arguments():
        about = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}", "name": name, "status": "completed"}
        if name == "apply_patch":
            items.append({"type": "custom_tool_call", "input": arguments, **about})
        else:
            items.append({"type": "function_call", "arguments": arguments, **about})
        yield event(
            "response.output_item.added", output_index=len(items) - 1, item={**items[-1], "status": "in_progress"}
        )
        yield event("response.output_item.done", output_index=len(items) - 1, item=items[-1])
    usage = {"input_tokens": say.prompt_tokens, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens": say.completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
             "total_tokens": say.prompt_tokens + say.completion_tokens}  # fmt: skip
    done = {"id": f"resp_{number}", "object": "response", "model": "scripted", "output": items, "usage": usage}
    if say.finish == "length":
        reason = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        yield event("response.incomplete", response={**done, **reason})
    else:
        yield event("response.completed", response={**done, "status": "completed"})


def messages(say: Say, number: int) -> Iterator[Event]:
    """Anthropic messages."""

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [],
             "stop_reason": None, "stop_sequence": None,
             "usage": {"input_tokens": say.prompt_tokens, "output_tokens": 1}}  # fmt: skip
    yield event("message_start", message=start)
    place = 0
    if say.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in _pieces(say.text):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
        place = 1
    for index, name, arguments in say.arguments():
        block = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": {}}
        yield event("content_block_start", index=place + index, content_block=block)
        for piece in _pieces(arguments):
            yield event(
                "content_block_delta", index=place + index, delta={"type": "input_json_delta", "partial_json": piece}
            )
        yield event("content_block_stop", index=place + index)
    reason = {"length": "max_tokens"}.get(say.finish) or ("tool_use" if say.calls else "end_turn")
    usage = {"input_tokens": say.prompt_tokens, "output_tokens": say.completion_tokens}
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield event("message_stop")


def _whole(say: Say, number: int) -> dict:
    """A chat completion that was not asked for as a stream; text only."""
    choice = {"index": 0, "message": {"role": "assistant", "content": say.text}, "finish_reason": say.finish or "stop"}
    usage = {"prompt_tokens": say.prompt_tokens, "completion_tokens": say.completion_tokens,
             "total_tokens": say.prompt_tokens + say.completion_tokens}  # fmt: skip
    return {"id": f"chat-{number}", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice],
            "usage": usage}  # fmt: skip


WIRES = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


def _pieces(text: str) -> list[str]:
    return [text[i : i + 40] for i in range(0, len(text), 40)]


class WireEndpoint:
    """Use as a context manager. url: its root, to which each format's path is added. requests, headers, paths: what was
    asked. delay: seconds before each answer."""

    def __init__(self, *script: object, delay: float = 0.0, port: int = 0):
        self.script, self.delay = [_item(s) for s in script], delay
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.paths: list[str] = []
        self.release = threading.Event()
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self, body: dict, headers: dict, path: str) -> tuple[object, int]:
        with self.lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0], len(self.requests)

    def __enter__(self) -> WireEndpoint:
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def _item(item: object) -> object:
    if isinstance(item, dict):
        return Say(**{**item, "calls": [tuple(call) for call in item.get("calls", ())]})
    return Say(status=item, body="the scripted endpoint fails") if isinstance(item, int) else item


def _handler(endpoint: WireEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.partition("?")[0]
            wire = next((make for end, make in WIRES.items() if path.endswith(end)), None)
            if wire is None:
                return self._plain(404, {"error": {"message": f"no {path} here"}})
            headers = {k.lower(): v for k, v in self.headers.items()}
            item, number = endpoint.next(json.loads(raw), headers, self.path)
            time.sleep(endpoint.delay)
            if item == "hang":
                endpoint.release.wait(60)
                self.close_connection = True
                return None
            if isinstance(item, Say) and item.status != 200:
                return self._plain(item.status, {"error": {"type": "scripted", "message": item.body}})
            if wire is chat and isinstance(item, Say) and not json.loads(raw).get("stream"):
                return self._plain(200, _whole(item, number))
            say = Say("a reply that breaks off in the middle of its text, which is long enough", [])
            return self._stream(wire(say if item == "cut" else item, number), cut=item == "cut")

        def _plain(self, status: int, body: dict) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, events: Iterator[Event], *, cut: bool) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            for place, (name, data) in enumerate(events):
                if cut and place == 3:
                    return
                head = f"event: {name}\n" if name else ""
                text = data if isinstance(data, str) else json.dumps(data)
                self.wfile.write(f"{head}data: {text}\n\n".encode())
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


if __name__ == "__main__":
    script = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with WireEndpoint(*script, port=int(sys.argv[2]) if len(sys.argv) > 2 else 0) as served:
        print(f"{served.url}/v1", flush=True)
        threading.Event().wait()
