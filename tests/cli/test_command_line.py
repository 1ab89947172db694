"""The command as a shell sees it: exit codes, what goes where, what it says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def test_help_names_every_command(workbench):
    done = workbench("--help")
    assert done.returncode == 0
    for command in ("check", "validate", "calibrate", "run", "resume", "runs", "clean", "task"):
        assert f"    {command}" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["nonsense"], ["validate"], ["run"], ["task"], ["run", "00", "-p", "profile"], ["validate", "x", "-j", "0"],
        ["validate", "no-such-task"], ["run", "no-such-notebook"], ["resume", "no-such-run"], ["task", "new"],
        ["validate", ".", "--backend", "nonsense"], ["validate", ".", "--held-out", "nowhere"], ["clean", "--backend", "x"],
        ["calibrate", ".", "--agent", "nobody"], ["calibrate", ".", "--model", "nonsense:x"],
        ["calibrate", ".", "--agent", "oracle", "--band", "0.9", "0.1"], ["validate", ".", "-j", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_exits_2_and_says_what_is_right(workbench, arguments):
    done = workbench(*arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" not in done.stdout
    assert done.stderr.strip() or done.stdout.startswith("usage")
    assert "_positive" not in done.stderr


def test_start_up_imports_nothing_heavy():
    code = (
        "import sys\nfrom workbench.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pandas', 'papermill', 'torch', 'harbor', 'litellm', 'docker', 'yaml', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_check_tells_each_finding(workbench):
    done = workbench("check", "--json")
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"machine", "packages", "sandboxes", "models", "notebooks"} <= {f["section"] for f in findings}
    assert all(f["status"] in ("ok", "missing", "bad") for f in findings)
    for finding in findings:
        if finding["status"] == "bad":
            assert finding["advice"], finding
    works = any(
        f["section"] == "sandboxes" and f["status"] == "ok" and f["name"] in ("bubblewrap", "docker") for f in findings
    )
    assert done.returncode == (0 if works else 1)


def test_check_never_fails_for_what_is_missing(workbench, tmp_path):
    done = workbench("check", DOCKER_HOST="unix:///nowhere.sock", PATH=str(tmp_path), HOME=str(tmp_path))
    assert "Traceback" not in done.stdout + done.stderr
    assert "docker" in done.stdout
    assert "what to do" in done.stdout


def test_a_check_that_breaks_is_a_finding(monkeypatch):
    from workbench import check

    def _packages():
        raise RuntimeError("odd machine")

    monkeypatch.setattr(check, "_packages", _packages)
    assert any("odd machine" in f.detail for f in check.check_machine())


def test_a_new_task_and_no_second_one_in_its_place(workbench, tmp_path):
    done = workbench("task", "new", "mine", "--json")
    assert done.returncode == 0
    assert "instruction.md" in json.loads(done.stdout)["files"]
    again = workbench("task", "new", "mine")
    assert again.returncode == 2
    assert "not an empty folder" in again.stderr
    assert workbench("task", "new", "other", "--name", "no slash").returncode == 2


def test_run_refuses_an_unknown_parameter(workbench, tmp_path):
    done = workbench("run", "00", "-p", "profil", "smoke")
    assert done.returncode == 2
    assert "did you mean 'profile'" in done.stderr
    assert not (tmp_path / "results").exists()
    twice = workbench("run", "00", "-p", "profile", "a", "-p", "profile", "b")
    assert twice.returncode == 2
    assert "more than once" in twice.stderr


def test_a_notebooks_parameters_are_listed(workbench):
    done = workbench("run", "00_check_machine", "--parameters")
    assert done.returncode == 0
    assert done.stdout.startswith("profile  str  'micro'")


def test_run_runs_and_resume(workbench):
    pytest.importorskip("papermill", reason="the notebook extra is not installed")
    done = workbench("run", "00_check_machine", "-p", "profile", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["state"], result["exit_code"]) == ("done", 0)
    assert f"run folder: {result['run']}" in done.stderr
    (row,) = [json.loads(line) for line in workbench("runs", "--json").stdout.splitlines()]
    assert (row["run"], row["profile"], row["state"]) == (result["run"], "smoke", "done")
    again = workbench("resume", "latest", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["run"] == result["run"]


def test_no_runs_yet(workbench):
    done = workbench("runs")
    assert done.returncode == 0
    assert "no runs yet" in done.stderr


def test_clean_is_quiet_on_a_clean_machine(workbench):
    workbench("clean")
    done = workbench("clean", "--backend", "bubblewrap", "--json")
    assert done.returncode == 0, done.stderr
