"""The recording gateway: an OpenAI-compatible server between a black-box coding agent and an engine.

Each agent gets a session of its own: an address, a token, caps and a recording of the very ids that were sampled. What
the agent sends is hostile input: bounded in size, number and time, and never trusted to say what was sampled.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from pathlib import Path

from workbench.models import ContextFull, ModelError, OutOfTime, Sampling
from workbench.models.chat_format import ChatFormat
from workbench.models.engines import Engine
from workbench.models.gateway_chat import Asked, BadRequest, completion, message_of
from workbench.models.gateway_http import Handler
from workbench.models.recording import Recording
from workbench.models.segments import Segment

CONNECTIONS = 512  # at once; more are closed unanswered


@dataclass(frozen=True)
class Caps:
    """Limits of a session. calls: answers. tokens: sampled in all. seconds: since it was opened. at_once: requests
    in flight. A request past a cap is refused with status 400, which clients do not retry."""

    calls: int = 256
    tokens: int = 262_144
    seconds: float = 3600.0
    at_once: int = 8


@dataclass
class Session:
    """One agent's door. url: the base URL to give it (OPENAI_BASE_URL), token: its key (OPENAI_API_KEY). recording: what
    was sampled. refused: requests that were turned away, by reason. failures: what the engine raised; a trial with any
    is an infrastructure failure, not a bad policy."""

    id: str
    token: str
    url: str
    recording: Recording
    sampling: Sampling
    caps: Caps
    opened: float = field(default_factory=time.monotonic)
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    closed: bool = False
    _busy: int = 0
    _calls: int = 0
    _tokens: int = 0  # sampled, and reserved by requests in flight
    _last: tuple[str, dict] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def segments(self) -> list[Segment]:
        """What the agent's model sampled, to train on. See Recording."""
        return self.recording.segments()


