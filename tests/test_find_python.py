"""scripts/find_python.sh: a Python that works, past shims that do not, or the reason why each one will not do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "find_python.sh"
SHIM = "#!/bin/sh\necho 'shim: {name}: command not found' >&2\nexit 127\n"


@pytest.fixture
def find(tmp_path):
    """Runs the script in a home of its own, with failing shims in front of everything on PATH."""
    shims = tmp_path / "shims"
    shims.mkdir()
    for name in ("python3.12", "python3.13", "python3.14", "python3", "python"):
        (shims / name).write_text(SHIM.format(name=name))
        (shims / name).chmod(0o755)

    def run(**env):
        env = {"HOME": str(tmp_path), "PATH": f"{shims}:{os.defpath}", **env}
        return subprocess.run(["sh", str(SCRIPT)], env=env, capture_output=True, text=True)

    return run


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_real_python_behind_a_failing_shim_is_found(find, tmp_path):
    executable(tmp_path / ".pyenv/versions/3.12.9/bin/python3.12", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    done = find()
    assert done.stdout.strip() == os.path.realpath(sys.executable), done.stderr
    assert done.returncode == 0


def test_the_named_one_that_is_broken_is_told_with_its_reason(find, tmp_path):
    broken = executable(tmp_path / "broken", "#!/bin/sh\necho 'libpython3.12.so.1.0: cannot open' >&2\nexit 127\n")
    done = find(PYTHON=str(broken), PYENV_ROOT=str(tmp_path / "none"))
    if done.returncode == 0:
        pytest.skip("this machine has a working Python >= 3.12 in /opt or /usr/local, which the script rightly finds")
    assert f"{broken}: libpython3.12.so.1.0: cannot open" in done.stderr
    assert "python3.13: shim: python3.13: command not found" in done.stderr
    assert "make env PYTHON=" in done.stderr


def test_one_that_is_too_old_is_told_its_version(find, tmp_path):
    text = f'#!/bin/sh\n[ "$1" = -c ] && shift && code="$1"\nexec {sys.executable} -c "import sys; sys.version_info = (3, 9); $code"\n'
    old = executable(tmp_path / "old", text)
    done = find(PYTHON=str(old), PYENV_ROOT=str(tmp_path / "none"))
    if done.returncode == 0:
        pytest.skip("this machine has a working Python >= 3.12 in /opt or /usr/local, which the script rightly finds")
    assert f"{old}: is Python 3.9" in done.stderr
