"""Web search and fetch for a proposer, with the pages of benchmarks kept out (AutoEnvScaling §3.1: "egress rules block").

Offered only when a run is configured with client objects. A page is refused by its host, by its path, and by its words:
13-grams of the held-out instructions, looked for in the text as it stands and as simple encodings hide it. Redirects are
followed here, one by one, and each address is judged like the first. This keeps honest agents honest and copies from
getting in by accident; a page that paraphrases a task passes (as in docs/contamination.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urljoin, urlsplit

from workbench.proposer.web_text import readings, visible_text
from workbench.sandboxes.egress import allowed
from workbench.tasks.ngrams import NgramIndex, tokens

N = 13
MAX_BYTES = 4 << 20
MAX_HOPS = 5
SHOWN = 16_000
BLOCKED = Path(__file__).with_name("blocked_pages.json")


class WebRefused(ValueError):
    """A page that is not shown. kind: blocked-host, blocked-path, blocked-content, bad-address, web-failed."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Response:
    """One answer of a server, redirects not followed. body: at most MAX_BYTES, as sent (content encoding undone or not)."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


class FetchClient(Protocol):
    def get(self, url: str, *, max_bytes: int) -> Response:
        """One request without following redirects. OSError when there is no answer. Must not reach private addresses
        (workbench.proposer.web_client does not)."""


@dataclass(frozen=True)
class Found:
    title: str
    url: str
    text: str = ""


class SearchClient(Protocol):
    def search(self, query: str) -> Sequence[Found]:
        """The best results. OSError when there is no answer."""


@dataclass(frozen=True)
class Rules:
    """hosts: names blocked with all below them. paths: regular expressions over `host/path?query`, decoded, lower case.
    grams: windows of held-out instructions, or None."""

    hosts: tuple[str, ...] = ()
    paths: tuple[re.Pattern[str], ...] = ()
    grams: NgramIndex | None = None

    @classmethod
    def standard(cls, held_out: Iterable[str] = (), *, hosts: Iterable[str] = ()) -> Rules:
        """The shipped list, `hosts` added to it, and the words of `held_out` instructions."""
        data = json.loads(BLOCKED.read_text(encoding="utf-8"))
        grams = NgramIndex(N)
        for number, text in enumerate(held_out):
            grams.add(number, tokens(text))
        paths = tuple(re.compile(pattern) for pattern in data["paths"])
        return cls((*data["hosts"], *hosts), paths, grams if len(grams) else None)

    def check_url(self, url: str) -> None:
        """WebRefused for a blocked address. An address inside of an address (caches, translators, archives) counts too."""
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            raise WebRefused("bad-address", f"{url[:200]!r}: give a plain http:// or https:// address")
        try:
            host = host.encode("idna").decode() if not host.isascii() else host
        except UnicodeError:
            raise WebRefused("bad-address", f"{host!r} is no host name") from None
        for name in self.hosts:
            if allowed(host, (name, f"*.{name}")):
                raise WebRefused("blocked-host", f"{host} belongs to a benchmark; build from other sources")
        whole = decoded(f"{host}{parts.path}?{parts.query}#{parts.fragment}")
        inside = decoded(f"{parts.path}?{parts.query}#{parts.fragment}")
        for name in self.hosts:
            if re.search(rf"(?<![a-z0-9-]){re.escape(name)}(?![a-z0-9-]|\.[a-z])", inside):
                raise WebRefused(
                    "blocked-host", f"the address leads to {name}, a benchmark's; build from other sources"
                )
        for pattern in self.paths:
            if pattern.search(whole):
                raise WebRefused("blocked-path", "this page is of a benchmark; build from other sources")

    def check_content(self, data: bytes, headers: Mapping[str, str]) -> None:
        """WebRefused when a page holds a held-out instruction's 13-gram in any reading."""
        if self.grams is not None and any(self.grams.touches(tokens(text)) for text in readings(data, headers)):
            raise WebRefused("blocked-content", "the page repeats a benchmark's task; build from other sources")


def decoded(text: str) -> str:
    """An address with its percent-encoding undone, however often it was applied, in lower case."""
    for _ in range(5):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text.lower().replace("\\", "/")


@dataclass
class Web:
    """What the two tools use. usd_search, usd_fetch: what one call costs."""

    rules: Rules
    search_client: SearchClient | None = None
    fetch_client: FetchClient | None = None
    usd_search: float = 0.0
    usd_fetch: float = 0.0

    def search(self, query: str) -> tuple[str, float]:
        """(results as text, dollars). Blocked results are left out, and counted. WebRefused."""
        assert self.search_client is not None
        if not query.strip():
            raise WebRefused("bad-address", "web_search needs words to search for")
        try:
            found = list(self.search_client.search(query))[:20]
        except OSError as error:
            raise WebRefused("web-failed", f"the search did not answer: {error}") from None
        kept, out = [], 0
        for item in found:
            try:
                self.rules.check_url(item.url)
                self.rules.check_content(f"{item.title}\n{item.text}".encode(), {})
            except WebRefused:
                out += 1
                continue
            kept.append(f"{item.title}\n{item.url}\n{item.text[:600]}")
        left = f"\n({out} results of benchmarks left out)" if out else ""
        return ("\n\n".join(kept) or "no results") + left, self.usd_search

    def fetch(self, url: str) -> tuple[str, float]:
        """(the page's text, dollars). WebRefused for what is blocked on the way or at its end."""
        assert self.fetch_client is not None
        usd = 0.0
        for _ in range(MAX_HOPS + 1):
            self.rules.check_url(url)
            try:
                response = self.fetch_client.get(url, max_bytes=MAX_BYTES)
            except OSError as error:
                raise WebRefused("web-failed", f"{url[:200]}: {error}") from None
            usd += self.usd_fetch
            location = response.headers.get("location", "")
            if response.status in (301, 302, 303, 307, 308) and location:
                url = urljoin(url, location)
                continue
            self.rules.check_content(response.body[:MAX_BYTES], response.headers)
            text = visible_text(response.body[:MAX_BYTES], response.headers)
            if refresh := re.search(r'http-equiv=["\']?refresh[^>]*url=([^"\'>\s]+)', _head(response.body), re.I):
                self.rules.check_url(urljoin(url, refresh[1]))
            return f"[{response.status} {url[:300]}]\n{text[:SHOWN]}", usd
        raise WebRefused("web-failed", f"more than {MAX_HOPS} redirects")


def _head(body: bytes) -> str:
    return body[:20_000].decode("utf-8", "replace")
