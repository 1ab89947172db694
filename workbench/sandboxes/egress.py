"""An HTTP proxy that asks an allowlist each time: the only way out of a sandbox whose network is one.

It carries HTTP and, by CONNECT, HTTPS. Names are resolved here, never inside. A name on the list that resolves to this
machine or to a private network is refused (a task must not reach the researcher's own services), unless the caller
allows private addresses. What a TLS client asks an allowed server for is not seen.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

PORT = 3128
MAX_CONNECTIONS = 128
_HEADER_LIMIT = 64 << 10
_IDLE_SECONDS = 120.0


def variables() -> dict[str, str]:
    """What tells programs inside to use the proxy."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}")
    return {**proxies, **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")}


def allowed(host: str, hosts: Sequence[str]) -> bool:
    """Whether a name is on the list: exactly, or below a `*.` entry (which does not include the name itself)."""
    host = host.lower().rstrip(".")
    for entry in (entry.lower().rstrip(".") for entry in hosts if host):
        if host == entry or (entry.startswith("*.") and host.endswith(entry[1:]) and len(host) > len(entry) - 1):
            return True
    return False


def connect(host: str, port: int, *, private: bool) -> socket.socket:
    """Connect to a name's public addresses only (or any, with `private`). PermissionError, OSError."""
    refused = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not private and not ipaddress.ip_address(address[0].partition("%")[0]).is_global:
            refused = PermissionError(f"{host} resolves to the private address {address[0]}")
            continue
        upstream = socket.socket(family, kind, protocol)
        try:
            upstream.settimeout(20)
            upstream.connect(address)
        except OSError:
            upstream.close()
            continue
        upstream.settimeout(_IDLE_SECONDS)
        return upstream
    raise refused or OSError(f"no address of {host} answers at port {port}")


class Handler(socketserver.BaseRequestHandler):
    """One connection of a sandbox."""

    server: Any  # with hosts, private and slots: see Listener and docker_egress

    def handle(self) -> None:
        if not self.server.slots.acquire(blocking=False):
            return self._refuse(503, "too many connections at once")
        try:
            self.request.settimeout(_IDLE_SECONDS)
            self._serve()
        except (OSError, ValueError):
            pass  # the client went away, or spoke no HTTP
        finally:
            self.server.slots.release()

    def _serve(self) -> None:
        head, rest = self._head()
        method, target, version = head[0].split(" ", 2)
        if method.upper() == "CONNECT":
            parts = urlsplit("//" + target)
            host, port = parts.hostname or "", parts.port or 443
        else:
            parts = urlsplit(target)
            host, port = parts.hostname or "", parts.port or 80
            if parts.scheme != "http":
                return self._refuse(400, "this is a proxy: ask with an absolute http:// address, or CONNECT")
        if not allowed(host, self.server.hosts):
            return self._refuse(403, f"{host} is not on this task's list of allowed hosts")
        try:
            upstream = connect(host, port, private=self.server.private)
        except PermissionError as error:
            return self._refuse(403, str(error))
        except OSError as error:
            return self._refuse(502, f"{host}: {error}")
        with upstream:
            if method.upper() == "CONNECT":
                self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream.sendall(_origin_form(method, parts, version, head[1:]))
            upstream.sendall(rest)
            _splice(self.request, upstream)

    def _head(self) -> tuple[list[str], bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            block = self.request.recv(8192)
            if not block or len(data) > _HEADER_LIMIT:
                raise ValueError("no HTTP request")
            data += block
        head, _, rest = data.partition(b"\r\n\r\n")
        return head.decode("latin-1").split("\r\n"), rest

    def _refuse(self, status: int, message: str) -> None:
        body = f"workbench egress: {message}\n".encode()
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        with contextlib.suppress(OSError):
            self.request.sendall(head.encode() + body)


def _origin_form(method: str, parts: Any, version: str, headers: list[str]) -> bytes:
    """The request as a server expects it; one request a connection, so that the next is checked anew."""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    dropped = ("proxy-", "connection:", "keep-alive:", "host:")
    kept = [h for h in headers if not h.lower().startswith(dropped)]
    host = parts.netloc.rpartition("@")[2]
    return "\r\n".join([f"{method} {path} {version}", f"Host: {host}", *kept, "Connection: close", "", ""]).encode(
        "latin-1"
    )


def _splice(one: socket.socket, other: socket.socket) -> None:
    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=pump, args=(other, one), daemon=True)
    back.start()
    pump(one, other)
    back.join(_IDLE_SECONDS)


class Listener(socketserver.ThreadingTCPServer):
    """The proxy on a listening socket that already stands in a sandbox's own network namespace."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, hosts: Sequence[str], private: bool):
        super().__init__(listening.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.hosts, self.private = tuple(hosts), private
        self.slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox's connection that breaks is its own affair."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
