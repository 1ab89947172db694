"""The fraction verifier outside of any sandbox (an author's own machine): it ends what its tests left, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.tasks.verifier import VERIFIER_TEMPLATE

LEAVES = """import os, subprocess, sys, time

def test_leaves_a_daemon():
    script = "import os, time\\nif os.fork(): os._exit(0)\\nos.setsid()\\nopen('daemon', 'w').write(str(os.getpid()))\\ntime.sleep(60)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT)
    open(ROOT + "/started", "w").close()
    while not os.path.exists(ROOT + "/go"):
        time.sleep(0.01)
"""


def wait_for(path: Path, seconds: float = 30.0) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists():
            return path.read_text()
        time.sleep(0.01)
    raise AssertionError(f"{path.name} was never written")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_stranger_that_starts_meanwhile_lives_on(tmp_path):
    tests = tmp_path / "tests"
    tests.mkdir()
    script = tests / "test.sh"
    text = VERIFIER_TEMPLATE.replace("/logs/verifier", str(tmp_path / "logs"))
    script.write_text(text.replace("/opt/verifier/bin/python", sys.executable))
    script.chmod(0o755)
    (tests / "test_outputs.py").write_text(f"ROOT = {str(tmp_path)!r}\n{LEAVES}")
    verifier = subprocess.Popen([script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "started")
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (tmp_path / "go").touch()
        assert verifier.wait(60) == 0
        assert stranger.poll() is None
        assert not alive(int(wait_for(tmp_path / "daemon")))
        assert (tmp_path / "logs" / "reward.txt").read_text() == "1.0\n"
    finally:
        stranger.kill()
        stranger.wait()
