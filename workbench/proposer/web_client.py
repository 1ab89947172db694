"""One HTTP request of the host for a proposer: public addresses only, bounded in bytes and time, redirects left to the caller."""

from __future__ import annotations

import http.client
import ssl
import time
from urllib.parse import quote, urlsplit

from workbench.proposer.web import Response
from workbench.sandboxes import egress

_AGENT = "terminal-env-workbench"


class HttpClient:
    """A FetchClient (workbench.proposer.web). reach: where a name may lead (workbench.sandboxes.egress.Reach); the default
    keeps a proposer from the host's own network. seconds: of one request in all."""

    def __init__(self, *, reach: egress.Reach = "internet", seconds: float = 20.0):
        self.reach, self.seconds = reach, seconds
        self._tls = ssl.create_default_context()

    def get(self, url: str, *, max_bytes: int) -> Response:
        """One GET. OSError when there is no answer, or the address may not be reached."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        host = parts.hostname or ""
        try:
            port = parts.port or (443 if secure else 80)
        except ValueError as error:
            raise OSError(f"{url[:200]}: {error}") from None
        link = http.client.HTTPConnection(host, port)
        link.sock = egress.connect(host, port, reach=self.reach)
        try:
            link.sock.settimeout(self.seconds)
            if secure:
                link.sock = self._tls.wrap_socket(link.sock, server_hostname=host)
            path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + (
                f"?{quote(parts.query, safe='/%?:@!$&()*+,;=~-._')}" if parts.query else ""
            )
            link.request("GET", path, headers={"User-Agent": _AGENT, "Accept-Encoding": "gzip, identity"})
            answer = link.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, self._body(answer, max_bytes), headers)
        except http.client.HTTPException as error:
            raise OSError(f"{host} does not speak HTTP: {type(error).__name__}") from None
        finally:
            link.close()

    def _body(self, answer: http.client.HTTPResponse, max_bytes: int) -> bytes:
        """At most max_bytes, and no longer than `seconds` however slowly they come."""
        until, data = time.monotonic() + self.seconds, bytearray()
        while len(data) < max_bytes and time.monotonic() < until:
            block = answer.read1(min(64 << 10, max_bytes - len(data)))
            if not block:
                break
            data += block
        return bytes(data)
