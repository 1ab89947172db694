"""HTTP for the gateway: one request at a time from a client that is not trusted."""

from __future__ import annotations

import contextlib
import json
import re
from http.server import BaseHTTPRequestHandler

from workbench.models import ModelError
from workbench.models.gateway_chat import Asked, BadRequest, read_request, stream_of

BODY = 4 << 20  # bytes of a request: a context of 262,144 tokens is about 1 MB
PATH = re.compile(r"/sessions/([A-Za-z0-9._-]{1,128})/v1/(chat/completions|models)/?(?:\?.*)?")


class _Stop(Exception):
    """Answer with this status and go on with the next request."""

    def __init__(self, status: int, said: str, code: str = "invalid_request"):
        super().__init__(said)
        self.status, self.code = status, code


class Handler(BaseHTTPRequestHandler):
    """Routes /sessions/ID/v1/chat/completions and /sessions/ID/v1/models."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "workbench-gateway", ""
    timeout = 60  # seconds for a client to send its request, or to say something on an idle connection

    def do_POST(self) -> None:
        self._guarded(self._post)

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_HEAD(self) -> None:
        self._send(200, b"", "text/plain")

    def _post(self) -> None:
        body = self._body()
        session, what = self._session()
        if what != "chat/completions":
            raise _Stop(405, "use GET")
        retries = self.headers.get("x-stainless-retry-count") or "0"
        try:
            asked = _read(body)
            answer = self.server.gateway.answer(session, asked, retry=retries != "0")
        except BadRequest as error:
            raise _Stop(400, str(error), error.code) from error
        if asked.stream:
            self._send(200, stream_of(answer, asked.usage), "text/event-stream")
        else:
            self._json(200, answer)

    def _get(self) -> None:
        _, what = self._session()
        if what != "models":
            raise _Stop(405, "use POST")
        name = self.server.gateway.engine.name
        self._json(200, {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "workbench"}]})

    def _guarded(self, action) -> None:
        try:
            action()
        except _Stop as stop:
            kind = "invalid_request_error" if stop.status < 500 else "server_error"
            self._json(stop.status, {"error": {"message": str(stop), "type": kind, "code": stop.code}})
        except ModelError as error:
            self._json(503, {"error": {"message": str(error), "type": "server_error", "code": "engine"}})
        except OSError:  # the client went away, or was too slow
            self.close_connection = True

    def _session(self):
        match = PATH.fullmatch(self.path)
        if match is None:
            raise _Stop(404, "only /sessions/ID/v1/chat/completions and /sessions/ID/v1/models are here", "not_found")
        scheme, _, token = (self.headers.get("authorization") or "").partition(" ")
        session = self.server.gateway.find(match[1], token.strip() if scheme.lower() == "bearer" else "")
        if session is None:
            raise _Stop(401, "no such session, or not its token", "invalid_api_key")
        return session, match[2]

    def _body(self) -> bytes:
        """All of it, before anything is answered, so that the connection stays usable."""
        length = self.headers.get("content-length") or ""
        if not (length.isascii() and length.isdigit()) or "transfer-encoding" in self.headers:
            self.close_connection = True
            raise _Stop(411, "send the body with a Content-Length")
        if len(length) > 12 or int(length) > BODY:
            self.close_connection = True
            raise _Stop(413, f"the body has more than {BODY} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the client left")
        return body

    def _json(self, status: int, body: object) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent: what was asked stands in the recording."""

    def address_string(self) -> str:
        return "client"


def _read(body: bytes) -> Asked:
    try:
        return read_request(json.loads(body))
    except BadRequest:
        raise
    except (ValueError, RecursionError, AttributeError, TypeError, ModelError) as error:
        raise BadRequest(f"the body is no chat request: {error}") from error
