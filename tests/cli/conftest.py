from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _results(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path / "results"))
    for name in ("WORKBENCH_RUN", "WORKBENCH_PROGRESS", "WORKBENCH_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workbench(tmp_path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs the command in a process of its own, in a scratch folder."""

    def run(*arguments: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "workbench.cli", *map(str, arguments)]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, **env},
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def sandboxes() -> None:
    """Skips where the default back end cannot start a sandbox."""
    from workbench.sandboxes import get_backend

    try:
        get_backend("bubblewrap").capabilities()
    except Exception as error:
        pytest.skip(f"no bubblewrap sandboxes on this machine: {error}")


@pytest.fixture
def task(tmp_path) -> Callable[..., Path]:
    """A task from the scaffold, with a file replaced."""
    from workbench.tasks.scaffold import scaffold

    def make(name: str, **files: str) -> Path:
        path = tmp_path / "tasks" / name
        scaffold(path)
        for file, text in files.items():
            target = (
                path / {"solve": "solution/solve.sh", "toml": "task.toml", "docker": "environment/Dockerfile"}[file]
            )
            target.write_text(text)
        return path

    return make


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]
