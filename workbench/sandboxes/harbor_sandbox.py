"""One running Harbor environment as a Sandbox. Only Harbor's start, stop, exec, upload_file and download_file are used,
so that every environment type behaves alike; bytes that come back are treated as hostile."""

from __future__ import annotations

import base64
import contextlib
import json
import posixpath
import shlex
import shutil
import tarfile
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.sandboxes import ExecResult, Image, Limits, SandboxError, Snapshot
from workbench.sandboxes import docker_files as files
from workbench.sandboxes import harbor_inside as inside
from workbench.sandboxes.docker_owner import owner
from workbench.sandboxes.harbor_context import filtered, missing

_ARGUMENT_LIMIT = 48 << 10  # bytes of one command line that every provider takes
_GRACE = 30.0  # seconds that Harbor's own time limit is later than ours


@dataclass(frozen=True)
class Saved:
    """A snapshot on the host: one tar of what changed, and every path that was there (NUL-separated)."""

    folder: Path

    @property
    def changes(self) -> Path:
        return self.folder / "changes.tar"

    @property
    def paths(self) -> Path:
        return self.folder / "paths"


class HarborSandbox:
    """Lives until `stop`. `wait` runs one of Harbor's coroutines to its end, on the back end's event loop."""

    def __init__(
        self, environment: Any, image: Image, limits: Limits, env: Mapping[str, str], wait: Callable, folder: Path
    ):
        self.id, self.image = environment.session_id, image
        self._environment, self._limits, self._env, self._wait = environment, limits, dict(env), wait
        self._folder = folder
        self._lock = threading.RLock()
        self._stopped = self._sealed = False
        # Everything of ours inside has one random name, so that a snapshot can leave it out.
        self._inside = f"/tmp/.workbench-{uuid.uuid4().hex}"
        begun = self._raw("date -u '+%Y-%m-%d %H:%M:%S.%N UTC'; sleep 0.02")
        self._begun = begun.strip()
        self._alive_at_start = self._raw(inside.ALIVE).split()

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
        self._check()
        argv = [self.image.handle["shell"], "-c", command] if isinstance(command, str) else list(command)
        seconds = self._limits.command_seconds if timeout is None else timeout
        variables = {**self._env, **(env or {})}
        begun = time.monotonic()
        with self._lock:
            if not self.image.handle["python"]:
                return self._plain(argv, cwd, variables, user, seconds, stdin)
            mark = uuid.uuid4().hex
            ask = {
                "argv": argv, "cwd": cwd or self.image.workdir, "env": variables, "limit": self._limits.output_bytes,
                "timeout": seconds, "mark": mark, "stdin": "", "remove": [],
            }  # fmt: skip
            if stdin is not None:
                ask["stdin"] = self._inside + ".stdin"
                self._upload(stdin, ask["stdin"])
            result = self._run(self._line(ask), user=user, timeout=seconds + _GRACE)
            return _answer(result, mark, time.monotonic() - begun, self._limits.output_bytes)

    def _line(self, ask: dict[str, Any]) -> str:
        """The command line that runs the runner. A long request goes by a file."""
        text = base64.b64encode(json.dumps(ask).encode()).decode()
        if len(text) > _ARGUMENT_LIMIT:
            path = self._inside + ".ask"
            text = base64.b64encode(json.dumps({**ask, "remove": [path]}).encode()).decode()
            self._upload(text.encode(), path)
            text = "@" + path
        return f"exec python3 -I -B -c {shlex.quote(inside.RUNNER)} {text}"

    def _plain(self, argv, cwd, variables, user, seconds, stdin) -> ExecResult:
        """An image without Python: Harbor's exec as it is, and output that is cut off only here."""
        from workbench.sandboxes.docker_streams import Capture

        if stdin is not None:
            raise SandboxError(f"harbor: standard input needs python3 in the image ({self.id})")
        begun = time.monotonic()
        result = self._run(shlex.join(argv), user=user, timeout=seconds, cwd=cwd or self.image.workdir, env=variables)
        texts = []
        for text in (result.stdout or "", result.stderr or ""):
            texts.append(Capture(self._limits.output_bytes))
            texts[-1].feed(text.encode())
        return ExecResult(
            result.return_code, texts[0].text(), texts[1].text(), time.monotonic() - begun,
            truncated=any(t.dropped for t in texts), killed_by="time" if result.return_code == 124 else None,
        )  # fmt: skip

    def _run(
        self, line: str, *, user: str | None = None, timeout: float = 120.0, cwd: str | None = "/", env: Any = None
    ) -> Any:
        who = user or self.image.user
        work = self._environment.exec(line, cwd=cwd, env=env, timeout_sec=int(timeout) + 1, user=who)
        return self._wait(work, timeout + 2 * _GRACE, f"run a command in {self.id}")

    def _raw(self, script: str, *arguments: str) -> str:
        """A script of ours as root, its output; SandboxError when it could not be run."""
        line = shlex.join(["sh", "-c", script, "sh", *arguments])
        result = self._run(line, user="root")
        if result.return_code != 0:
            raise SandboxError(
                f"harbor: {self.id} could not do its work: {(result.stderr or result.stdout or '')[-300:]}"
            )
        return result.stdout or ""

    # --------------------------------------------------------------------- files
    def put(self, source: Path, target: str) -> None:
        self._check()
        with self._lock:
            if source.is_dir():
                self._unpack(files.pack(source, ""), self._absolute(target))
            else:
                self._place(source.read_bytes(), self._absolute(target), source.stat().st_mode & 0o7777)

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._check()
        with self._lock:
            self._place(data, self._absolute(path), mode)

    def _place(self, data: bytes, path: str, mode: int) -> None:
        temporary = self._inside + ".file"
        self._upload(data, temporary)
        script = 'mkdir -p -- "$(dirname -- "$2")" && chmod "$3" "$1" && chown "$4" "$1" && mv -f -T -- "$1" "$2"'
        self._raw(script, temporary, path, f"{mode:o}", f"{self.image.user}:")

    def _unpack(self, archive: bytes, target: str, *, owner: bool = True) -> None:
        temporary = self._inside + ".tar"
        self._upload(archive, temporary)
        keep = "--no-same-owner" if owner else "--same-owner --numeric-owner"
        self._raw(f'mkdir -p -- "$2" && tar -C "$2" {keep} -xpf "$1" && rm -f "$1"', temporary, target)
        if owner and self.image.user not in ("root", "0"):
            self._raw('chown -R -h -- "$1" "$2"', f"{self.image.user}:", target)

    def _upload(self, data: bytes, target: str) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder) as file:
            file.write(data)
            file.flush()
            Path(file.name).chmod(0o644)
            self._wait(self._environment.upload_file(Path(file.name), target), 600, f"copy a file into {self.id}")

    def get(self, source: str, target: Path, *, max_bytes: int = 256 << 20) -> None:
        with self._packed(source, max_bytes) as chunks:
            files.unpack(chunks, target, max_bytes=max_bytes, what=source)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        with self._packed(path, max_bytes) as chunks:
            return files.read_single(chunks, max_bytes=max_bytes, what=path)

    @contextlib.contextmanager
    def _packed(self, path: str, max_bytes: int) -> Iterator[Iterator[bytes]]:
        self._check(sealed=True)
        remote = self._inside + ".out"
        cut = max_bytes + (max_bytes >> 3) + (4 << 20)  # headers and padding come on top of the bytes
        with self._lock, tempfile.TemporaryDirectory(dir=self._folder) as folder:
            line = shlex.join(["sh", "-c", inside.PACK, "sh", self._absolute(path), remote, str(cut)])
            code = self._run(line, user="root", timeout=600).return_code
            if code == 44:
                raise FileNotFoundError(f"{path} is not in sandbox {self.id}")
            if code != 0:
                raise SandboxError(f"harbor: {path} could not be read in {self.id}")
            local = Path(folder) / "out.tar"
            self._download(remote, local)
            with local.open("rb") as file:
                try:
                    yield iter(lambda: file.read(1 << 18), b"")
                except tarfile.TarError as error:
                    raise ValueError(
                        f"{path} holds more than {max_bytes:,} bytes, or cannot be read ({error})"
                    ) from None

    def _download(self, remote: str, local: Path) -> None:
        self._wait(self._environment.download_file(remote, local), 600, f"copy a file out of {self.id}")
        if local.is_symlink() or not local.is_file():
            raise SandboxError(f"harbor: {self.id} sent something that is no file")
        with contextlib.suppress(SandboxError):
            self._raw('rm -f -- "$1"', remote)

    def _absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.image.workdir, path))

    # ------------------------------------------------------------------ endings
    def kill_all(self) -> int:
        if self._sealed:
            return 0
        self._check()
        with self._lock:
            words = self._raw(inside.KILL_ALL, *self._alive_at_start).split()
        if len(words) != 4 or words[3] != "0" or not words[1].isdigit():
            raise SandboxError(f"harbor: processes of {self.id} do not die")
        return int(words[1])

    def snapshot(self, *, seal: bool = False) -> Snapshot:
        self._check()
        with self._lock:
            if seal:
                self.kill_all()
            saved = Saved(Path(tempfile.mkdtemp(dir=self._folder.parent, prefix="snapshot-")))
            weakref.finalize(saved, shutil.rmtree, saved.folder, ignore_errors=True)
            (saved.folder / "owner.json").write_text(json.dumps({"owner": owner(), "kind": "snapshot:"}))
            changes, paths = self._inside + ".changes", self._inside + ".paths"
            self._raw(inside.CHANGES, self._begun, changes, paths)
            self._download(changes, saved.changes)
            self._download(paths, saved.paths)
            self._sealed = seal
        return Snapshot(self.image, saved)

    def restore(self, saved: Saved, *, trusted: bool) -> None:
        """Bring a snapshot's files into this fresh environment; with `trusted`, none below SYSTEM_PATHS."""
        if not saved.changes.exists():
            raise SandboxError("the snapshot is gone")
        with self._lock:
            here = self._inside + ".paths"
            self._raw(inside.PATHS, here)
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                local = Path(folder) / "paths"
                self._download(here, local)
                gone = missing(local.read_bytes(), saved.paths.read_bytes(), trusted=trusted)
            if gone:
                self._upload(b"\0".join(gone) + b"\0", here)
                self._raw('xargs -0 rm -rf -- <"$1"; rm -f "$1"', here)
            self._unpack(filtered(saved.changes, trusted=trusted), "/", owner=False)

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(Exception):
            self._wait(self._environment.stop(delete=True), 300, f"stop {self.id}")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self, *, sealed: bool = False) -> None:
        if self._stopped or (self._sealed and not sealed):
            raise SandboxError(f"sandbox {self.id} was {'stopped' if self._stopped else 'sealed by a snapshot'}")


def _answer(result: Any, mark: str, seconds: float, limit: int) -> ExecResult:
    """The runner's report among whatever else came out."""
    text = result.stdout or ""
    at = text.rfind(mark)
    if at < 0:
        if result.return_code in (126, 127) or "chdir" in (result.stderr or "") + text:
            return ExecResult(result.return_code or 126, "", (result.stderr or text)[-limit:], seconds)
        raise SandboxError(
            f"harbor: a command gave no answer (code {result.return_code}): {(result.stderr or text)[-300:]}"
        )
    report = json.loads(text[at + len(mark) :].splitlines()[0])
    outputs, dropped = [], 0
    for name in ("out", "err"):
        head, tail = (base64.b64decode(part) for part in report[name][:2])
        missing = int(report[name][2]) - len(head) - len(tail)
        dropped += missing
        gap = f"\n[... {missing} bytes dropped ...]\n" if missing else ""
        outputs.append(
            head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace") if missing
            else (head + tail).decode("utf-8", "replace")
        )  # fmt: skip
    return ExecResult(int(report["code"]), *outputs, seconds, truncated=dropped > 0, killed_by=report["killed_by"])
