"""A real OpenAI-compatible HTTP server on the loopback, whose answers follow a script."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(text: str, **changes: object) -> dict:
    """A chat completion as servers send it. changes: fields that replace or add top-level ones (None removes)."""
    body = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
    }
    body.update(changes)
    return {k: v for k, v in body.items() if v is not None}


class Endpoint:
    """Use as a context manager. script: one item a request, the last one for ever: a dict (200), a bytes body (200),
    (status, dict or bytes[, headers]), or "hang". requests: the bodies received."""

    def __init__(self, *script: object):
        self.script, self.requests, self.headers = list(script), [], []
        self.release = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                step = endpoint.next(
                    json.loads(self.rfile.read(length)), {k.lower(): v for k, v in self.headers.items()}
                )
                if step == "hang":
                    endpoint.release.wait(30)
                    return
                status, body, headers = step if isinstance(step, tuple) and len(step) == 3 else (*_pair(step), {})
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {
                    "content-type": "application/json",
                    "content-length": str(len(data)),
                    **headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self._lock = threading.Lock()

    def next(self, body: dict, headers: dict) -> object:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def __enter__(self) -> Endpoint:
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def _pair(step: object) -> tuple[int, object]:
    return step if isinstance(step, tuple) else (200, step)
