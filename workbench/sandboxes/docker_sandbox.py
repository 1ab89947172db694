"""One running container as a Sandbox."""

from __future__ import annotations

import contextlib
import io
import itertools
import posixpath
import socket
import tarfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from workbench.sandboxes import ExecResult, Image, Limits, SandboxError, SandboxOverrun, Snapshot
from workbench.sandboxes import docker_files as files
from workbench.sandboxes.docker_local import NotHere
from workbench.sandboxes.docker_processes import Killer
from workbench.sandboxes.docker_snapshots import Saved
from workbench.sandboxes.docker_streams import Command, Stream, drain, follow

# The first line of output says who the command is and when it started, before any of its own code runs.
_WRAP = 'read -r line </proc/$$/stat; echo "$line"; exec "$@"'
_SHELL = 'command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1"'
_OOM = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null"
_HOSTS = b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """An engine that fails is infrastructure: SandboxError, with what was being done."""
    import requests
    from docker.errors import DockerException

    try:
        yield
    except (DockerException, requests.RequestException) as error:
        raise SandboxError(f"docker: could not {what}: {getattr(error, 'explanation', None) or error}") from error


class DockerSandbox:
    """A container that lives until `stop`, or until this process ends."""

    def __init__(
        self, client: Any, container: str, image: Image, limits: Limits, env: Mapping[str, str], egress: Any = None
    ):
        self.id, self.image, self.container = container[:12], image, container
        self._client, self._api, self._limits, self._env = client, client.api, limits, dict(env)
        self._lock = threading.RLock()
        self._sealed = self._stopped = False
        self._oom_seen = 0
        self._owner_ids: tuple[int, int] | None = None
        # Our end of the idle process's standard input: when we die, the kernel closes it, and the container ends.
        self._line = self._api.attach_socket(container, params={"stdin": 1, "stream": 1})
        self._api.start(container)
        info = self._api.inspect_container(container)
        self._killer = Killer(client, container, str(image.handle), info["State"]["Pid"])
        self._files = self._killer.files()
        if not info.get("HostsPath"):  # the engine makes the file for networks of its own only
            self._put(files.pack_bytes("/etc/hosts", _HOSTS, mode=0o644))
        self._finalizer = weakref.finalize(self, _remove, client, container, self._line, egress)

    # ------------------------------------------------------------------ commands
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
        self._alive()
        argv = ["/bin/sh", "-c", _SHELL, "sh", command] if isinstance(command, str) else list(command)
        begun = time.monotonic()
        seconds = self._limits.command_seconds if timeout is None else timeout
        state = Command(self._limits, begun + seconds, self._too_big)
        with self._lock, self._engine("run a command"):
            exec_id = self._create_exec(argv, cwd, env, user, stdin is not None)
            if isinstance(exec_id, ExecResult):
                return exec_id
            stream = Stream(self._api.exec_start(exec_id, socket=True), stdin)
            try:
                ended = follow(stream, lambda: self._running(exec_id), state.feed, state.go_on)
                if not ended:
                    self._killer.kill(state.since if state.since is not None else 0)
                    drain(stream, state.feed, seconds=0.2)
            finally:
                stream.close()
            code = 124 if state.killed_by == "time" else self._exit_code(exec_id)
        return self._result(state, code, time.monotonic() - begun)

    def _create_exec(
        self, argv: list[str], cwd: str | None, env: Any, user: str | None, stdin: bool
    ) -> str | ExecResult:
        return self._api.exec_create(
            self.container, ["/bin/sh", "-c", _WRAP, "sh", *argv], stdin=stdin, environment={**self._env, **(env or {})},
            workdir=cwd or self.image.workdir, user=user or self.image.user,
        )["Id"]  # fmt: skip

    def _running(self, exec_id: str) -> bool:
        return bool(self._api.exec_inspect(exec_id)["Running"])

    def _exit_code(self, exec_id: str) -> int:
        end = time.monotonic() + 5
        while True:
            state = self._api.exec_inspect(exec_id)
            if not state["Running"] and state["ExitCode"] is not None:
                return int(state["ExitCode"])
            if time.monotonic() > end:
                raise SandboxError(f"docker: sandbox {self.id} does not say how a command ended")
            time.sleep(0.005)

    def _result(self, state: Command, code: int, seconds: float) -> ExecResult:
        if code == 137 and state.killed_by is None and self._out_of_memory():
            state.killed_by = "memory"
        if code in (126, 127, 137) and state.since is None and not self._is_running():
            with self._engine("run a command"):
                raise SandboxError(f"docker: sandbox {self.id} died while a command ran")
        return ExecResult(
            exit_code=code, stdout=state.out.text(), stderr=state.err.text(), seconds=seconds,
            truncated=bool(state.out.dropped or state.err.dropped), killed_by=state.killed_by,
        )  # fmt: skip

    def _out_of_memory(self) -> bool:
        """Whether the kernel's count of memory kills rose (asked only after a SIGKILL; the answer is a hint)."""
        exec_id = self._api.exec_create(self.container, ["/bin/sh", "-c", _OOM], user="0")["Id"]
        words = self._api.exec_start(exec_id).decode("utf-8", "replace").split()
        counts = [int(b) for a, b in itertools.pairwise(words) if a == "oom_kill" and b.isdigit()]
        before, self._oom_seen = self._oom_seen, max(counts, default=0)
        return self._oom_seen > before

    def _too_big(self) -> bool:
        """Whether the container's own layer has outgrown its limit."""
        answer = self._api.get(self._api._url("/containers/{0}/json", self.container), params={"size": 1}, timeout=60)
        return answer.ok and (answer.json().get("SizeRw") or 0) > self._limits.disk_mb << 20

    # --------------------------------------------------------------------- files
    def put(self, source: Path, target: str) -> None:
        self._alive()
        uid, gid = self._ids()
        with self._engine(f"copy {source} to {target}"):
            self._put(files.pack(source, self._absolute(target), uid=uid, gid=gid))

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._alive()
        uid, gid = self._ids()
        with self._engine(f"write {path}"):
            self._put(files.pack_bytes(self._absolute(path), data, mode=mode, uid=uid, gid=gid))

    def _put(self, archive: bytes) -> None:
        self.unpack(io.BytesIO(archive))

    def unpack(self, archive: IO[bytes]) -> None:
        """Unpack at `/` an archive that we made."""
        with self._lock:
            try:
                with tarfile.open(fileobj=archive) as tar:
                    self._files.unpack(tar)
            except (NotHere, FileNotFoundError):  # the engine says what is wrong, or manages
                archive.seek(0)
                self._api.put_archive(self.container, "/", archive)

    def get(self, source: str, target: Path, *, max_bytes: int = 256 << 20) -> None:
        with self._archive(source) as chunks:
            files.unpack(chunks, target, max_bytes=max_bytes, what=source)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        if self._stopped:
            raise SandboxError(f"sandbox {self.id} was stopped")
        try:
            with self._lock:
                return self._files.read(self._absolute(path), max_bytes=max_bytes, what=path)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} is not in sandbox {self.id}") from None
        except NotHere:
            pass
        with self._archive(path) as chunks:
            return files.read_single(chunks, max_bytes=max_bytes, what=path)

    @contextlib.contextmanager
    def _archive(self, path: str) -> Iterator[Any]:
        from docker.errors import APIError, NotFound

        if self._stopped:
            raise SandboxError(f"sandbox {self.id} was stopped")
        with self._lock, self._engine(f"read {path}"):
            try:
                chunks, _ = self._api.get_archive(self.container, self._absolute(path), chunk_size=1 << 18)
            except NotFound as error:
                if "No such container" in str(error.explanation):
                    raise
                raise FileNotFoundError(f"{path} is not in sandbox {self.id}") from None
            except APIError as error:
                if "not a directory" not in str(error.explanation):
                    raise
                raise FileNotFoundError(f"{path} is not in sandbox {self.id}: it leads over a file") from None
            try:
                yield chunks
            except tarfile.TarError as error:
                raise SandboxError(f"docker: the archive of {path} broke off: {error}") from error
            finally:
                chunks.close()

    def _absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.image.workdir, path))

    def _ids(self) -> tuple[int, int]:
        """Numbers of the image's user."""
        if self._owner_ids is None:
            user = self.image.user
            if user in ("", "root", "0", "0:0", "root:root"):
                self._owner_ids = (0, 0)
            else:
                words = self.exec(["sh", "-c", "id -u; id -g"], cwd="/").stdout.split()
                if len(words) != 2 or not all(w.isdigit() for w in words):
                    raise SandboxError(f"docker: the image's user {user!r} is not known in sandbox {self.id}")
                self._owner_ids = (int(words[0]), int(words[1]))
        return self._owner_ids

    def remove_paths(self, paths: Sequence[str]) -> None:
        """Delete paths inside, before anything foreign is in."""
        with contextlib.suppress(NotHere):
            return self._files.remove(paths)
        for at in range(0, len(paths), 500):
            result = self.exec(["rm", "-rf", "--", *paths[at : at + 500]], cwd="/", user="0")
            if not result.ok:
                raise SandboxError(f"docker: could not remove files in sandbox {self.id}: {result.output[:300]}")

    def listen(self, port: int = 0) -> socket.socket:
        """A socket that listens on the sandbox's own loopback (0: any free port), to be served by this process. Only as
        root on the engine's own machine."""
        self._alive()
        return self._killer.listen(port)

    # ------------------------------------------------------------------ endings
    def kill_all(self) -> int:
        if self._sealed:
            return 0
        self._alive()
        with self._engine("kill processes"):  # without the lock: it also ends a command that another thread waits for
            return self._killer.kill()

    def snapshot(self, *, seal: bool = False) -> Snapshot:
        self._alive()
        with self._lock, self._engine("take a snapshot"):
            if seal:
                self._api.kill(self.container, signal="SIGKILL")
                self._api.wait(self.container, timeout=30)
                self._sealed = True
            return Snapshot(self.image, Saved(self._client, self.container, uuid.uuid4().hex, sealed=seal))

    def stop(self) -> None:
        self._stopped = True
        with contextlib.suppress(Exception):
            self._finalizer()

    @contextlib.contextmanager
    def _engine(self, what: str) -> Iterator[None]:
        """As engine_errors; when the kernel had ended the container for its memory, whoever ran in it answers for that."""
        try:
            with engine_errors(what):
                yield
        except SandboxError as error:
            state = {} if self._stopped else self._state()
            if state.get("OOMKilled") and not state.get("Running"):
                raise SandboxOverrun(f"{error}: the commands in the sandbox used up its memory") from error
            raise

    def _state(self) -> dict[str, Any]:
        with contextlib.suppress(Exception):
            return self._api.inspect_container(self.container)["State"]
        return {}

    def _is_running(self) -> bool:
        return bool(self._state().get("Running"))

    def _alive(self) -> None:
        if self._stopped or self._sealed:
            raise SandboxError(f"sandbox {self.id} was {'stopped' if self._stopped else 'sealed by a snapshot'}")


def _remove(client: Any, container: str, line: Any, egress: Any) -> None:
    from docker.errors import NotFound

    try:
        client.api.remove_container(container, force=True, v=True)
    except NotFound:
        pass
    finally:
        with contextlib.suppress(Exception):
            line.close()
        if egress is not None:
            egress.stop()
