"""The committed notebooks, and the checks that keep them as they are."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("validate_notebooks", ROOT / "scripts" / "validate_notebooks.py")
validate_notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(validate_notebooks)

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture
def good(tmp_path) -> Path:
    path = tmp_path / "10_x.ipynb"
    path.write_bytes((ROOT / "notebooks" / "00_check_machine.ipynb").read_bytes())
    return path


def edit(path: Path, change) -> list[str]:
    notebook = json.loads(path.read_text())
    change(notebook)
    path.write_text(json.dumps(notebook))
    return validate_notebooks.faults(path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_committed_notebooks_are_thin_and_stripped(path):
    assert validate_notebooks.faults(path) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_notebook_has_values_in_every_profile(path, monkeypatch):
    from workbench.runs.profiles import load_profile, profile_names

    monkeypatch.delenv("WORKBENCH_PROFILE", raising=False)
    assert profile_names() == ["arms", "micro", "paper", "rewards", "small", "smoke"]
    keys = {name: set(load_profile(path.stem, name)) for name in profile_names()}
    assert len(set(map(frozenset, keys.values()))) == 1, f"profiles differ in their names: {keys}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_published_setting_names_its_source(path, monkeypatch):
    from workbench.runs.profiles import load_profile

    monkeypatch.delenv("WORKBENCH_PROFILE", raising=False)
    for row in load_profile(path.stem, "paper").table():
        assert row["source"], f"{path.stem}: the paper profile's {row['name']} has no source"
        assert (row["value"] is None) == (row["source"] == "unpublished"), row


def test_a_stripped_notebook_does_not_change(good):
    before = good.read_bytes()
    validate_notebooks.strip(good)
    assert good.read_bytes() == before
    assert validate_notebooks.faults(good) == []


def test_strip_mends_what_jupyter_adds(good):
    def run(notebook):
        notebook["metadata"] |= {"widgets": {}, "papermill": {}}
        for cell in notebook["cells"]:
            cell["id"] = "abc"
            if cell["cell_type"] == "code":
                cell |= {"execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
                cell["metadata"] |= {"execution": {}}

    assert any("outputs must be stripped" in fault for fault in edit(good, run))
    validate_notebooks.strip(good)
    assert validate_notebooks.faults(good) == []


CHANGES = {
    "a second title": (lambda n: n["cells"][3].update(source="# Another"), "exactly one title"),
    "no tag": (lambda n: n["cells"][1].update(metadata={}), "tagged `parameters`"),
    "a derived parameter": (
        lambda n: n["cells"][1].update(source="profile = 'x'  # y\nn = len(profile)  # z"),
        "plain literal",
    ),
    "no profile": (lambda n: n["cells"][1].update(source="n = 1  # one"), "no parameter `profile`"),
    "no help": (lambda n: n["cells"][1].update(source="profile = 'micro'"), "no comment"),
    "a function": (lambda n: n["cells"][4].update(source="def f():\n    pass"), "defines f"),
    "a long cell": (lambda n: n["cells"][4].update(source="x = 1\n" * 13), "13 lines"),
    "another kernel": (lambda n: n["metadata"]["kernelspec"].update(name="conda-env-x"), "kernel must be python3"),
    "no run folder": (lambda n: n["cells"][-1].update(source="1"), "name the run's folder"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_rule_is_checked(good, name):
    change, message = CHANGES[name]
    assert any(message in fault for fault in edit(good, change))


def test_what_is_no_notebook_is_told(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text("hello")
    assert "no notebook" in validate_notebooks.faults(path)[0]
