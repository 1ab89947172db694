"""Writes environment.yml, the conda door, from pyproject.toml: the same packages, so edit only that. --check: 1 when stale."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("train", "notebook", "test", "cluster")


def environment_yml(pyproject: Path = ROOT / "pyproject.toml") -> str:
    """The text of environment.yml. Everything but Python and pip comes through pip, as pinned in pyproject.toml:
    several of the packages have no conda build, and mixing both solvers breaks torch."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **{name: project["optional-dependencies"][name] for name in EXTRAS}}
    lines = [
        "# Made by scripts/make_environment_yml.py from pyproject.toml: do not edit by hand.",
        "# conda env create -f environment.yml && conda activate workbench   (GPU: pip install -e '.[gpu]' afterwards)",
        "name: workbench",
        "channels: [conda-forge]",
        "dependencies:",
        f'  - "python{project["requires-python"]}"',
        "  - pip",
        "  - pip:",
        f'      - "-e ."  # {project["name"]} itself',
    ]
    for extra, requirements in groups.items():
        lines.append(f"      # {extra or 'core'}")
        lines += [f'      - "{requirement}"' for requirement in requirements]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    path, text = ROOT / "environment.yml", environment_yml()
    if "--check" in arguments:
        stale = not path.exists() or path.read_text(encoding="utf-8") != text
        print(
            "environment.yml is stale: run scripts/make_environment_yml.py" if stale else "environment.yml is current"
        )
        return int(stale)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
