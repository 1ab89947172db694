"""Real kernels: each of these starts one, which takes about two seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench import paths
from workbench.runs import find_run, open_run
from workbench.runs.leftovers import sweep
from workbench.runs.notebooks import NotebookError, resolve_notebook, resume_run, run_notebook
from workbench.runs.parameters import ParameterError

pytest.importorskip("papermill", reason="the notebook extra is not installed")

PARAMETERS = 'profile: str = "micro"  # which\nn: int = 2  # how many\nfail: bool = False'
START = 'from workbench.runs import Run, progress, say\nrun = Run.current("50_try", profile=profile)'


def test_a_notebook_runs_into_its_folder_with_live_lines(notebook, tmp_path):
    path = notebook(
        PARAMETERS,
        START,
        'import sys\nprint("hello \\x1b[31m from a cell")\nfor i in progress(range(n), "things"):\n    run.record("thing", {"i": i})',
        'say("nearly there")\nprint(sys.executable)\nn',
    )
    lines = []
    assert run_notebook(path, {"n": "3"}, show=lines.append) == 0
    run = open_run(find_run("latest"))
    assert run.folder.parent.name == "50_try"
    assert [r["i"] for r in run.rows("thing")] == [0, 1, 2]
    assert run.params["parameters"] == {"profile": "micro", "n": 3, "fail": False}
    assert run.state()["state"] == "done"
    assert any(line.startswith("[things] 3/3 100%") for line in lines)
    assert "nearly there" in lines
    assert any("hello" in line and "\x1b" not in line for line in lines)
    assert sys.executable in lines
    executed = json.loads((run.folder / "executed.ipynb").read_text())
    assert executed["cells"][-1]["outputs"][-1]["data"]["text/plain"] in ("3", ["3"])


def test_the_kernel_is_this_interpreter_whatever_is_registered(notebook, tmp_path, monkeypatch):
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/bin/false"], "display_name": "broken", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    (tmp_path / "home").touch()  # a home that nothing can be written to, for root too
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = notebook(PARAMETERS, f"import sys\nassert sys.executable == {sys.executable!r}")
    assert run_notebook(path, show=lambda line: None) == 0


def test_unknown_parameters_start_nothing(notebook, tmp_path):
    with pytest.raises(ParameterError, match="did you mean 'profile'"):
        run_notebook(notebook(PARAMETERS), {"profil": "micro"})
    assert not (tmp_path / "results").exists()


def test_a_failed_cell_is_named_and_resume_does_nothing_twice(notebook, tmp_path):
    flag = tmp_path / "flag"
    path = notebook(
        PARAMETERS,
        START,
        'for i in range(n):\n    run.once("thing", str(i), lambda: {"did": run.record("did", {"i": i})["id"]})',
        f"from pathlib import Path\n# no flag, no luck\nassert Path({str(flag)!r}).exists(), 'no flag'",
        'run.record("end", {})',
    )
    lines = []
    assert run_notebook(path, {"n": 2}, show=lines.append) == 1
    text = "\n".join(lines)
    assert "Failed in cell 5 of 6 (from pathlib import Path)" in text
    assert "AssertionError: no flag" in text
    run = open_run(find_run("latest"))
    assert run.state()["state"] == "failed"
    flag.touch()
    # found by name below NOTEBOOKS in real life
    original, paths.NOTEBOOKS = paths.NOTEBOOKS, path.parent
    try:
        assert resume_run(run.folder, show=lines.append) == 0
    finally:
        paths.NOTEBOOKS = original
    assert run.kinds() == {"attempt": 2, "thing": 2, "did": 2, "end": 1}
    assert (run.folder / "executed.attempt1.ipynb").exists()
    assert run.state()["state"] == "done"


def test_a_killed_kernel_is_reported_in_seconds(notebook):
    path = notebook(PARAMETERS, "import os, signal, time\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)")
    lines, started = [], time.monotonic()
    assert run_notebook(path, show=lines.append) == 1
    assert time.monotonic() - started < 30
    assert any("The kernel died in cell 3 of 3 (import os, signal, time)" in line for line in lines)


RUNNER = """
import sys
from workbench.runs.leftovers import sweep
from workbench.runs.notebooks import run_notebook
sys.exit(run_notebook(sys.argv[1]))
"""


def _start(path: Path) -> tuple[subprocess.Popen, Path]:
    process = subprocess.Popen([sys.executable, "-c", RUNNER, str(path)], stderr=subprocess.PIPE, text=True)
    marker = path.with_suffix(".pid")
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return process, marker


def _gone(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def sleeper(notebook, tmp_path):
    return notebook(
        PARAMETERS,
        START,
        f"import os, time\nfrom pathlib import Path\nPath({str(tmp_path / '50_try.pid')!r}).write_text(str(os.getpid()))\n"
        "try:\n    time.sleep(600)\nfinally:\n    run.record('cleaned', {})",
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_cell_cleanly(sleeper, number, code):
    process, marker = _start(sleeper)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"Stopped by {number.name} in cell 4 of 4" in err
    assert _gone(int(marker.read_text()))
    run = open_run(find_run("latest"))
    assert run.kinds() == {"attempt": 1, "cleaned": 1}  # the cell's `finally` ran
    assert run.state() == {"state": "interrupted", "exit_code": code, "message": run.state()["message"], "alive": False}


def test_a_killed_runner_takes_its_kernel_along(sleeper):
    process, marker = _start(sleeper)
    process.kill()
    process.communicate()
    assert _gone(int(marker.read_text()))
    assert open_run(find_run("latest")).state()["state"] == "killed"
    assert len(sweep()) >= 1  # the folder of the kernel's sockets
    assert sweep() == []


def test_two_runners_never_write_one_run(sleeper):
    process, _ = _start(sleeper)
    try:
        run = find_run("latest")
        original, paths.NOTEBOOKS = paths.NOTEBOOKS, sleeper.parent
        try:
            with pytest.raises(RuntimeError, match="is being written by process"):
                resume_run(run)
        finally:
            paths.NOTEBOOKS = original
    finally:
        process.terminate()
        process.communicate()


def test_the_profile_variable_reaches_a_notebook_that_was_given_none(notebook, monkeypatch):
    path = notebook(PARAMETERS, "import os\nassert profile == 'smoke'\nassert 'WORKBENCH_PROFILE' not in os.environ")
    monkeypatch.setenv("WORKBENCH_PROFILE", "smoke")
    assert run_notebook(path, show=lambda line: None) == 0
    assert open_run(find_run("latest")).profile == "smoke"


def test_from_inside_an_event_loop_and_four_at_once(notebook):
    import asyncio

    path = notebook(PARAMETERS, START, "run.record('x', {'n': n})")
    codes: list[int] = []

    def work(n: int) -> None:
        codes.append(run_notebook(path, {"n": n}, show=lambda line: None))

    async def inside() -> None:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        [t.start() for t in threads]
        work(3)
        [t.join() for t in threads]

    asyncio.run(inside())
    assert codes == [0, 0, 0, 0]
    assert len(list(Path(os.environ["WORKBENCH_RESULTS"]).glob("50_try/*"))) == 4


def test_notebooks_are_found_by_name_and_number(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    for name in ("00_check_machine", "40_flywheel"):
        (tmp_path / f"{name}.ipynb").touch()
    assert resolve_notebook("40_flywheel") == tmp_path / "40_flywheel.ipynb"
    assert resolve_notebook("40") == tmp_path / "40_flywheel.ipynb"
    monkeypatch.chdir(tmp_path)
    assert resolve_notebook("elsewhere/40_flywheel.ipynb") == tmp_path / "40_flywheel.ipynb"
    with pytest.raises(NotebookError, match="did you mean 40_flywheel"):
        resolve_notebook("flywheel")


def test_an_unknown_profile_is_wrong_usage_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path))
    with pytest.raises(ParameterError, match=r"no profile 'micr': .*did you mean 'micro'"):
        run_notebook("00_check_machine", {"profile": "micr"})
    assert not list(tmp_path.rglob("params.json"))
