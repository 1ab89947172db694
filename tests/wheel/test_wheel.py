"""The wheel holds what the checkout holds, and works by itself: from an empty folder, without a network."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, new_environment, uv

INSIDE = ("workbench", "notebooks", "data", "results/published")
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".hypothesis"}


def tree() -> Iterator[Path]:
    """Files of the checkout that belong into a wheel: what git knows or would add."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", *INSIDE]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):  # a source distribution
        listed = [str(p.relative_to(ROOT)) for folder in INSIDE for p in (ROOT / folder).rglob("*") if p.is_file()]
    return (Path(p) for p in listed if (ROOT / p).is_file() and not LEFT_OUT & set(Path(p).parts))


def place(path: Path) -> str:
    return path.as_posix() if path.parts[0] == "workbench" else f"workbench/{path.as_posix()}"


def test_the_wheel_holds_the_tree_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if ".dist-info/" not in name}
        wanted = {place(path): path for path in tree()}
        begun = (wheel.parent / "begun").stat().st_mtime
        changing = {
            name for name, path in wanted.items() if (ROOT / path).stat().st_mtime > begun
        }  # while it was built
        assert wanted.keys() - held - changing == set()
        assert held - wanted.keys() == set()
        for name, path in wanted.items():
            if name not in changing:
                assert file.read(name) == (ROOT / path).read_bytes(), name


@pytest.mark.parametrize(
    "name",
    [
        "workbench/notebooks/40_flywheel.ipynb", "workbench/report/static/trace_viewer.js", "workbench/report/style.mplstyle",
        "workbench/runs/profiles/smoke.yaml", "workbench/data/tasks/config-merge/task.toml", "workbench/data/labels/codebook.md",
        "workbench/tasks/templates/single/environment/Dockerfile",
    ],
)  # fmt: skip
def test_what_the_code_asks_for_by_name_is_there(wheel, name):
    with zipfile.ZipFile(wheel) as file:
        assert file.getinfo(name).file_size > 0


def test_executable_files_stay_executable(wheel):
    scripts = [p for p in tree() if os.access(ROOT / p, os.X_OK) and p.suffix == ".sh"]
    with zipfile.ZipFile(wheel) as file:
        for path in scripts:
            assert (file.getinfo(place(path)).external_attr >> 16) & 0o111, path


def test_the_command_is_there_and_says_where_its_things_are(installed, clean_env, tmp_path):
    code = "import json, workbench\nfrom workbench import paths\nprint(json.dumps([workbench.__file__, str(paths.NOTEBOOKS), paths.CHECKOUT, str(paths.results())]))"
    out = run([installed / "python", "-c", code], clean_env, tmp_path / "empty").stdout
    package, notebooks, checkout, results = json.loads(out)
    assert Path(package).is_relative_to(installed.parent)
    assert Path(notebooks).is_relative_to(installed.parent)
    assert (checkout, results) == (None, str(tmp_path / "empty" / "results"))
    done = run([installed / "workbench", "--version"], clean_env, tmp_path / "empty")
    assert done.stdout.startswith("workbench ")


def test_an_editable_install_reads_the_checkout_and_copies_nothing(clean_env, tmp_path):
    python, packages = new_environment(tmp_path / "venv")
    uv("pip", "install", "--quiet", "--no-deps", "--python", python, "-e", ROOT)
    assert not (packages / "workbench").exists()
    code = "import workbench; from workbench import paths; print(workbench.__file__, paths.CHECKOUT)"
    done = run([python, "-c", code], clean_env, tmp_path / "empty")
    assert done.stdout.split() == [str(ROOT / "workbench" / "__init__.py"), str(ROOT)]


def run(command: list, env: dict[str, str], cwd: Path, ok: bool = True) -> subprocess.CompletedProcess:
    cwd.mkdir(exist_ok=True)
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env, cwd=cwd, check=False)
    assert done.returncode == 0 or not ok, done.stdout + done.stderr
    return done


@pytest.fixture(scope="session")
def without_network() -> list[str]:
    """In front of a command: a network namespace without any interface, where this user may make one."""
    prefix = ["unshare", "--net"]  # no user namespace: sandboxes make their own
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []  # the proxies of `clean_env` lead nowhere in any case
    return prefix


@pytest.mark.slow
def test_an_offline_start_in_an_empty_folder(installed, clean_env, without_network, tmp_path):
    pytest.importorskip("papermill", reason="the notebook extra is not installed")
    empty = tmp_path / "empty"
    check = run([*without_network, installed / "workbench", "check", "--json"], clean_env, empty, ok=False)
    findings = [json.loads(line) for line in check.stdout.splitlines()]
    assert any(f["name"] == "notebooks" and f["status"] == "ok" and "40_flywheel" in f["detail"] for f in findings)
    assert check.returncode == (0 if any(f["name"] == "bubblewrap" and f["status"] == "ok" for f in findings) else 1)
    command = [*without_network, installed / "workbench", "run", "00_check_machine", "-p", "profile", "smoke", "--json"]
    result = json.loads(run(command, clean_env, empty).stdout)
    assert result["state"] == "done"
    assert Path(result["run"]).is_relative_to(empty / "results" / "00_check_machine")
    params = json.loads((Path(result["run"]) / "params.json").read_text())
    assert set(params["revision"]) == {"package"}


@pytest.mark.slow
@pytest.mark.parametrize("notebook", ["50_label_traces", "90_paper_figures"])
def test_notebooks_that_need_data_find_it(installed, clean_env, without_network, notebook, tmp_path):
    pytest.importorskip("papermill", reason="the notebook extra is not installed")
    command = [*without_network, installed / "workbench", "run", notebook, "-p", "profile", "smoke"]
    run(command, clean_env, tmp_path / "empty")
