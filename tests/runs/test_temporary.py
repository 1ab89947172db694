"""What a killed process leaves in the temporary folder goes; what belongs to anybody else stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from workbench.runs.temporary import prefix, sweep_temporary

CHILD = """
import sys, tempfile, time
from workbench.runs.temporary import prefix
print(tempfile.mkdtemp(prefix=prefix("call")), flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def child(place):
    """(a living process, the folder that it made)."""
    env = {**os.environ, "TMPDIR": str(place)}
    made = subprocess.Popen([sys.executable, "-c", CHILD], env=env, stdout=subprocess.PIPE, text=True)
    yield made, place / made.stdout.readline().strip().rpartition("/")[2]
    made.kill()
    made.wait()


def test_a_killed_process_loses_its_folders_and_a_living_one_does_not(child):
    process, folder = child
    (folder / "task" / "tests").mkdir(parents=True)
    (folder / "task" / "tests" / "test.sh").write_text("true\n")
    assert sweep_temporary() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert sweep_temporary() == [f"temporary folder {folder}"]
    assert not folder.exists()


def test_the_command_sweeps_too(child, capsys):
    from workbench.cli import main

    process, folder = child
    process.kill()
    process.wait()
    main(["clean", "--backend", "bubblewrap"])  # its exit code is the back end's, which this machine may not have
    assert f"temporary: temporary folder {folder}" in capsys.readouterr().out
    assert not folder.exists()


def test_a_pid_that_was_given_out_again_is_no_owner(place):
    pid, _, rest = prefix("episode").removeprefix("workbench-episode-").partition(".")
    start, _, machine = rest.partition(".")
    other = place / f"workbench-episode-{pid}.{int(start) - 1}.{machine}abc"
    other.mkdir()
    assert sweep_temporary() == [f"temporary folder {other}"]


def test_what_nobody_here_can_judge_stays(place):
    _, _, boot, space = prefix("call").removeprefix("workbench-call-").rstrip("-").split(".")
    mine = place / f"{prefix('call')}abc"
    names = [f"workbench-call-999999999.1.{boot[::-1]}x.{space}-abc", f"workbench-call-999999999.1.{boot}.1{space}-abc",
             "workbench-call-abcdefgh", "workbench-episode-", "somebody-999999999.1.0.0-abc"]  # fmt: skip
    for name in (mine.name, *names):
        (place / name).mkdir()
    (place / f"workbench-call-999999999.1.{boot}.{space}-file").write_text("not a folder")
    assert sweep_temporary() == []
    assert len(list(place.iterdir())) == len(names) + 2


def test_a_link_is_not_followed(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("x")
    _, _, boot, space = prefix("call").removeprefix("workbench-call-").rstrip("-").split(".")
    dead = place / f"workbench-call-999999999.1.{boot}.{space}-abc"
    (place / f"workbench-call-999999999.1.{boot}.{space}-link").symlink_to(elsewhere)
    dead.mkdir()
    (dead / "way-out").symlink_to(elsewhere)
    assert sweep_temporary() == [f"temporary folder {dead}"]
    assert (elsewhere / "precious").exists()
