"""Batches with real kernels, real kills and real signals."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from workbench.runs import batch as batches
from workbench.runs.batch import default_jobs, find_batch, new_batch, open_batch, run_grid, work
from workbench.runs.batch_claims import Claims, done_by_other_code, remove_unborn
from workbench.runs.folder import RunError, list_runs, new_run, open_run
from workbench.runs.journal import FileLock, RunLocked, read_journal
from workbench.runs.notebooks import resume_run
from workbench.runs.parameters import ParameterError

pytest.importorskip("papermill", reason="the notebook extra is not installed")

PARAMETERS = 'profile: str = "smoke"\nseed: int = 0\nflag: str = ""'
START = 'from workbench.runs.folder import Run\nrun = Run.current("50_try", profile=profile)'
UNIT = 'run.once("unit", "only", lambda: {"seed": seed})'
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def frozen(tmp_path) -> dict[str, str]:
    """An environment whose `workbench` is a copy: a change of the code meanwhile would make every run a new one."""
    home = tmp_path / "frozen"
    shutil.copytree(ROOT / "workbench", home / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    shutil.copy(ROOT / "pyproject.toml", home)
    env = {**os.environ, "PYTHONPATH": str(home), "PYTHONSAFEPATH": "1"}  # else `-m` takes the current folder's first
    asked = [sys.executable, "-c", "import workbench; print(workbench.__file__)"]
    told = subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout
    assert told.startswith(str(home)), f"{told.strip()} is not the copy"
    return env


@pytest.fixture
def one_code(monkeypatch):
    """The same for batches in this process."""
    monkeypatch.setattr("workbench.runs.digest.package_digest", lambda: "one")


def runs_of(notebook: str = "50_try") -> list:
    return [open_run(f) for f in list_runs() if f.parent.name == notebook]


def test_side_by_side_and_not_again_what_is_done(notebook, one_code, capfd):
    path = notebook(PARAMETERS, START, UNIT)
    batch = run_grid(path, {"seed": range(2)}, jobs=2)
    assert (batch.exit_code, batch.counts()["done"], batch.counts()["skipped"]) == (0, 2, 0)
    assert {r.params["parameters"]["seed"] for r in runs_of()} == {0, 1}
    assert "2/2 100%" in capfd.readouterr().err
    more = run_grid(path, {"seed": [0, 1, 2]}, jobs=2)
    assert (more.exit_code, more.counts()["done"], more.counts()["skipped"], len(runs_of())) == (0, 3, 2, 3)
    assert list(more.frame()["seed"].sort_values()) == [0, 1, 2]
    assert "3 of 3 runs done (2 before)" in more.summary()
    again = run_grid(path, {"seed": [0]}, again=True)
    assert (again.counts()["skipped"], len(runs_of())) == (0, 4)
    assert run_grid(path, {"seed": [0]}, jobs=1).counts()["skipped"] == 1
    work(opened := open_batch(again.id))  # its own run counts, also of a batch that was asked to do all again
    assert (opened.counts()["skipped"], len(runs_of())) == (1, 4)


def test_other_code_is_another_run(notebook, monkeypatch):
    path, folders = notebook(PARAMETERS), set()
    for code, told in (("one", 0), ("two", 1), ("one", 0)):
        monkeypatch.setattr("workbench.runs.digest.package_digest", lambda code=code: code)
        points = new_batch(path, {"seed": [0]}).points
        assert done_by_other_code("50_try", points) == told
        run, lock, state = Claims("50_try", "batch-x").take(points[0])
        folders.add(run.folder)
        run.write_status("done", 0)
        if lock:
            lock.release()
    assert (len(folders), state) == (2, "done")


def test_a_failure_and_a_killed_kernel_stop_nothing_else(notebook, one_code, tmp_path, capfd):
    kill = "import os, signal\nif seed == 1 and not os.path.exists(flag):\n    os.kill(os.getpid(), signal.SIGKILL)"
    fail = "assert seed != 2 or os.path.exists(flag), 'unlucky'"
    flag = tmp_path / "flag"
    path = notebook(PARAMETERS, START, kill, fail, UNIT)
    batch = run_grid(path, {"seed": [0, 1, 2]}, {"flag": str(flag)}, jobs=2)
    assert (batch.exit_code, batch.counts()["done"], batch.counts()["failed"]) == (1, 1, 2)
    assert "seed=1: The kernel died in cell 4 of 6 (import os, signal)" in batch.summary()
    assert "seed=2: Failed in cell 5 of 6 (assert seed != 2" in batch.summary()
    assert "cell 1 of 6" in capfd.readouterr().err, "progress counts cells as the messages do"
    flag.touch()
    before = {r.folder for r in runs_of()}
    work(opened := open_batch(batch.id), 2)
    assert (opened.exit_code, opened.counts()["skipped"]) == (0, 1)
    assert {r.folder for r in runs_of()} == before
    assert all(r.kinds()["unit"] == 1 for r in runs_of())
    records = list(read_journal(batch.path))
    assert Counter(r["kind"] for r in records) == {"batch": 1, "attempt": 2, "run": 3 * 2 + 2 * 2 + 1}
    latest = {r["id"]: r["state"] for r in records if r["kind"] == "run"}
    assert list(latest.values()) == ["done"] * 3


def test_a_run_that_somebody_has_is_waited_for(notebook, one_code, monkeypatch, capfd):
    monkeypatch.setattr(batches, "AGAIN_SECONDS", 0.05)
    batch = new_batch(notebook(PARAMETERS, START, UNIT), {"seed": [7]})
    run, lock, state = Claims("50_try", "batch-other").take(batch.points[0])
    assert state == "ours"
    assert Claims("50_try", batch.id).take(batch.points[0])[2] == "busy"
    with pytest.raises(RunLocked):
        resume_run(run.folder)

    def finish() -> None:
        wait_for(lambda: any(r["kind"] == "attempt" for r in read_journal(batch.path)))
        time.sleep(0.3)
        run.write_status("done", 0)
        lock.release()

    other = threading.Thread(target=finish)
    other.start()
    work(batch)
    other.join()
    assert (batch.counts()["skipped"], len(runs_of())) == (1, 1)
    assert "waits for another process" in capfd.readouterr().err


def test_a_run_that_was_stopped_is_gone_on_with_by_any_batch(notebook, one_code):
    point = new_batch(notebook(PARAMETERS), {"seed": [7]}).points[0]
    run, lock, _ = Claims("50_try", "batch-a").take(point)
    run.write_status("running")
    lock.release()
    assert run.state()["state"] == "killed"
    other, lock, state = Claims("50_try", "batch-b").take(point)
    lock.release()
    assert (other.folder, state) == (run.folder, "ours")
    mine, lock, _ = Claims("50_try", "batch-b", only_mine=True).take(point)
    lock.release()
    assert mine.folder != run.folder


def test_what_a_kill_left_before_a_run_was_born_is_removed_and_nothing_else(tmp_path):
    home = tmp_path / "results" / "n"
    kept = [new_run("n", {}).folder]
    for name, old, file in (
        ("20200101-000000-0000", True, ""),
        ("20200101-000000-0001", False, ""),
        ("a-b-c", True, "x"),
    ):
        (home / name / "tasks").mkdir(parents=True)
        if file:
            (home / name / file).touch()
        if old:
            os.utime(home / name, (0, 0))
        if file or not old:
            kept.append(home / name)
    remove_unborn(home)
    assert sorted(home.iterdir()) == sorted(kept)


def test_two_processes_never_work_on_one_batch(notebook, one_code):
    batch = new_batch(notebook(PARAMETERS), {"seed": [1]})
    lock = FileLock(batch.path.with_suffix(".lock"))
    with pytest.raises(RunLocked):
        work(batch)
    lock.release()


def test_batches_are_found_and_a_wrong_grid_makes_none(notebook):
    path = notebook(PARAMETERS)
    with pytest.raises(ParameterError):
        new_batch(path, {"sed": [1]})
    assert not runs_of()
    with pytest.raises(RunError, match="is no batch; the last are none"):
        find_batch("batch-1")
    first, second = new_batch(path, {"seed": [1]}), new_batch(path, {"seed": [1]})
    assert find_batch(first.id) == first.path == find_batch(first.path)
    with pytest.raises(RunError, match="means several batches"):
        find_batch("batch-")
    assert open_batch(second.id).points == second.points


def test_jobs_follow_cores_memory_and_runs(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(batches, "memory_bytes", lambda: 17 * 2**30)
    assert [default_jobs(n) for n in (1, 3, 100)] == [1, 3, 4]
    monkeypatch.setattr(batches, "memory_bytes", lambda: 2**30)
    assert default_jobs(9) == 1


# --- as a command -----------------------------------------------------------------------------------------------------


def command(env: dict[str, str], *arguments: object, **options) -> subprocess.Popen:
    argv = [sys.executable, "-m", "workbench.cli", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen(argv, env=env, start_new_session=True, **pipes)


def wait_for(what, seconds: float = 240.0):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, f"{what} did not come in {seconds} s"
        time.sleep(0.05)
    return found


def done_runs(notebook: str) -> int:
    return sum(r.state()["state"] == "done" for r in runs_of(notebook))


def kill_when(process: subprocess.Popen, notebook: str, done: int) -> None:
    wait_for(lambda: process.poll() is not None or done_runs(notebook) >= done, 3000)
    assert process.poll() is None, f"it ended before it could be killed: {process.returncode}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def with_seeds(tmp_path: Path) -> Path:
    """`00_check_machine` with a parameter that tells its runs apart."""
    data = json.loads((ROOT / "notebooks" / "00_check_machine.ipynb").read_text())
    cell = next(c for c in data["cells"] if "parameters" in c["metadata"].get("tags", []))
    cell["source"] = ["seed: int = 0  # tells runs apart\n", *cell["source"]]
    path = tmp_path / "00_check_machine.ipynb"
    path.write_text(json.dumps(data))
    return path


def check_all_there(notebook: str, runs: int) -> None:
    found = runs_of(notebook)
    assert Counter(r.params["parameters"]["seed"] for r in found) == dict.fromkeys(range(runs), 1)
    assert {r.state()["state"] for r in found} == {"done"}
    assert all((r.folder / "executed.ipynb").exists() and list((r.folder / "tables").iterdir()) for r in found)


def grid_arguments(path: Path, runs: int) -> list[object]:
    return ["run", path, "-p", "profile", "smoke", "--jobs", "2", "--grid", "seed", *range(runs)]


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def test_six_runs_killed_once(frozen, notebook):
    work = 'run.once("unit", str(seed), lambda: {"seed": seed})\nrun.path("tables", "t.csv").write_text("seed\\n1\\n")'
    path = notebook(PARAMETERS, START, work)
    arguments = grid_arguments(path, 6)
    kill_when(command(frozen, *arguments, **QUIET), "50_try", 2)
    last = command(frozen, *arguments)
    out, err = last.communicate(timeout=240)
    assert last.returncode == 0, err
    assert "6 of 6 runs done" in out
    check_all_there("50_try", 6)
    assert all(r.kinds()["unit"] == 1 for r in runs_of())


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_hundred_runs_killed_twice(frozen, tmp_path):
    path = with_seeds(tmp_path)
    arguments = grid_arguments(path, 200)
    for low, high in ((5, 90), (100, 190)):
        kill_when(command(frozen, *arguments, **QUIET), "00_check_machine", random.randint(low, high))
    last = command(frozen, *arguments, **QUIET)
    assert last.wait(7000) == 0
    check_all_there("00_check_machine", 200)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_all_kernels_and_leaves_runs_to_go_on_with(frozen, notebook, tmp_path, number):
    flag = tmp_path / "go"
    wait = (
        "import os, time\nfrom pathlib import Path\n"
        f"Path({str(tmp_path)!r}, f'pid{{seed}}').write_text(str(os.getpid()))\n"
        "while not Path(flag).exists():\n    time.sleep(0.1)"
    )
    path = notebook(PARAMETERS, START, wait, UNIT)
    pids = lambda: [p for p in tmp_path.glob("pid*") if p.read_text()]  # noqa: E731
    process = command(frozen, "run", path, "-p", "flag", flag, "--grid", "seed", 0, 1, 2, "-j", 2)
    wait_for(lambda: process.poll() is not None or len(pids()) == 2)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    assert "0 of 3 runs done, 2 interrupted, 1 left" in out
    for pid in pids():
        wait_for(lambda pid=int(pid.read_text()): gone(pid), 20)
    flag.touch()
    id = out.partition(":")[0]
    last = command(frozen, "resume", id, "--json")
    out, err = last.communicate(timeout=240)
    assert last.returncode == 0, err
    *rows, total = [json.loads(line) for line in out.splitlines()]
    assert (len(rows), total["done"], total["batch"]) == (3, 3, id)
    assert len(runs_of()) == 3
    assert sorted(r.kinds()["attempt"] for r in runs_of()) == [1, 2, 2]


def gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"
