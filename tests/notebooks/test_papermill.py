"""The committed notebooks as users of papermill meet them: from elsewhere, by other kernels, at once, inside a kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.runs.folder import list_runs, open_run

pytest.importorskip("papermill", reason="the notebook extra is not installed")

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KERNEL = "bench-other"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """An empty folder to start from, with results beside it, and a kernel of another name than `python3`."""
    for name in ("WORKBENCH_RUN", "WORKBENCH_PROGRESS", "WORKBENCH_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path / "results"))
    spec = tmp_path / "jupyter" / "kernels" / KERNEL
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Bench", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "cwd").mkdir()
    return tmp_path / "cwd"


def papermill(notebook: Path, cwd: Path, target: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "papermill", str(notebook), target, "--no-progress-bar", *arguments]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(process: subprocess.Popen) -> None:
    out, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, out[-4000:]


def test_from_another_folder_by_another_kernel(elsewhere):
    notebook = ROOT / "notebooks" / "00_check_machine.ipynb"
    finished(papermill(notebook, elsewhere, "out.ipynb", "-k", KERNEL, "-p", "profile", "smoke"))
    (run,) = map(open_run, list_runs())
    assert (run.notebook, run.profile) == ("00_check_machine", "smoke")
    assert json.loads((elsewhere / "out.ipynb").read_text())["metadata"]["papermill"]["exception"] is None
    assert sorted(p.name for p in elsewhere.iterdir()) == ["out.ipynb"]  # nothing is written where it was started


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_notebook_from_another_folder_by_another_kernel(elsewhere, notebook):
    finished(papermill(notebook, elsewhere, "out.ipynb", "-k", KERNEL, "-p", "profile", "smoke"))
    assert [f.parent.name for f in list_runs()] == [notebook.stem]
    assert sorted(p.name for p in elsewhere.iterdir()) == ["out.ipynb"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_at_once(elsewhere):
    """Of one notebook that starts sandboxes: every run has its own folder, tasks and verdicts."""
    notebook = ROOT / "notebooks" / "10_generate.ipynb"
    at_once = [
        papermill(notebook, elsewhere, f"out{i}.ipynb", "-p", "profile", "smoke", "-p", "seed", str(i))
        for i in range(4)
    ]
    for process in at_once:
        finished(process)
    runs = [open_run(folder) for folder in list_runs()]
    assert sorted(run.params["seed"] for run in runs) == [0, 1, 2, 3]
    assert all(run.kinds()["attempt"] == 1 and run.rows("admission") for run in runs)


GRID = """
from workbench.runs.batch import run_grid
batch = run_grid({path!r}, {{"profile": ["smoke", "micro"]}}, jobs=2)
print(batch.summary())
assert batch.exit_code == 0
batch
"""
PAPERMILL = """
import papermill
done = papermill.execute_notebook({path!r}, "inner.ipynb", {{"profile": "smoke"}}, kernel_name="bench-other", progress_bar=False)
assert done.metadata.papermill.exception is None
"""


def outer(folder: Path, source: str) -> Path:
    import nbformat.v4 as v4

    inner = str(ROOT / "notebooks" / "00_check_machine.ipynb")
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source.format(path=inner))])
    notebook.metadata.kernelspec = {"name": KERNEL, "display_name": "Bench", "language": "python"}
    path = folder.parent / "outer.ipynb"
    path.write_text(json.dumps(notebook))
    return path


def test_a_grid_from_inside_a_running_kernel_shows_a_widget(elsewhere):
    finished(papermill(outer(elsewhere, GRID), elsewhere, "out.ipynb"))
    runs = [open_run(folder) for folder in list_runs()]
    assert sorted(run.profile for run in runs) == ["micro", "smoke"]
    assert {run.state()["state"] for run in runs} == {"done"}
    executed = json.loads((elsewhere / "out.ipynb").read_text())
    kinds = {kind for output in executed["cells"][0]["outputs"] for kind in output.get("data", {})}
    assert "application/vnd.jupyter.widget-view+json" in kinds
    state = executed["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    (bar,) = [w["state"] for w in state if w["model_name"] == "IntProgressModel"]
    (table,) = [w["state"] for w in state if w["model_name"] == "HTMLModel"]
    assert (bar["value"], bar["description"]) == (2, "2/2")
    assert "profile=smoke" in table["value"]
    assert "done in" in table["value"]


@pytest.mark.slow
def test_papermill_from_inside_a_running_kernel(elsewhere):
    finished(papermill(outer(elsewhere, PAPERMILL), elsewhere, "out.ipynb"))
    assert [f.parent.name for f in list_runs()] == ["00_check_machine"]
