"""An HTTP proxy that asks a list of hosts each time: the only way out of a sandbox that has a network.

It carries HTTP and, by CONNECT, HTTPS. Names are resolved here, never inside. Where a name leads decides too (`Reach`): by
default not to this machine or a private network, because a task must not reach the researcher's own services, whatever
is on its list. What a TLS client asks an allowed server for is not seen.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

# internet: global addresses. network: also private ones (a mirror in the house), but neither this machine nor link-local
# addresses, where clouds keep their metadata. all: any.
Reach = Literal["internet", "network", "all"]

PORT = 3128
MAX_CONNECTIONS = 128
_HEADER_LIMIT = 64 << 10
_IDLE_SECONDS = 120.0


def variables() -> dict[str, str]:
    """What tells programs inside to use the proxy."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}")
    return {**proxies, **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")}


def allowed(host: str, hosts: Sequence[str]) -> bool:
    """Whether a name is on the list: exactly, or below a `*.` entry (which does not include the name itself); `*` is any."""
    host = host.lower().rstrip(".")
    if "*" in hosts:
        return bool(host)
    for entry in (entry.lower().rstrip(".") for entry in hosts if host):
        if host == entry or (entry.startswith("*.") and host.endswith(entry[1:]) and len(host) > len(entry) - 1):
            return True
    return False


def refusal(address: str, reach: Reach) -> str:
    """Why an address may not be reached, or ""."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if reach == "internet" and not ip.is_global:
        return f"the private address {ip}"
    if reach == "network" and (ip.is_link_local or ip.is_multicast or ip.is_unspecified or _of_this_machine(ip)):
        return f"this machine's or link's own address {ip}"
    return ""


def _of_this_machine(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Only an address of one's own can be bound."""
    if ip.is_loopback:
        return True
    with socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(ip), 0))
        except OSError:
            return False
    return True


def connect(host: str, port: int, *, reach: Reach) -> socket.socket:
    """Connect to those of a name's addresses that `reach` allows. PermissionError, OSError."""
    refused = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if why := refusal(address[0], reach):
            refused = PermissionError(f"{host} resolves to {why}")
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

    server: Any  # with hosts, reach and slots: see Listener and docker_egress

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
            upstream = connect(host, port, reach=self.server.reach)
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

    def __init__(self, listening: socket.socket, hosts: Sequence[str], reach: Reach):
        super().__init__(listening.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.hosts, self.reach = tuple(hosts), reach
        self.slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox's connection that breaks is its own affair."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
