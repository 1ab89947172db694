"""Benchmark pages are kept out by host, path and words, through redirects, addresses in addresses and encodings."""

from __future__ import annotations

import base64
import codecs
import contextlib
import gzip
import html
import json
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from workbench.proposer.web import Found, Response, Rules, Web, WebRefused
from workbench.proposer.web_client import HttpClient

HELD_OUT = (
    "Restore the broken checkpoint of the language model at the given path so that every tensor has the shape that the "
    "configuration file states and write the digest of the result"
)
RULES = Rules.standard([HELD_OUT], hosts=["evil.test"])
TEXT = f"Some words before. {HELD_OUT}. Some words after."


class Pages:
    """A web of a few pages."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []

    def get(self, url, *, max_bytes):
        self.asked.append(url)
        if url not in self.pages:
            raise OSError("no such page")
        found = self.pages[url]
        return found if isinstance(found, Response) else Response(200, found)


def fetch(pages, url):
    client = Pages(pages)
    return Web(RULES, fetch_client=client).fetch(url)[0], client


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://tbench.ai/", "blocked-host"),
        ("https://www.TBench.ai./x", "blocked-host"),
        ("http://evil.test:8080/a", "blocked-host"),
        ("https://web.archive.org/web/2026/https://www.tbench.ai/tasks", "blocked-host"),
        ("https://cache.test/?u=https%3A%2F%2Ftbench.ai%2F", "blocked-host"),
        ("https://cache.test/?u=https%253A%252F%252Ftbench%252Eai", "blocked-host"),
        ("https://github.com/laude-institute/terminal-bench", "blocked-path"),
        ("https://github.com/x/Terminal%2DBench", "blocked-path"),
        ("https://github.com/x/terminal_bench-2", "blocked-path"),
        ("https://hub.test/datasets/x/SWE-bench_Verified", "blocked-path"),
        ("file:///etc/passwd", "bad-address"),
        ("ftp://x.test/", "bad-address"),
        ("https://tbench.ai@x.test/", "bad-address"),
        ("https:///x", "bad-address"),
        ("nonsense", "bad-address"),
    ],
)
def test_blocked_addresses_are_never_asked_for(url, kind):
    client = Pages({})
    with pytest.raises(WebRefused) as refused:
        Web(RULES, fetch_client=client).fetch(url)
    assert refused.value.kind == kind
    assert client.asked == []


def test_a_page_is_shown_as_text():
    page = b"<html><head><script>var x = 1</script></head><body><!-- no --><h1>Tar</h1> &amp; gzip</body></html>"
    text, _ = fetch({"https://docs.test/": page}, "https://docs.test/")
    assert "Tar" in text
    assert "& gzip" in text
    assert "var x" not in text


def test_each_redirect_is_judged():
    pages = {
        "https://a.test/": Response(302, headers={"location": "/b"}),
        "https://a.test/b": Response(301, headers={"location": "https://www.tbench.ai/tasks"}),
    }
    client = Pages(pages)
    with pytest.raises(WebRefused, match="benchmark"):
        Web(RULES, fetch_client=client).fetch("https://a.test/")
    assert client.asked == ["https://a.test/", "https://a.test/b"]
    with pytest.raises(WebRefused, match="redirects"):
        fetch({"https://a.test/": Response(302, headers={"location": "/"})}, "https://a.test/")
    with pytest.raises(WebRefused, match="benchmark"):
        fetch(
            {"https://a.test/": b'<meta http-equiv="refresh" content="0; url=https://tbench.ai/">'}, "https://a.test/"
        )


def as_json(text: str) -> bytes:
    return json.dumps({"a": [text[:60], text[60:]]}).encode()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (TEXT.encode(), {}),
        (TEXT.upper().replace(" ", "\n  ").encode(), {}),
        (TEXT.replace(" ", "\u200b ").encode(), {}),
        (TEXT.encode("utf-16"), {}),
        (TEXT.encode("utf-16-le"), {}),
        (gzip.compress(TEXT.encode()), {"content-encoding": "gzip"}),
        (gzip.compress(gzip.compress(TEXT.encode())), {}),
        (zlib.compress(TEXT.encode()), {"content-encoding": "deflate"}),
        (base64.b64encode(TEXT.encode()), {}),
        (base64.urlsafe_b64encode(base64.b64encode(TEXT.encode())), {}),
        (base64.b64encode(gzip.compress(TEXT.encode())), {}),
        (TEXT.encode().hex().encode(), {}),
        (codecs.encode(TEXT, "rot13").encode(), {}),
        (TEXT[::-1].encode(), {}),
        (quote(quote(TEXT)).encode(), {}),
        ("".join(f"&#{ord(c)};" for c in TEXT).encode(), {}),
        (html.escape(TEXT.replace(" ", "<b></b> ")).encode(), {}),
        (TEXT.replace(" ", " <i>x</i>".replace("x", "") + " ").encode(), {}),
        ("".join(f"\\u{ord(c):04x}" for c in TEXT).encode(), {}),
        (as_json(TEXT), {}),
    ],
    ids=lambda value: None if isinstance(value, bytes) else "",
)
def test_a_held_out_instruction_is_found_however_it_is_written(body, headers):
    with pytest.raises(WebRefused) as refused:
        fetch({"https://a.test/": Response(200, body, headers)}, "https://a.test/")
    assert refused.value.kind == "blocked-content"


def test_other_words_pass_and_a_bomb_is_bounded():
    assert "checkpoint" in fetch({"https://a.test/": HELD_OUT[:60].encode()}, "https://a.test/")[0]
    bomb = gzip.compress(b"a" * (16 << 20))
    assert (
        len(fetch({"https://a.test/": Response(200, bomb, {"content-encoding": "gzip"})}, "https://a.test/")[0])
        < 20_000
    )


@pytest.mark.parametrize("piece", [b"<script", b"<", b"<!--", b"&#", b"[", b"%25", b"AAAA ", b"0a"])
def test_a_page_made_to_be_slow_is_not(piece):
    fetch({"https://a.test/": piece * (200_000 // len(piece))}, "https://a.test/")  # the suite's own time limit judges


def test_a_search_leaves_out_benchmarks_and_says_so():
    class Search:
        def search(self, query):
            return [
                Found("Tar", "https://docs.test/tar", "how"),
                Found("TB", "https://tbench.ai/", "x"),
                Found("c", "https://c.test", TEXT),
            ]

    text, usd = Web(RULES, search_client=Search(), usd_search=0.01).search("tar")
    assert "https://docs.test/tar" in text
    assert "tbench" not in text
    assert "(2 results of benchmarks left out)" in text
    assert usd == 0.01


@pytest.fixture
def site():
    """A server on this machine with a page, a redirect and an endless answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/redirect"):
                self.send_response(302)
                self.send_header("Location", "https://www.tbench.ai/")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1_000 if self.path == "/endless" else 1):
                    self.wfile.write(f"<p>asked for {self.path}</p>".encode() + b" " * 10_000)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_http_client_fetches_real_pages_and_leaves_redirects_to_the_rules(site):
    web = Web(RULES, fetch_client=HttpClient(reach="all"))
    assert "asked for /a%20b?q=1" in web.fetch(f"{site}/a b?q=1#part")[0]
    with pytest.raises(WebRefused, match="benchmark"):
        web.fetch(f"{site}/redirect")
    assert len(HttpClient(reach="all").get(f"{site}/endless", max_bytes=50_000).body) == 50_000


def test_by_default_the_http_client_reaches_no_private_address(site):
    with pytest.raises(WebRefused, match="private address") as refused:
        Web(RULES, fetch_client=HttpClient()).fetch(site)
    assert refused.value.kind == "web-failed"
