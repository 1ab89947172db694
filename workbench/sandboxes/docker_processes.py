"""Killing inside a container without trusting anything in it.

The engine's API cannot end one command of a container, and a program inside (`kill`, `sh`) may have been replaced.
So processes are found and killed from outside: through this machine's /proc when we are root on the engine's machine,
else by a helper container that runs the *pristine* image in the sandbox's process namespace.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.sandboxes import SandboxError
from workbench.sandboxes.docker_listen import listen_in
from workbench.sandboxes.docker_local import LocalFiles
from workbench.sandboxes.docker_owner import LABEL, owner

# Runs in the helper: prints each process's stat line, then, when given pids, kills those.
_HELPER = """
for f in /proc/[0-9]*/stat; do read -r line 2>/dev/null <"$f" && echo "$line"; done
echo self $$
[ $# = 0 ] || kill -9 "$@" 2>/dev/null
:
"""


@dataclass(frozen=True)
class Process:
    """pid, parent and start (clock ticks since boot), as seen in one process namespace."""

    pid: int
    parent: int
    start: int
    state: str


def parse_stat(line: str) -> Process | None:
    """A line of /proc/PID/stat. The name in it may hold anything, so fields are counted after its last parenthesis."""
    head, _, tail = line.rpartition(")")
    fields = tail.split()
    pid = head.split(" ", 1)[0]
    if not pid.isdigit() or len(fields) < 20:
        return None
    return Process(int(pid), int(fields[1]), int(fields[19]), fields[0])


def of_command(processes: Iterable[Process], init: int, since: int) -> list[int]:
    """Pids of one command's tree: started at `since` or later, and no child of an older process (a service that an
    earlier command left running and that forks meanwhile). Orphans belong to it: they hang below `init` or outside."""
    known = {p.pid: p for p in processes}
    chosen = []
    for process in known.values():
        at: Process | None = process
        while at is not None and at.pid != init and at.start >= since:
            at = known.get(at.parent)
        if process.pid != init and (at is None or at.pid == init):
            chosen.append(process.pid)
    return chosen


def run_once(client: Any, image: str, arguments: list[str], **options: Any) -> str:
    """Run `/bin/sh` of an image once, as root without powers or network, and leave nothing: its output."""
    api = client.api
    host = api.create_host_config(network_mode="none", read_only=True, cap_drop=["ALL"],
                                  security_opt=["no-new-privileges"], **options)  # fmt: skip
    made = api.create_container(image, arguments, entrypoint=["/bin/sh"], user="0:0", working_dir="/", host_config=host,
                                environment={"LC_ALL": "C"}, labels={LABEL: owner()})["Id"]  # fmt: skip
    try:
        api.start(made)
        api.wait(made, timeout=60)
        return api.logs(made).decode("utf-8", "replace")
    finally:
        api.remove_container(made, force=True, v=True)


class Killer:
    """Kills in one running container. `idle` (the process that keeps it alive) and its init are spared."""

    def __init__(self, client: Any, container: str, image: str, host_init: int):
        self._client, self._container, self._image, self._init = client, container, image, host_init
        self.local = os.geteuid() == 0 and host_init > 0 and self._is_ours(host_init)

    def files(self) -> LocalFiles:
        """The container's files as this machine sees them; when it cannot, every path is the engine's to look up."""
        return LocalFiles(self._init if self.local else 0, self._is_ours)

    def listen(self, port: int = 0) -> socket.socket:
        """A listening socket in the container's network. Raises SandboxError where this machine cannot enter it."""
        if not self.local:
            raise SandboxError(
                "the host can serve a sandbox only as root on the Docker engine's own machine: take bubblewrap"
            )
        return listen_in(self._init, self._is_ours, port)

    def kill(self, since: int | None = None) -> int:
        """Kill everything started by exec, or (with `since`) one command's tree. Returns the number killed."""
        killed: set[int] = set()
        for attempt in range(200):
            processes = self._list()
            chosen = [p for p in self._choose(processes, since) if p]
            if not chosen:
                return len(killed)
            killed.update(chosen)
            self._kill(chosen, frozen=attempt >= 2)
        raise RuntimeError(f"{len(chosen)} processes of container {self._container[:12]} do not die")

    def _choose(self, processes: list[Process], since: int | None) -> list[int]:
        init = self._init if self.local else 1
        alive = [p for p in processes if p.state not in "ZX"]
        children = [p for p in alive if p.parent == init]
        idle = min(children, key=lambda p: (p.start, p.pid)).pid if children else 0
        if since is not None:
            return [pid for pid in of_command(alive, init, since) if pid != idle]
        return [p.pid for p in alive if p.pid not in (init, idle)]

    def _kill(self, pids: list[int], *, frozen: bool) -> None:
        """SIGKILL. A fork bomb can outrun a loop, so from the third round on the container is frozen meanwhile."""
        with self._frozen() if frozen else contextlib.nullcontext():
            if self.local:
                for pid in pids:
                    if self._is_ours(pid):  # it may have ended, and its number be another's by now
                        _signal(pid)
            else:
                self._help(pids)
        time.sleep(0.002)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        from docker.errors import APIError

        try:
            self._client.api.pause(self._container)
            frozen = True
        except APIError:  # the kernel may fail to freeze a busy bomb; rounds of killing go on all the same
            frozen = False
        try:
            yield
        finally:
            # an engine that reported a failure may have frozen it all the same: then this thaws it, else it is refused
            with contextlib.nullcontext() if frozen else contextlib.suppress(APIError):
                self._client.api.unpause(self._container)

    def _is_ours(self, pid: int) -> bool:
        try:
            return self._container in Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return False

    def _list(self) -> list[Process]:
        if not self.local:
            return self._help([])
        found = []
        for entry in os.listdir("/proc"):  # noqa: PTH208 (a Path for each process costs more than the reading)
            if entry.isdigit() and self._is_ours(int(entry)):
                found.append(_stat(int(entry)))
        return [p for p in found if p]

    def _help(self, pids: list[int]) -> list[Process]:
        output = run_once(
            self._client, self._image, ["-c", _HELPER, "sh", *map(str, pids)],
            pid_mode=f"container:{self._container}", cap_add=["KILL"],
        )  # fmt: skip
        lines = output.splitlines()
        own = next((line.split()[1] for line in lines if line.startswith("self ")), "")
        return [p for p in map(parse_stat, lines) if p and str(p.pid) != own]


def _stat(pid: int) -> Process | None:
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except OSError:
        return None


def _signal(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
