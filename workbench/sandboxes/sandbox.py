"""A running bubblewrap sandbox: the host's side of `warden/box.py`."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workbench.sandboxes import ExecResult, Image, Limits, SandboxError, Snapshot, files
from workbench.sandboxes.egress import Listener
from workbench.sandboxes.layers import Host
from workbench.sandboxes.running import Run
from workbench.sandboxes.slots import Pool, Slot


@dataclass(frozen=True)
class Stack:
    """Layers from bottom to top, as folders relative to the state folder: the image's, then what sandboxes changed."""

    image: tuple[str, ...]
    changed: tuple[str, ...] = ()
    keep: object = field(default=None, compare=False, repr=False)  # its end removes a copied snapshot


class Copied:
    """A copied snapshot's folder, removed when nothing refers to it any more."""

    def __init__(self, host: Host, folder: Path, below: object):
        self.below = below
        weakref.finalize(self, _forget, host, folder)


def _forget(host: Host, folder: Path) -> None:
    if folder.is_dir():
        host.remove(folder)


class BubblewrapSandbox:
    def __init__(self, host: Host, pool: Pool, slot: Slot, image: Image, folder: Path, stack: Stack, settings: dict):
        self.host, self.pool, self.slot, self.image, self.folder, self.stack = host, pool, slot, image, folder, stack
        self.id = f"{host.name}/{folder.name}"
        self.limits: Limits = settings["limits"]
        self.env: Mapping[str, str] = settings["env"]
        self.users: bool = settings["users"]
        self.rlimits: dict[str, int] = settings["rlimits"]
        self.watch_memory: bool = settings["watch_memory"]
        self.egress: Listener | None = None  # the proxy of an allowlist
        self.commands = 0
        self.sealed = self.stopped = self.stopping = False
        self.lock = threading.RLock()

    # --------------------------------------------------------------- commands

    def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        if not argv or any("\0" in word for word in argv):
            raise ValueError("a command needs at least one word, and none with a NUL byte")
        with self.lock:
            if self.sealed:
                raise SandboxError(f"sandbox {self.id} is sealed: no command runs in it any more")
            self._alive()
            self.commands += 1
            request = {
                "argv": argv, "cwd": cwd or self.image.workdir, "env": {**self.env, **(env or {})},
                "user": user or self.image.user, "users": self.users, "rlimits": self.rlimits, "number": self.commands,
            }  # fmt: skip
            return Run(self, request, stdin or b"", timeout or self.limits.command_seconds).result()

    def _alive(self) -> None:
        if self.stopped:
            raise SandboxError(f"sandbox {self.id} was stopped")

    def kill_all(self) -> int:
        with self.lock:
            self._alive()
            return self.slot.call("kill_all")[0]["killed"]

    def network_handles(self) -> list[int]:
        """Descriptors of its user and its network namespace, for a sandbox that is to share the network."""
        with self.lock:
            self._alive()
            return self.slot.call("network")[1]

    def listen(self, port: int = 0) -> socket.socket:
        """A socket that listens on the sandbox's own loopback (0: any free port), to be served by this process. What
        runs in this sandbox reaches it, and nobody else."""
        with self.lock:
            self._alive()
            (fd,) = self.slot.call("listen", port=port)[1]
            return socket.socket(fileno=fd)

    # ------------------------------------------------------------------ files

    def put(self, source: Path, target: str) -> None:
        with self.lock:
            self._alive()
            files.put(self.slot, Path(source), target, self.image.user, self.users)

    def get(self, source: str, target: Path, *, max_bytes: int = 256 << 20) -> None:
        with self.lock:
            self._alive()
            files.get(self.slot, source, Path(target), max_bytes)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        with self.lock:
            self._alive()
            return files.read(self.slot, path, max_bytes)

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        with self.lock:
            self._alive()
            files.write(self.slot, path, data, mode, self.image.user, self.users)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within the block nothing inside runs, so that files hold still; afterwards all goes on as before."""
        with self.lock:
            self._alive()
            self.slot.call("freeze")
            try:
                yield
            finally:
                self.slot.call("thaw")

    def changes(
        self, source: str, known: dict[str, object], *, max_bytes: int, max_files: int
    ) -> tuple[dict[str, bytes], list[str]]:
        """What changed below the folder `source` since the last call with the same `known`: new bytes, and names gone."""
        with self.lock:
            self._alive()
            return files.changes(self.slot, source, known, max_bytes, max_files)

    # -------------------------------------------------------------------- end

    def snapshot(self, *, seal: bool = False) -> Snapshot:
        with self.lock:
            self._alive()
            if seal:
                self.kill_all()
                self.sealed = True
                folder, keep = self.folder, self.stack.keep
            else:
                folder = self.host.new_folder("snapshot")
                keep = Copied(self.host, folder, self.stack.keep)
                self.slot.call("copy_upper", target=self.host.relative(folder), seconds=600.0)
            changed = (*self.stack.changed, self.host.relative(folder))
            return Snapshot(self.image, Stack(self.stack.image, changed, keep))

    def stop(self) -> None:
        self.stopping = True  # before the lock: a command that another thread runs here gives up at its next look
        with self.lock:
            if self.stopped:
                return
            self.stopped = True
            if self.egress:
                self.egress.stop()
            try:
                reuse = not self.slot.broken
                if reuse:  # a broken one would not answer: it is killed with all that is in it
                    self.slot.call("destroy")
            except (SandboxError, OSError):
                reuse = False
            self.pool.give_back(self.slot, reuse=reuse)
            self.host.remove(self.folder)

    def __enter__(self) -> BubblewrapSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
