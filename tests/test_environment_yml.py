"""environment.yml, the conda door, names the packages that pyproject.toml names."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


def test_environment_yml_equals_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["train"], *extras["notebook"], *extras["test"], *extras["cluster"]]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert conda[0] == f"python{project['requires-python']}"
    pip = next(entry["pip"] for entry in conda if isinstance(entry, dict))
    hint = "run scripts/make_environment_yml.py"
    assert pip[0] == "-e ."
    assert sorted(pip[1:]) == sorted(wanted), hint
