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
import os
import shutil
import socketserver
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.runs.temporary import prefix
from workbench.sandboxes import SandboxError
from workbench.sandboxes.docker_owner import LABEL, owner
from workbench.sandboxes.docker_streams import Stream
from workbench.sandboxes.egress import MAX_CONNECTIONS, PORT, Handler, allowed, variables

__all__ = ["Egress", "allowed"]


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


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: str, hosts: Sequence[str], private: bool):
        self.hosts, self.reach = tuple(hosts), "all" if private else "internet"
        self.slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(path, Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox's connection that breaks is its own affair."""


class Egress:
    """A proxy in this process and the container that leads to it. `container`: whose network the sandbox joins."""

    def __init__(self, client: Any, hosts: Sequence[str], image: str, label: str, *, private: bool = False):
        self._client, self._line, self.container = client, None, ""
        self._folder = Path(tempfile.mkdtemp(prefix=prefix("egress")))  # 0700: other users of the host stay out
        self._server = _Server(str(self._folder / "socket"), hosts, private)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        try:
            self._start(image, label)
        except BaseException:
            self.stop()
            raise

    @property
    def variables(self) -> dict[str, str]:
        return variables()

    def _start(self, image: str, label: str) -> None:
        from docker.types import Mount

        api = self._client.api
        host = api.create_host_config(
            network_mode="none", init=True, cap_drop=["ALL"], security_opt=["no-new-privileges"], read_only=True,
            mem_limit=256 << 20, memswap_limit=256 << 20, pids_limit=2 * MAX_CONNECTIONS + 16, log_config={"Type": "none"},
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
