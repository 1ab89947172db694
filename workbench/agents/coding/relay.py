"""What stands between an agent in a sandbox and a model: a small server on the sandbox's own loopback, run by the host.

Its listening socket was made in the sandbox's network, so that nothing but this sandbox reaches it, and the sandbox
reaches nothing else. It takes one path of one wire format, caps sizes, calls and tokens, passes on known fields only,
adds the key, waits for the whole reply (a broken one is asked for again and never shown), counts, and remembers. All
that the record of an episode says of tokens, dollars and stop reasons comes from here: logs inside a sandbox are the
policy's to rewrite.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import socketserver
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

from workbench.agents import Budget
from workbench.agents.coding.endpoint import Answer, Asker, AskError, Endpoint
from workbench.agents.coding.wire import Forbidden, Said, Wire
from workbench.models import BudgetExceeded
from workbench.traces import EndedBy
from workbench.traces.trace import Result

MAX_BODY = 8 << 20  # bytes of one request
MAX_CONNECTIONS = 8
_PARSING = threading.BoundedSemaphore(4)  # a hostile body takes twenty times its size in memory: few at once
_PASSED_HEADERS = re.compile(r"[A-Za-z0-9_., -]{1,2000}")  # what anthropic-beta may hold
_KEPT_REFUSALS = 50
_KEPT_SYSTEM = 256 << 10  # characters
_KEPT_RESULT = 64 << 10  # characters of one tool result


@dataclass
class Call:
    """One answered call: what was said, when, for how much, and what the agent's tools then showed the model."""

    said: Said
    usd: float
    seconds: float
    ended: float
    results: tuple[Result, ...] = ()
    next_asked: float | None = None  # when the agent came back
    detached: bool = False  # asked without the results of the calls before: not by the agent's own loop


@dataclass
class Record:
    """What one episode's relay saw. stopped: the limit that ended it. failure: why the endpoint could not be asked
    (infrastructure). over: the spending cap's own words. problem: ("context" or "rejected", message) when the last
    request was refused by the endpoint. refused: requests for anything but an answer, the first few. in_flight: a call was
    given up at the end (what it cost is not known)."""

    calls: list[Call] = field(default_factory=list)
    system: str = ""
    stopped: EndedBy | None = None
    failure: str = ""
    over: str = ""
    problem: tuple[str, str] | None = None
    refused: list[str] = field(default_factory=list)
    in_flight: bool = False