class Gateway:
    """Serves sessions over `engine` until `close`. Use it as a context manager.

    format: how chats become ids; template=HERMES for agents with tools over a model whose template knows none.
    host: a loopback address. unix: a path for a Unix socket instead (mode 0600), for sandboxes without a network.
    """

    def __init__(
        self,
        engine: Engine,
        format: ChatFormat,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        unix: Path | None = None,
    ):
        if host not in ("127.0.0.1", "localhost"):
            raise ValueError(f"the gateway serves this machine only, not {host}: use 127.0.0.1 or a Unix socket")
        self.engine, self.format = engine, format
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._server = _UnixServer(str(unix), Handler) if unix else _Server((host, port), Handler)
        self._server.gateway = self
        if unix:
            Path(unix).chmod(0o600)
        self.url = "http://localhost" if unix else f"http://{host}:{self._server.server_address[1]}"
        self._unix = unix
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="workbench-gateway", daemon=True).start()

    def open_session(self, id: str = "", *, sampling: Sampling = Sampling(), caps: Caps = Caps()) -> Session:
        """A new session. sampling: temperature, top_p, top_k and seed are used as they are, whatever the agent asks;
        max_tokens bounds one answer. A seed makes call n use seed + n. Raises ValueError for an id in use."""
        id = id or secrets.token_hex(8)
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", id):
            raise ValueError(f"session id {id!r}: use up to 128 letters, digits, dots, dashes and underscores")
        url = f"{self.url}/sessions/{id}/v1"
        session = Session(id, secrets.token_urlsafe(24), url, Recording(self.format), sampling, caps)
        with self._lock:
            if id in self._sessions:
                raise ValueError(f"session {id} is open: close it first, or choose another id")
            self._sessions[id] = session
        return session

    def close_session(self, session: Session) -> Session:
        """Turn its agent away from now on. The recording stays with the session; an answer that is being sampled is
        not added to it any more."""
        with session._lock:
            session.closed = True
        with self._lock:
            self._sessions.pop(session.id, None)
        return session

    def close(self) -> None:
        """Stop serving. The engine is left alone."""
        self._server.shutdown()
        self._server.server_close()
        if self._unix:
            Path(self._unix).unlink(missing_ok=True)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- asked by the handler -------------------------------------------------------------------------------------

    def find(self, id: str, token: str) -> Session | None:
        """The session, when the token is its own."""
        with self._lock:
            session = self._sessions.get(id)
        known = session.token if session else "-" * 32
        return session if hmac.compare_digest(known.encode(), token.encode()) and session else None

    def answer(self, session: Session, asked: Asked, retry: bool) -> dict:
        """The body of a completion. retry: the client says that it never saw the last answer; the same request then
        gets that answer again. Raises BadRequest (with the reason), or ModelError."""
        number, room = _enter(session, asked)
        try:
            return self._sample(session, asked, number, room, retry)
        except BadRequest as error:
            _refuse(session, error.code)
            raise
        except ModelError as error:
            session.failures.append(str(error)[:500])
            raise
        except Exception as error:  # a fault of ours: the trial must not be taken for a bad policy
            session.failures.append(f"{type(error).__name__}: {error}"[:500])
            raise ModelError(f"the gateway failed: {type(error).__name__}") from error
        finally:
            with session._lock:
                session._busy -= 1
                session._tokens -= room

    def _sample(self, session: Session, asked: Asked, number: int, room: int, retry: bool) -> dict:
        prepared = _prepared(session.recording, asked)
        if retry and session._last and session._last[0] == prepared.request:
            return session._last[1]
        seed = session.sampling.seed
        sampling = replace(
            session.sampling,
            max_tokens=room,
            stop=(*session.sampling.stop, *asked.stop),
            seed=None if seed is None else seed + number,
            seconds=session.caps.seconds - (time.monotonic() - session.opened),
        )
        try:
            got = self.engine.generate(prepared.ids, sampling)
        except ContextFull as error:
            raise BadRequest(f"maximum context length: {error}", "context_length_exceeded") from error
        except OutOfTime as error:
            raise BadRequest(f"the session's time is over: {error}", "session_limit") from error
        message = message_of(self.format.text(got.ids, sampling.stop), number, bool(asked.tools))
        with session._lock:
            if session.closed:
                raise BadRequest("the session is closed", "session_closed")
            session._tokens += len(got.ids)
            session.recording.record(prepared, got, message)
            body = completion(message, got.finish, len(prepared.ids), len(got.ids), self.engine.name, number)
            session._last = (prepared.request, body)
        return body


def _enter(session: Session, asked: Asked) -> tuple[int, int]:
    """(number of this call, room for its answer in tokens, reserved). Raises BadRequest at a cap."""
    caps = session.caps
    with session._lock:
        left = caps.tokens - session._tokens
        over = {
            "calls": session._calls >= caps.calls,
            "tokens": left < 1,
            "seconds": time.monotonic() - session.opened >= caps.seconds,
            "at_once": session._busy >= caps.at_once,
        }
        reached = [name for name, is_over in over.items() if is_over]
        if not reached:
            room = min(left, session.sampling.max_tokens, asked.max_tokens or left)
            session._busy += 1
            session._calls += 1
            session._tokens += room
            return session._calls - 1, room
    _refuse(session, "session_limit")
    raise BadRequest(f"this session's cap is reached: {', '.join(reached)}", "session_limit")


def _refuse(session: Session, reason: str) -> None:
    with session._lock:
        session.refused[reason] = session.refused.get(reason, 0) + 1


def _prepared(recording: Recording, asked: Asked):
    try:
        return recording.prepare(asked.messages, asked.tools)
    except (ModelError, RecursionError, UnicodeError, TypeError) as error:  # lone surrogates are no text, say
        raise BadRequest(f"these messages cannot be written as a prompt: {error}") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    gateway: Gateway

    def __init__(self, *args: object):
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*args)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # without looking up its own name
        self.server_name, self.server_port = "gateway", 0

    def process_request(self, request, address) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, address)

    def process_request_thread(self, request, address) -> None:
        try:
            super().process_request_thread(request, address)
        finally:
            self._slots.release()

    def handle_error(self, request, address) -> None:
        """A client that went away is nothing to print a traceback for."""


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def get_request(self):
        request, _ = super().get_request()
        return request, ("unix", 0)
