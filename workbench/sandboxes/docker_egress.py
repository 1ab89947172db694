"""The only way out of a sandbox whose network is an allowlist: an HTTP proxy that asks the list each time.

The sandbox has no network device but loopback. A small container shares its network namespace and passes connections
to 127.0.0.1:3128 on to a Unix socket of this process, where the host's name is checked and the connection made. So
what is not on the list has no route at all, and DNS is asked by us only. It carries HTTP and, by CONNECT, HTTPS.

A name on the list that resolves to this machine or to a private network is refused (a task must not reach the
researcher's own services), unless the caller allows private addresses. What a TLS client asks an allowed server for
is not seen.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import socket
import socketserver
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from workbench.sandboxes import SandboxError
from workbench.sandboxes.docker_owner import LABEL, owner
from workbench.sandboxes.docker_streams import Stream

PORT = 3128
_HEADER_LIMIT = 64 << 10
_IDLE_SECONDS = 120.0
_MAX_CONNECTIONS = 128

_FORWARDER = """
import os, socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (a, b):
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def join(client):
    with client, socket.socket(socket.AF_UNIX) as up:
        try: up.connect("/egress/socket")
        except OSError: return
        back = threading.Thread(target=pump, args=(up, client), daemon=True)
        back.start(); pump(client, up); back.join()
def serve(server):
    while True:
        threading.Thread(target=join, args=(server.accept()[0],), daemon=True).start()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
threading.Thread(target=serve, args=(server,), daemon=True).start()
sys.stdout.write("ready"); sys.stdout.flush()
sys.stdin.buffer.read()
os._exit(0)
"""


def allowed(host: str, hosts: Sequence[str]) -> bool:
    """Whether a name is on the list: exactly, or below a `*.` entry (which does not include the name itself)."""
    host = host.lower().rstrip(".")
    for entry in hosts:
        entry = entry.lower().rstrip(".")
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


class _Handler(socketserver.BaseRequestHandler):
    """One connection of a sandbox."""

    server: _Server

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


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: str, hosts: Sequence[str], private: bool):
        self.hosts, self.private = tuple(hosts), private
        self.slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(path, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox's connection that breaks is its own affair."""


class Egress:
    """A proxy in this process and the container that leads to it. `container`: whose network the sandbox joins."""

    def __init__(self, client: Any, hosts: Sequence[str], image: str, label: str, *, private: bool = False):
        self._client, self._line, self.container = client, None, ""
        self._folder = Path(tempfile.mkdtemp(prefix="workbench-egress-"))  # 0700: other users of the host stay out
        self._server = _Server(str(self._folder / "socket"), hosts, private)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        try:
            self._start(image, label)
        except BaseException:
            self.stop()
            raise

    @property
    def variables(self) -> dict[str, str]:
        proxy = f"http://127.0.0.1:{PORT}"
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        return {
            **dict.fromkeys(names, proxy),
            "no_proxy": "localhost,127.0.0.1,::1",
            "NO_PROXY": "localhost,127.0.0.1,::1",
        }

    def _start(self, image: str, label: str) -> None:
        from docker.types import Mount

        api = self._client.api
        host = api.create_host_config(
            network_mode="none", init=True, cap_drop=["ALL"], security_opt=["no-new-privileges"], read_only=True,
            mem_limit=256 << 20, memswap_limit=256 << 20, pids_limit=2 * _MAX_CONNECTIONS + 16, log_config={"Type": "none"},
            mounts=[Mount("/egress", str(self._folder), type="bind", read_only=True)],
        )  # fmt: skip
        self.container = api.create_container(
            image, ["-I", "-c", _FORWARDER, str(PORT)], entrypoint=["python3"], user=f"{os.getuid()}:{os.getgid()}", host_config=host,
            stdin_open=True, labels={LABEL: owner(), "workbench.run": label},
        )["Id"]  # fmt: skip
        self._line = Stream(
            api.attach_socket(self.container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        )
        api.start(self.container)
        end, said = time.monotonic() + 20, b""
        while b"ready" not in said:
            frames = self._line.frames(0.2)
            if frames is None or time.monotonic() > end:
                raise SandboxError(
                    f"docker: the egress container ({image}) did not start: {said.decode('utf-8', 'replace')[-300:]}"
                )
            said += b"".join(data for _, data in frames)

    def stop(self) -> None:
        if self.container:
            with contextlib.suppress(Exception):
                self._client.api.remove_container(self.container, force=True, v=True)
        if self._line is not None:
            self._line.close()
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._folder, ignore_errors=True)
