"""A sandbox for tests of agents: real bash in a temporary folder, no isolation. Only for commands written in tests."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from workbench.sandboxes import ExecResult, Image


class FolderSandbox:
    """Runs commands in `root` (the sandbox's "/app" is `root/app`, its working directory)."""

    def __init__(self, root: Path):
        self.root, self.id, self.image = root, root.name, Image("folder", "none", workdir="/app")
        self.calls: list[object] = []
        (root / "app").mkdir(parents=True, exist_ok=True)

    def host(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def exec(self, command, *, cwd=None, env=None, user=None, timeout=None, stdin=None) -> ExecResult:
        self.calls.append(command)
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        argv = [re.sub(r"(?<![\w./-])/(app|solution)\b", rf"{self.root}/\1", a) for a in argv]
        started = time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=self.host(cwd or "/app"),
            env={"PATH": os.environ["PATH"], "HOME": str(self.root), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(stdin, timeout)
            code, killed = process.returncode, None
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code, killed = 124, "time"
        code = 128 - code if code < 0 else code
        return ExecResult(
            code,
            out.decode(errors="replace"),
            err.decode(errors="replace"),
            time.monotonic() - started,
            killed_by=killed,
        )

    def put(self, source: Path, target: str) -> None:
        if source.is_dir():
            shutil.copytree(source, self.host(target), dirs_exist_ok=True)
        else:
            self.host(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, self.host(target))

    def get(self, source: str, target: Path, *, max_bytes: int = 1 << 28) -> None:
        shutil.copy2(self.host(source), target)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        return self.host(path).read_bytes()

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self.host(path).parent.mkdir(parents=True, exist_ok=True)
        self.host(path).write_bytes(data)

    def kill_all(self) -> int:
        return 0

    def snapshot(self, *, seal: bool = False):
        raise NotImplementedError("tests of agents take no snapshots")

    def stop(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
