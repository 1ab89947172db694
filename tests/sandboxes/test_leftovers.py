"""Nothing outlives a run, however the run ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.runs.temporary import start_time
from workbench.sandboxes import state_dir
from workbench.sandboxes.bubblewrap import Bubblewrap

# A host process with a used sandbox (daemons, a locked folder), an idle slot, and a command in progress.
HOST = """
import sys, threading
from pathlib import Path
from workbench.sandboxes import get_backend
backend = get_backend("bubblewrap")
image = backend.build(Path(sys.argv[1]))
box, other = backend.start(image, label="run-7"), backend.start(image)
other.stop()
box.exec("mkdir -p /app/locked/in; chmod 000 /app/locked; sleep 1000 & setsid sh -c 'trap \\"\\" TERM HUP; sleep 1001' & true")
print(backend.host.name, flush=True)
END
"""
# Whoever runs the tests may ignore these signals (nohup, a shell's background job), and children inherit that.
DEFAULT_SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
"""
ENDINGS = {
    "waits": "box.exec('sleep 1002')",
    "returns": "",
    "raises": "raise RuntimeError('on purpose')",
    "exits": "sys.exit(3)",
    "forks": "import os, time; os.fork() or (os.closerange(0, 3), time.sleep(8), os._exit(0)); box.exec('sleep 1002')",
}


@pytest.fixture(scope="module")
def backend():
    with Bubblewrap() as made:
        yield made


@pytest.fixture(scope="module")
def environment(backend, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    (folder / "Dockerfile").write_text("FROM python:3.13-slim\nWORKDIR /app\n")
    backend.build(folder)
    return folder


@contextlib.contextmanager
def host(environment: Path, ending: str):
    """A host process of its own; (process, its name)."""
    code = DEFAULT_SIGNALS + HOST.replace("END", ENDINGS[ending])
    process = subprocess.Popen(
        [sys.executable, "-c", code, environment], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        name = process.stdout.readline().strip()
        assert name, process.stderr.read()
        yield process, name
    finally:
        process.kill()
        process.communicate()


def processes(name: str) -> list[str]:
    """Command lines of everything that belongs to host `name`: wardens carry it, bwrap and its children follow them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if name in line and f"{os.getpid()}" != folder.name:
                found.append(line)
    return found


def groups(name: str) -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").rglob(f"workbench-{name}") if path.is_dir()]


def gone(name: str, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while processes(name) and time.monotonic() < end:
        time.sleep(0.02)
    return not processes(name)


@pytest.mark.parametrize("ending", ["returns", "raises", "exits"])
def test_a_host_that_ends_leaves_nothing_at_all(environment, ending):
    with host(environment, ending) as (process, name):
        process.wait(60)
        assert gone(name)
        assert not (state_dir() / "hosts" / name).exists()
        assert groups(name) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_host_that_is_killed_takes_its_processes_along(environment, backend, number):
    with host(environment, "waits") as (process, name):
        assert any("sleep 1002" in line for line in all_lines())
        assert processes(name)
        process.send_signal(number)
        process.wait(30)
        assert gone(name), processes(name)
        removed = backend.clean()
        folder = state_dir() / "hosts" / name
        assert not folder.exists()
        assert groups(name) == []
        if number == signal.SIGKILL:
            assert any(str(folder) in line for line in removed) or not removed, "another process may have been faster"


def all_lines() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_a_fork_of_the_host_keeps_nothing_alive(environment, backend):
    with host(environment, "forks") as (process, name):
        time.sleep(0.2)
        process.kill()
        process.wait(30)
        assert gone(name, 5.0)


def test_a_stopped_warden_is_found_and_removed(environment, backend):
    with host(environment, "waits") as (process, name):
        wardens = [pid for pid in map(int, (p.name for p in Path("/proc").glob("[0-9]*"))) if is_warden(pid, name)]
        assert wardens
        for pid in wardens:
            os.kill(pid, signal.SIGSTOP)
        process.kill()
        process.wait(30)
        time.sleep(0.1)
        assert processes(name), "they cannot notice"
        backend.clean()
        assert gone(name)
        assert not (state_dir() / "hosts" / name).exists()
        assert groups(name) == []


def is_warden(pid: int, name: str) -> bool:
    try:
        return name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def test_the_living_are_left_alone(environment, backend):
    with host(environment, "waits") as (_, name), backend.start(backend.build(environment)) as mine:
        before = len(processes(name))
        assert not [line for line in backend.clean() if name in line]
        assert len(processes(name)) == before
        assert (state_dir() / "hosts" / name).is_dir()
        assert mine.exec("echo alive").stdout == "alive\n"


def test_what_a_new_back_end_found_is_told_by_its_clean(backend, monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))  # where no other process cleans up first
    with Bubblewrap() as first:
        record = (first.host.folder / "host.json").read_text()
        dead = first.host.folder.with_name(f"{os.getpid()}-1")
        dead.mkdir()
        (dead / "host.json").write_text(record)
    with Bubblewrap() as later:
        assert not dead.exists()
        assert any(str(dead) in line for line in later.clean())
        assert later.clean() == []


def test_only_wardens_are_ended_and_not_who_has_the_name_of_their_host_among_its_words(environment, backend):
    with host(environment, "waits") as (process, name):
        stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
        try:
            process.kill()
            process.wait(30)
            backend.clean()
            assert not (state_dir() / "hosts" / name).exists()
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()


def test_a_recycled_pid_does_not_protect_a_dead_host(backend):
    folder = backend.host.folder.with_name(f"{os.getpid()}-1")
    folder.mkdir()
    (folder / "box-1").mkdir()
    (folder / "host.json").write_text((backend.host.folder / "host.json").read_text())
    assert start_time(os.getpid()) != "1"
    assert f"folder {folder}" in backend.clean()
    assert not folder.exists()


def test_a_process_that_has_ended_unasked_after_is_no_owner():
    with subprocess.Popen(["true"]) as process:  # a zombie until it is asked after
        deadline = time.monotonic() + 30
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert start_time(process.pid) is None
    assert start_time(os.getpid()) is not None


def test_hosts_of_another_container_are_not_judged(backend):
    folder = backend.host.folder.with_name("999999999-1")
    folder.mkdir()
    record = (backend.host.folder / "host.json").read_text()
    (folder / "host.json").write_text(record.replace("pid:[", "pid:[9"))
    try:
        assert not [line for line in backend.clean() if str(folder) in line]
        assert folder.is_dir()
    finally:
        (folder / "host.json").write_text(record)
        backend.clean()
    assert not folder.exists()


def test_a_killed_build_leaves_no_layer_that_looks_whole(backend, tmp_path):
    (tmp_path / "Dockerfile").write_text(f"FROM python:3.13-slim\nRUN echo {tmp_path} > /half && sleep 20\n")
    layers = set((state_dir() / "layers").iterdir())
    code = "import sys; from pathlib import Path; from workbench.sandboxes import get_backend\n"
    code += "print('building', flush=True); get_backend().build(Path(sys.argv[1]))"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(1.0)
        process.kill()
    made = set((state_dir() / "layers").iterdir()) - layers
    assert not [path for path in made if (path / "root/half").exists()]
    (tmp_path / "Dockerfile").write_text(f"FROM python:3.13-slim\nRUN echo {tmp_path} > /half && sleep 0\n")
    assert backend.build(tmp_path).key, "the dead builder's lock is free"
