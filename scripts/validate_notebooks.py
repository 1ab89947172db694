"""Checks the committed notebooks: thin, parameterized, stripped. `validate_notebooks.py [NOTEBOOK…]`; 1 when one is not.

With --strip, outputs and what Jupyter adds on saving are taken out first.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from workbench.runs.parameters import ParameterError, cell_source, parameters_cells, parse_parameters, read_notebook

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MOST_LINES = 12  # "about ten"
CELL_METADATA = {"tags"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def faults(path: Path) -> list[str]:
    """Everything wrong with one notebook, in plain words."""
    try:
        notebook = read_notebook(path)
    except ParameterError as error:
        return [str(error)]
    found = [*_metadata(notebook), *_titles(notebook), *_parameters(notebook)]
    for number, cell in enumerate(notebook["cells"], 1):
        found += [f"cell {number}: {fault}" for fault in _cell(cell)]
    return found


def _metadata(notebook: dict[str, Any]) -> list[str]:
    found = []
    if notebook.get("metadata", {}).get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel must be python3, whatever it was written with")
    if notebook.get("metadata") != METADATA or notebook.get("nbformat") != 4:
        found.append("notebook metadata must be kernelspec and language only (strip it)")
    return found


def _titles(notebook: dict[str, Any]) -> list[str]:
    lines = [
        line
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
        for line in cell_source(cell).splitlines()
        if line.startswith("# ")
    ]
    first = notebook["cells"][0] if notebook["cells"] else {}
    found = [] if len(lines) == 1 else [f"exactly one title (# …) is needed, there are {len(lines)}"]
    if first.get("cell_type") != "markdown" or not cell_source(first).startswith("# "):
        found.append("the first cell must be the title and what the notebook does")
    return found


def _parameters(notebook: dict[str, Any]) -> list[str]:
    cells = parameters_cells(notebook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if len(cells) != 1 or cells[0] is not code[0]:
        return ["the first code cell, and no other, must be tagged `parameters`"]
    try:
        known = parse_parameters(cell_source(cells[0]))
    except ParameterError as error:
        return [str(error)]
    found = [] if "profile" in known else ["there is no parameter `profile`"]
    found += [f"parameter {p.name} has no comment that says what it is" for p in known.values() if not p.help]
    if "run.folder" not in cell_source(code[-1]):
        found.append("the last code cell must name the run's folder (run.folder)")
    return found


def _cell(cell: dict[str, Any]) -> list[str]:
    found = []
    if extra := set(cell.get("metadata", {})) - CELL_METADATA:
        found.append(f"metadata {', '.join(sorted(extra))} must be stripped")
    if cell["cell_type"] != "code":
        return found
    if cell.get("outputs") or cell.get("execution_count") is not None:
        found.append("outputs must be stripped")
    source = cell_source(cell)
    lines = [line for line in source.splitlines() if line.strip()]
    if len(lines) > MOST_LINES and "parameters" not in cell.get("metadata", {}).get("tags", []):
        found.append(f"{len(lines)} lines; at most {MOST_LINES}: move code into the package")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return [*found, f"no plain Python: {error.msg}"]
    defined = [
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return found + [f"defines {name}: move it into the package" for name in defined]


def strip(path: Path) -> None:
    """Write the notebook without outputs, counts, ids and foreign metadata; byte-stable."""
    notebook = read_notebook(path)
    cells = []
    for cell in notebook["cells"]:
        kept = {k: v for k, v in cell.get("metadata", {}).items() if k in CELL_METADATA}
        source = cell_source(cell).splitlines(keepends=True)
        clean = {"cell_type": cell["cell_type"], "metadata": kept, "source": source}
        if cell["cell_type"] == "code":
            clean |= {"execution_count": None, "outputs": []}
        cells.append(dict(sorted(clean.items())))
    stripped = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(stripped, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    names = [a for a in arguments if a != "--strip"]
    paths = [Path(n) for n in names] or sorted(NOTEBOOKS.glob("*.ipynb"))
    wrong = 0
    for path in paths:
        if "--strip" in arguments:
            strip(path)
        for fault in faults(path):
            wrong += 1
            print(f"{path.name}: {fault}")
    print(f"{len(paths)} notebooks, {wrong} faults")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
