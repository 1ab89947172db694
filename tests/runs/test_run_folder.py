from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from workbench.runs import Run, RunError, RunLocked, find_run, list_runs, new_run, open_run


def test_a_new_run_says_what_it_stood_on():
    run = new_run("40_try", {"profile": "micro", "seed": 7, "limit": math.inf})
    params = json.loads((run.folder / "params.json").read_text())
    assert (params["seed"], params["notebook"]) == (7, "40_try")
    assert params["versions"]["python"].startswith(sys.version.split()[0])
    assert set(params["revision"]) in ({"git", "dirty"}, {"package"})
    assert params["machine"]["cpus"] >= 1
    assert run.params["parameters"]["limit"] == math.inf
    assert {p.name for p in run.folder.iterdir() if p.is_dir()} == {"tasks", "traces", "figures", "tables"}
    assert run.folder.parent.name == "40_try"


def test_a_run_opens_as_frames():
    with new_run("40_try") as run:
        run.record("trial", {"reward": 0.5, "usd": math.nan}, id="a")
        run.record("trial", {"reward": 1.0, "usd": 0.25}, id="b")
        frame = open_run(run.folder).frame("trial")
        assert list(frame["reward"]) == [0.5, 1.0]
        assert math.isnan(frame["usd"][0])
        assert str(frame["time"].dt.tz) == "UTC"
        assert run.frame("nothing").empty
        assert run.kinds() == {"attempt": 1, "trial": 2}


def test_current_makes_a_run_or_takes_the_runners(monkeypatch):
    run = Run.current("40_try", profile="smoke", parameters={"seed": 1})
    assert run.profile == "smoke"
    run.close()
    monkeypatch.setenv("WORKBENCH_RUN", str(run.folder))
    again = Run.current("40_try", profile="micro")
    assert again.folder == run.folder
    assert again.profile == "smoke"  # a run keeps its parameters
    with pytest.raises(RunError, match="runner opened a run of '40_try'"):
        Run.current("10_other")
    again.close()
    assert len(run.rows("attempt")) == 2


def test_current_resumes_in_jupyterlab():
    run = Run.current("40_try")
    run.once("work", "a", lambda: {"x": 1})
    run.close()
    with Run.current("40_try", resume="latest") as again:
        assert again.folder == run.folder
        assert again.once("work", "a", lambda: {"x": 2})["x"] == 1


def test_a_cell_run_twice_is_one_writer():
    first = Run.current("40_try")
    assert open_run(first.folder).begin() is first
    assert len(first.rows("attempt")) == 1
    first.close()


def test_another_process_cannot_write_a_living_run():
    run = new_run("40_try").begin()
    code = "import sys; from workbench.runs import open_run; open_run(sys.argv[1]).record('x', {})"
    done = subprocess.run([sys.executable, "-c", code, str(run.folder)], capture_output=True, text=True, check=False)
    assert "RunLocked" in done.stderr
    assert run.kinds() == {"attempt": 1}
    run.close()
    subprocess.run([sys.executable, "-c", code, str(run.folder)], check=True)
    assert run.kinds() == {"attempt": 2, "x": 1}


def test_runs_are_found_by_what_people_type():
    a, b = new_run("40_try"), new_run("10_other")
    assert find_run(a.folder) == a.folder
    assert find_run(a.id) == a.folder
    assert find_run(f"10_other/{b.id}") == b.folder
    assert find_run("latest", "10_other") == b.folder
    assert set(list_runs()) == {a.folder, b.folder}
    with pytest.raises(RunError, match="no run 'zzz'"):
        find_run("zzz")
    with pytest.raises(RunError, match="several runs"):
        find_run(a.id[:6])


def test_a_folder_without_params_is_no_run(tmp_path):
    with pytest.raises(RunError, match=r"no params\.json"):
        open_run(tmp_path)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../../x"])
def test_names_cannot_leave_the_run_folder(name):
    with pytest.raises(RunError, match="plain name"):
        new_run("40_try").path("traces", name)


def test_state_without_a_runner_and_after_a_kill():
    run = new_run("40_try")
    assert run.state()["state"] == "interactive"
    run.write_status("running")
    assert run.state()["state"] == "killed"
    run.begin()
    assert run.state() == {"state": "running", "exit_code": None, "message": "", "alive": True}
    run.close()


def test_run_locked_is_exported():
    assert issubclass(RunLocked, RuntimeError)
