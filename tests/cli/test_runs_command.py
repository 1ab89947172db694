"""`workbench run --grid`, `resume latest` and `runs` as a shell sees them."""

from __future__ import annotations

import json

import pytest

from workbench.runs.folder import new_run


@pytest.fixture
def three():
    """Three runs of a real notebook's name, oldest first: failed, done, done."""
    runs = []
    for seed, state in enumerate(("failed", "done", "done")):
        run = new_run("10_generate", {"profile": "smoke", "seed": seed}, facts={"batch": f"batch-{min(seed, 1)}"})
        target = run.folder.with_name(f"2026010{seed + 1}-000000-0000")
        run.folder.rename(target)
        params = json.loads((target / "params.json").read_text()) | {"run_id": target.name}
        (target / "params.json").write_text(json.dumps(params))
        (target / "tables" / "rates.csv").write_text(f"share\n0.{seed + 1}\n")
        (target / "status.json").write_text(json.dumps({"state": state, "exit_code": 0, "message": ""}))
        runs.append(target)
    return runs


def ids(done) -> list[str]:
    return [json.loads(line)["run"].rpartition("/")[2] for line in done.stdout.splitlines()]


def test_runs_are_filtered(workbench, three):
    names = [folder.name for folder in three]
    assert ids(workbench("runs", "--json")) == names[::-1]
    assert ids(workbench("runs", "10_generate", "--state", "done", "--json")) == [names[2], names[1]]
    assert ids(workbench("runs", "-p", "seed", "1", "--json")) == [names[1]]
    assert ids(workbench("runs", "--batch", "batch-1", "--last", "1", "--json")) == [names[2]]
    none = workbench("runs", "--state", "killed")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no runs are like that" in none.stderr


def test_runs_are_compared(workbench, three):
    done = workbench("runs", "compare", three[0], three[1].name)
    assert done.returncode == 0, done.stderr
    cells = [line.split() for line in done.stdout.splitlines()]
    assert ["seed", "0", "1"] in cells
    assert ["rates:", "share", "0.1", "0.2"] in cells
    assert ["state", "failed", "done"] in cells
    assert "equal: rates: rows 1" in done.stdout
    rows = [json.loads(line) for line in workbench("runs", "compare", "batch-1", "--json").stdout.splitlines()]
    assert [row["number"]["rates: share"] for row in rows] == [0.2, 0.3]
    assert [row["parameter"] for row in rows] == [{"seed": 1}, {"seed": 2}]


def test_a_run_is_opened(workbench, three, tmp_path):
    done = workbench("runs", "open", "latest")
    assert done.stdout.strip() == str(three[2])
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" >{tmp_path}/shown\n')
    browser.chmod(0o755)
    done = workbench("runs", "open", three[0].name, "--open", BROWSER=f"{browser} %s")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shown").read_text() == three[0].as_uri()


def test_no_browser_is_told(workbench, three, tmp_path):
    done = workbench("runs", "open", "latest", "--open", PATH=str(tmp_path), DISPLAY="")
    assert done.returncode == 0
    assert done.stdout.strip() == str(three[2])
    assert "no browser on this machine" in done.stderr


def test_resume_latest_passes_over_what_is_finished(workbench, three):
    new_run("calibrate", {})  # of a command, and no notebook
    (three[0] / "status.json").write_text(json.dumps({"state": "done", "exit_code": 0, "message": ""}))
    done = workbench("resume", "latest", "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["run"], row["state"], row["exit_code"]) == (str(three[2]), "done", 0)
    assert f"{three[2]} is finished, so it is left as it is" in done.stderr
    assert "nothing to go on with" in workbench("resume", "latest").stdout


def test_resume_latest_goes_on_with_the_newest_unfinished(workbench, three):
    source = json.loads((three[0] / "params.json").read_text())
    source |= {"notebook": "00_check_machine", "parameters": {"profile": "smoke"}}
    (three[0] / "params.json").write_text(json.dumps(source))
    pytest.importorskip("papermill", reason="the notebook extra is not installed")
    done = workbench("resume", "latest", timeout=240)
    assert done.returncode == 0, done.stderr
    assert f"run folder: {three[0]}" in done.stderr
    assert f"{three[1]} is finished" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "profil", "smoke"], "did you mean 'profile'"),
        (["--grid", "profile"], "profile has no values"),
        (["--grid", "profile", "smoke", "--grid", "profile", "micro"], "give all of its values at once"),
        (["--grid", "profile", "smoke", "-p", "profile", "micro"], "as one value and as a grid"),
        (["--grid", "profile", "smoke", "smoke"], "twice"),
        (["--grid", "profile", "smoke", "--jobs", "0"], "less than 1"),
        (["--again"], "belong to --grid"),
        (["--jobs", "2"], "belong to --grid"),
    ],
)
def test_a_wrong_grid_is_wrong_usage(workbench, tmp_path, arguments, message):
    done = workbench("run", "00_check_machine", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not list(tmp_path.glob("results/*/*/params.json"))


@pytest.mark.parametrize(
    "words", [["compare"], ["compare", "x"], ["open"], ["open", "x"], ["a", "b"], ["compare", "batch-9"]]
)
def test_wrong_words_are_wrong_usage(workbench, words):
    done = workbench("runs", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_no_such_batch(workbench):
    done = workbench("resume", "batch-20200101")
    assert done.returncode == 2
    assert "is no batch" in done.stderr