class Relay:
    """Serves `listening` until `close`. One call at a time, so that the record is one line of turns."""

    def __init__(self, listening: socket.socket, wire: Wire, endpoint: Endpoint, budget: Budget, deadline: float):
        self.wire, self.endpoint, self.budget, self.deadline = wire, endpoint, budget, deadline
        self.asker = Asker(endpoint, wire, deadline)
        self.record, self.lock, self.closed = Record(), threading.Lock(), False
        self.tokens, self.detached = 0, False
        self.server = _Server(listening, self)

    def close(self) -> Record:
        """Stop serving. A call in flight is given up; what it may have cost stays counted."""
        self.closed = True
        self.server.stop()
        self.asker.close()
        return replace(self.record, calls=list(self.record.calls))  # a call that ends later changes nothing

    # ------------------------------------------------------------ one request

    def answer(self, path: str, raw: bytes, headers: Mapping[str, str]) -> tuple[int, str, bytes]:
        """(status, content type, body) for a request of the sandbox's."""
        if path.partition("?")[0] != f"/v1{self.wire.PATH}":
            return self.refuse(404, f"only POST /v1{self.wire.PATH} is served here")
        with self.lock:
            made = self._made(raw)
            if isinstance(made, tuple):
                return made
            limit = self._reply_limit()
            return self._ask(made, _passed(headers), limit)

    def _made(self, raw: bytes) -> bytes | tuple[int, str, bytes]:
        """The request as it leaves the host, or the answer that says why it does not."""
        with _PARSING:
            try:
                body = json.loads(raw)
                if not isinstance(body, dict):
                    raise ValueError("a request is a JSON object")
                self._heard(body)
                if why := self._limit():
                    return self._error(400, why)
                made = self.wire.outgoing(body, self.endpoint.model, self._reply_limit())
                return json.dumps(made, allow_nan=False).encode()  # NaN is no JSON: the endpoint would refuse it
            except Forbidden as error:
                return self.refuse(400, str(error))
            except (ValueError, RecursionError) as error:
                return self.refuse(400, f"not a request: {error}"[:300])

    def _reply_limit(self) -> int:
        return min(self.endpoint.reply_tokens, self.budget.tokens - self.tokens)

    def refuse(self, status: int, message: str) -> tuple[int, str, bytes]:
        if len(self.record.refused) < _KEPT_REFUSALS:
            self.record.refused.append(message)
        return self._error(status, message)

    def _error(self, status: int, message: str) -> tuple[int, str, bytes]:
        return status, "application/json", json.dumps(self.wire.error(message)).encode()

    def _heard(self, body: dict[str, Any]) -> None:
        """What the agent's tools brought since the last reply."""
        if not self.record.calls:
            self.record.system = self.record.system or self.wire.system(body)[:_KEPT_SYSTEM]
            return
        last = self.record.calls[-1]
        if last.next_asked is None:
            last.next_asked = time.monotonic()
            wanted = {call.id for call in last.said.calls}
            found = {r.call: r for r in self.wire.results(body) if r.call in wanted}  # the latest, where ids repeat
            self.detached = bool(wanted) and not found
            last.results = tuple(Result(r.text[:_KEPT_RESULT], r.call, r.error) for r in found.values())

    def _limit(self) -> str:
        """Why no more calls are made, or "". Said with a status that agents do not try again."""
        seen = self.record
        if self.closed or time.monotonic() >= self.deadline:
            return "the episode is over: its time is up"
        if seen.failure or seen.over:
            return seen.failure or "the spending cap is reached"
        if len(seen.calls) >= self.budget.turns:
            seen.stopped = "turns"
            return f"the episode is over: all {self.budget.turns} turns are used"
        if self.tokens >= self.budget.tokens:
            seen.stopped = "tokens"
            return f"the episode is over: all {self.budget.tokens} tokens are used"
        return ""

    def _ask(self, made: bytes, headers: dict[str, str], limit: int) -> tuple[int, str, bytes]:
        try:
            self.record.in_flight = True
            answer = self._paid(made, headers, limit)
            self.record.in_flight = False
        except BudgetExceeded as error:
            self.record.over, self.record.in_flight = str(error), False
            return self._error(400, "the spending cap is reached")
        except AskError as error:
            self.record.in_flight = error.kind == "time"
            return self._failed(error)
        self.record.problem = None
        self.tokens += answer.said.completion_tokens
        ended = time.monotonic()
        self.record.calls.append(Call(answer.said, answer.usd, answer.seconds, ended, detached=self.detached))
        self.detached = False
        return 200, "text/event-stream", answer.raw

    def _paid(self, made: bytes, headers: dict[str, str], limit: int) -> Answer:
        """Ask under the spending cap, when there is one."""
        cap = self.endpoint.cap
        if cap is None:
            return self.asker.ask(made, headers)
        held = cap.take(self.asker.worst_usd(made, limit), self.endpoint.model)
        cost = held  # whatever interrupts the call, it may have been billed
        try:
            answer = self.asker.ask(made, headers)
            cost = answer.usd
            return answer
        except AskError as error:
            cost = held if error.billed else 0.0
            raise
        finally:
            cap.settle(held, cost)

    def _failed(self, error: AskError) -> tuple[int, str, bytes]:
        """Failures are told with a status that agents do not try again: the host has tried."""
        if self.closed:  # it was we who hung up
            return self._error(400, "the episode is over")
        if error.kind == "rejected" and not self.record.calls:  # no turn of the policy's can be to blame
            self.record.failure = f"the endpoint refuses the first request: {error}"
        elif error.kind == "infra":
            self.record.failure = str(error)
        elif error.kind in ("context", "rejected"):
            self.record.problem = (error.kind, str(error))
        return self._error(400, str(error))


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    """Of a sandbox's headers only the one that names features of the format."""
    beta = headers.get("anthropic-beta") or ""
    return {"anthropic-beta": beta} if _PASSED_HEADERS.fullmatch(beta) else {}


class _Server(socketserver.ThreadingTCPServer):
    """HTTP on a socket that already listens in the sandbox's network."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, relay: Relay):
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.relay = listening, relay
        self.slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox's connection that breaks is its own affair."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60.0  # for a client that says nothing
    wbufsize = -1  # an answer leaves in one piece: in two, the second would wait 40 ms for the first's receipt
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        relay, length = self.server.relay, self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 10 or int(length) > MAX_BODY:
            self.close_connection = True
            return self._send(*relay.refuse(413, f"a request has a content-length of at most {MAX_BODY >> 20} MiB"))
        raw = self.rfile.read(int(length))
        return self._send(*relay.answer(self.path, raw, {k.lower(): v for k, v in self.headers.items()}))

    def do_GET(self) -> None:
        self.close_connection = True
        self._send(*self.server.relay.refuse(404, f"{self.command} is not served here"))

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def _send(self, status: int, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """The sandbox does not write to the host's terminal."""
