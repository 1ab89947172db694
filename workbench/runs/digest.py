"""What makes two runs the same: one notebook, one set of parameters, one state of the code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.runs.journal import plain
from workbench.runs.machine import package_digest
from workbench.runs.parameters import cell_source, read_notebook


def code_digest(notebook: Path) -> str:
    """sha256 over the package's files and the notebook's cells; outputs, counts and metadata do not count."""
    digest = hashlib.sha256(package_digest().encode())
    for cell in read_notebook(notebook)["cells"]:
        digest.update(json.dumps([cell.get("cell_type"), cell_source(cell)]).encode() + b"\0")
    return digest.hexdigest()


def run_key(notebook: str, parameters: Mapping[str, Any], code: str, cwd: str) -> str:
    """sha256 that is equal for runs that would do the same.

    cwd counts only where a parameter names something in it: a relative path means another file from elsewhere.
    """
    here = cwd if any(_lies_in(cwd, text) for text in _texts(parameters)) else ""
    what = [notebook, plain(parameters), code, here]
    return hashlib.sha256(json.dumps(what, sort_keys=True, allow_nan=False).encode()).hexdigest()


def facts(notebook: Path, parameters: Mapping[str, Any], code: str, cwd: str) -> dict[str, str]:
    """What a run keeps of its own beginning: source, code, key and cwd."""
    key = run_key(notebook.stem, parameters, code, cwd)
    return {"source": str(notebook), "code": code, "key": key, "cwd": cwd}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _lies_in(cwd: str, text: str) -> bool:
    try:
        return bool(text) and not Path(text).is_absolute() and (Path(cwd) / text).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False
