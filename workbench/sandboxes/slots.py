"""Wardens and their pool: the host's side of `warden/`.

A slot is one warden process that already sits in its cgroups and namespaces (joining cgroup v1 takes about 10 ms a
controller), so that a sandbox starts in the time of a few mounts. Slots are used again after a sandbox was stopped.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.sandboxes import Limits, SandboxError, SandboxOverrun
from workbench.sandboxes import cgroups as cg
from workbench.sandboxes.layers import Host, mapped_range
from workbench.sandboxes.warden import linux, wire

CALL_SECONDS = 120.0
_SPAWN_SECONDS = 30.0
_WARDEN = Path(__file__).with_name("warden")
# Some Pythons (clusters' modules, relocated ones) find their own library only by this.
_LOADER = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
_FORBIDDEN = (
    "Bubblewrap sandboxes need user namespaces, and a /proc without masks (a container: --security-opt systempaths=unconfined "
    "seccomp=unconfined; Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0), or take the docker back end"
)
_ERRORS: dict[str, type[Exception]] = {
    "FileNotFoundError": FileNotFoundError, "NotADirectoryError": FileNotFoundError, "ValueError": ValueError,
    "IsADirectoryError": IsADirectoryError,
}  # fmt: skip
# What a path may meet that the sandbox's own commands have turned: into /proc, /dev, a loop of links.
_IN_THE_WAY = (errno.EROFS, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENAMETOOLONG)


class Slot:
    """One warden. Not thread-safe: it belongs to one sandbox at a time."""

    def __init__(self, host: Host, cgroup: cg.Group | None, join: Sequence[int] = ()):
        self.link, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.cgroup, self.user_namespace, self.broken, self.memory_kills = cgroup, -1, False, 0
        self.joined = bool(join)  # it lives in another sandbox's user namespace, and ends with its own sandbox
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WARDEN), str(far.fileno()), host.name],
                pass_fds=[far.fileno()], env=_LOADER, cwd="/", start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            far.close()
        try:
            if cgroup:
                cgroup.join(self.process.pid)
            self._enter(host.state, join)
        except BaseException:
            self.close()
            raise

    def _enter(self, state: Path, join: Sequence[int]) -> None:
        """Give the warden its namespaces. As root: a range of users, and mounts of what it could not reach itself."""
        first, count = mapped_range()
        kind = "joined" if join else "host" if os.geteuid() == 0 else "self"
        self.send({"map": kind, "state": str(state)}, join[:1])
        self._admitted()
        self.user_namespace = os.open(f"/proc/{self.process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        trees: list[int] = []
        if os.geteuid() == 0:
            if kind == "host":
                for name in ("uid_map", "gid_map"):
                    Path(f"/proc/{self.process.pid}/{name}").write_text(f"0 {first} {count}")
            trees.append(linux.clone_tree(str(state), recursive=True))
            tree = self.shown_tree(Path("/usr"))
            trees += [tree] if tree is not None else []
        self.send({"mapped": True}, trees)
        wire.close(trees)
        self._admitted()

    def _admitted(self) -> None:
        answer, _ = self.receive(_SPAWN_SECONDS)
        if "error" in answer:
            raise SandboxError(f"{answer['error']}. {_FORBIDDEN}")

    def shown_tree(self, source: Path) -> int | None:
        """Root only: a detached, read-only mount of `source` whose owners look inside as they do here; None where the
        file system cannot (an overlay, some network file systems)."""
        tree = linux.clone_tree(str(source))
        try:
            linux.protect_tree(tree, user_namespace=self.user_namespace)
        except OSError:
            os.close(tree)
            return None
        return tree

    def send(self, message: dict, fds: Sequence[int] = ()) -> None:
        try:
            wire.send(self.link, message, list(fds))
        except OSError as error:
            self.broken = True
            raise self.failure(f"the sandbox's warden (pid {self.process.pid}) is gone: {error}") from error

    def receive(self, seconds: float = CALL_SECONDS) -> tuple[dict, list[int]]:
        self.link.settimeout(seconds)
        try:
            answer = wire.receive(self.link)
        except TimeoutError:
            self.broken = True
            raise SandboxError(f"the sandbox's warden did not answer within {seconds:g} s") from None
        if answer is None:
            self.broken = True
            raise self.failure(f"the sandbox's warden (pid {self.process.pid}) is gone")
        return answer

    def call(self, op: str, fds: Sequence[int] = (), *, seconds: float = CALL_SECONDS, **request: object):
        """(answer, descriptors). What failed inside is raised here: SandboxError, or the error a file operation meets."""
        self.send({"op": op, **request}, fds)
        return self.checked(*self.receive(seconds), of_files=op in ("put", "open", "list"))

    def checked(self, answer: dict, fds: list[int], *, of_files: bool = False) -> tuple[dict, list[int]]:
        if "error" in answer:
            name, _, text = answer["error"].partition(": ")
            if name in _ERRORS:
                raise _ERRORS[name](text)
            if of_files and answer.get("errno") in _IN_THE_WAY:
                raise ValueError(text)
            out_of_memory = answer.get("errno") == errno.ENOMEM  # so says a fork whose first process is dead, too
            raise self.failure(answer["error"]) if out_of_memory else SandboxError(answer["error"])
        return answer, fds

    def begin(self, limits: Limits) -> None:
        """The limits of the next sandbox."""
        if self.cgroup:
            self.cgroup.apply(limits)
            self.memory_kills = self.cgroup.counters()[0]

    def failure(self, text: str) -> SandboxError:
        """The warden shares its sandbox's memory (a group of its own would cost each command 10 ms): when the kernel has
        killed for memory since the sandbox began, that is why it died."""
        if self.cgroup and self.cgroup.counters()[0] > self.memory_kills:
            return SandboxOverrun(f"{text}: the commands in the sandbox used up its memory")
        return SandboxError(text)

    def close(self) -> None:
        """End the warden; it removes its sandbox when it sees the socket end."""
        self.link.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.user_namespace >= 0:
            os.close(self.user_namespace)
            self.user_namespace = -1
        if self.cgroup:
            self.cgroup.remove()


class Pool:
    """Slots of this process, idle and used. Thread-safe."""

    def __init__(self, host: Host, keep: int = 8):
        self.host, self.keep = host, keep
        self.idle: list[Slot] = []
        self.used: set[Slot] = set()
        self.lock = threading.Lock()
        self.owner = os.getpid()

    def take(self, join: Sequence[int] = ()) -> Slot:
        while True:
            with self.lock:
                slot = self.idle.pop() if self.idle and not join else None
            if slot is None:
                slot = self.fresh(join)
            elif slot.process.poll() is not None:
                slot.close()
                continue
            with self.lock:
                self.used.add(slot)
            return slot

    def fresh(self, join: Sequence[int] = ()) -> Slot:
        if self.owner != os.getpid():
            raise SandboxError("this back end was made before the process forked: make one in this process")
        hierarchy = self.host.hierarchy
        group = hierarchy.group(f"slot-{next(self.host.numbers)}") if hierarchy else None
        return Slot(self.host, group, join)

    def warm(self, count: int) -> None:
        """Have `count` idle slots ready."""
        while len(self.idle) < count:
            slot = self.fresh()
            with self.lock:
                self.idle.append(slot)

    def give_back(self, slot: Slot, *, reuse: bool) -> None:
        with self.lock:
            self.used.discard(slot)
            if reuse and not (slot.broken or slot.joined) and len(self.idle) < self.keep and self.owner == os.getpid():
                self.idle.append(slot)
                return
        slot.close()

    def close(self) -> None:
        if self.owner != os.getpid():
            return  # a fork of the host: the wardens are not its own
        with self.lock:
            slots, self.idle, self.used = [*self.idle, *self.used], [], set()
        for slot in slots:
            slot.link.close()
        until = time.monotonic() + 10
        for slot in slots:
            while slot.process.poll() is None and time.monotonic() < until:
                time.sleep(0.002)
            slot.close()
