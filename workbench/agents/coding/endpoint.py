"""The host's side of a model endpoint: asks, asks again, reads the whole reply, and says what a failure means."""

from __future__ import annotations

import functools
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from workbench.agents.coding.wire import Said, Wire, events, record
from workbench.models.budget import Budget as Cap
from workbench.models.prices import MESSAGE_TOKENS, Price

MAX_REPLY = 32 << 20  # bytes of one streamed reply
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_FULL = re.compile(
    r"context.?(length|window)|maximum context|prompt is too long|too many tokens|exceeds? the (model|context)", re.I
)
_LINK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")

# infra: the endpoint's or the configuration's. context: the prompt does not fit. rejected: what was asked is faulty.
# time: the caller's time was up.
Kind = Literal["infra", "context", "rejected", "time"]


@dataclass(frozen=True)
class Endpoint:
    """Where a model answers. It stays on the host; a sandbox sees neither its address nor its key.

    url: up to and with the version ("https://HOST/v1"), or a function that gives an address and its key, asked once an
    episode (a gateway hands out a session each). model: the name that is asked for, whatever an agent says. key_env: the variable of
    this process that holds the key; "" for none. price: US dollars per million tokens; unknown prices are NaN, and so
    are the costs. cap: a spending cap that may be shared. reply_tokens: most tokens of one reply. call_seconds: most
    seconds of one reply. retries: further attempts when the endpoint is busy, fails or breaks off. headers: added to
    each request (never shown)."""

    url: str | Callable[[], tuple[str, str]]
    model: str
    key_env: str = ""
    price: Price = Price()
    cap: Cap | None = None
    reply_tokens: int = 32_000
    call_seconds: float = 600.0
    retries: int = 2
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.url, str) and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"endpoint: url must start with http:// or https://, found {self.url!r}")
        if not self.model:
            raise ValueError("endpoint: name the model that is asked for")

    def door(self) -> tuple[str, str]:
        """Address and key for one episode; the key is read when it is needed. ValueError when its variable is not set."""
        if not isinstance(self.url, str):
            return self.url()
        if not self.key_env:
            return self.url, ""
        if not (key := os.environ.get(self.key_env, "").strip()):
            raise ValueError(
                f"endpoint: the environment variable {self.key_env} is not set: it should hold the API key"
            )
        return self.url, key


class AskError(Exception):
    """A call that brought no reply. kind: see Kind; status: to tell the agent; billed: it may have cost money."""

    def __init__(self, kind: Kind, message: str, status: int = 400, *, billed: bool = False):
        super().__init__(message)
        self.kind, self.status, self.billed = kind, status, billed


@dataclass(frozen=True)
class Answer:
    """A whole reply. raw: the stream as it came. usd: NaN when the price or the usage is unknown."""

    raw: bytes
    said: Said
    usd: float
    seconds: float


class Asker:
    """One episode's connection to an endpoint. deadline: of time.monotonic()."""

    def __init__(self, endpoint: Endpoint, wire: Wire, deadline: float):
        import httpx

        self.endpoint, self.wire, self.deadline = endpoint, wire, deadline
        base, key = endpoint.door()
        self.url = base.rstrip("/") + wire.PATH
        self.headers = {"content-type": "application/json", "accept": "text/event-stream",
                        **wire.headers(key), **endpoint.headers}  # fmt: skip
        here = urlsplit(base).hostname in ("127.0.0.1", "localhost", "::1")  # no proxy leads back to this machine
        self.client = httpx.Client(follow_redirects=False, verify=_trust(), trust_env=not here)

    def close(self) -> None:
        self.client.close()

    def worst_usd(self, body: bytes, limit: int) -> float:
        """The most that one call can cost: a token is at least a byte. Every attempt may be billed."""
        return self.endpoint.price.usd(len(body) + MESSAGE_TOKENS, limit) * (1 + self.endpoint.retries)

    def ask(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Ask until there is a whole reply. Raises AskError."""
        billed = False
        for attempt in range(1 + self.endpoint.retries):
            started = time.monotonic()
            try:
                raw = self._once(body, headers)
                said = self.wire.said(events(raw))
                self._check(said)
                return Answer(raw, said, self._usd(said), time.monotonic() - started)
            except AskError as error:
                billed = billed or error.billed
                again = error.status in _BUSY and error.kind == "infra" and attempt < self.endpoint.retries
                wait = min(2.0**attempt, 30.0)
                if not again or time.monotonic() + wait > self.deadline:
                    raise AskError(error.kind, str(error), error.status, billed=billed) from error
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _once(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        import httpx

        end = min(self.deadline, time.monotonic() + self.endpoint.call_seconds)
        left = max(end - time.monotonic(), 0.1)
        limits = httpx.Timeout(left, connect=min(left, 20.0))
        data = bytearray()
        try:
            with self.client.stream(
                "POST", self.url, content=body, headers={**self.headers, **headers}, timeout=limits
            ) as reply:
                for block in reply.iter_bytes():
                    data += block
                    if len(data) > MAX_REPLY:
                        raise AskError(
                            "infra", f"the endpoint sent more than {MAX_REPLY >> 20} MiB for one reply", billed=True
                        )
                    if time.monotonic() > end:
                        raise self._late()
        except httpx.TimeoutException as error:
            raise self._late() from error
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # RuntimeError: closed meanwhile
            text = f"no connection to the endpoint: {type(error).__name__}: {error}"
            raise AskError("infra", text, 502, billed=bool(data)) from error
        if reply.status_code != 200:
            raise _refused(reply.status_code, bytes(data))
        return bytes(data)

    def _late(self) -> AskError:
        if time.monotonic() >= self.deadline - 0.2:
            return AskError("time", "the episode's time is up", billed=True)
        return AskError("infra", f"no whole reply within {self.endpoint.call_seconds:g} s", 504, billed=True)

    def _check(self, said: Said) -> None:
        if said.error:
            kind: Kind = "infra" if said.transient else "context" if _FULL.search(said.error) else "rejected"
            raise AskError(kind, plain(said.error), 503 if said.transient else 400, billed=True)
        if not said.complete:
            raise AskError("infra", "the endpoint's stream broke off before its end", 502, billed=True)

    def _usd(self, said: Said) -> float:
        if not said.counted:
            return float("nan")
        return self.endpoint.price.usd(said.prompt_tokens, said.completion_tokens, said.cached_tokens)


@functools.cache
def _trust() -> Any:
    """The certificates, read once: it takes longer than a call on the loopback."""
    import httpx

    return httpx.create_ssl_context()


def _refused(status: int, data: bytes) -> AskError:
    message = _message(data) or f"HTTP {status}"
    if status == 413 or (status in (400, 422) and _FULL.search(message)):
        return AskError("context", message)
    if status in (400, 422):
        return AskError("rejected", message)
    return AskError("infra", f"the endpoint answers {status}: {message}", status)


def _message(data: bytes) -> str:
    text = data[:4000].decode("utf-8", "replace").strip()
    try:
        body = record(json.loads(data))
    except (ValueError, RecursionError):
        return plain(text)
    inner: Any = body.get("error", body)
    return plain(str(record(inner).get("message") or inner))


def plain(text: str) -> str:
    """A message of an endpoint's, short, one line, and without addresses: it is told to the sandbox too."""
    return _LINK.sub("[address]", " ".join(text.split()))[:600]
