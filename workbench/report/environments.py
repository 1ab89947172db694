"""An environment opened up: its files, without following links or trusting their text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.report.widget import visible

if TYPE_CHECKING:
    import pandas as pd

HEAD = 100  # characters of a file's first line


def file_table(folder: str | Path) -> pd.DataFrame:
    """Every regular file of a task directory: file (relative), bytes, first_line ("" for what is not text)."""
    import pandas as pd

    root = Path(folder)
    files = sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink())
    rows = [[visible(p.relative_to(root)), p.stat().st_size, _first_line(p)] for p in files]
    return pd.DataFrame(rows, columns=["file", "bytes", "first_line"])


def read_text(folder: str | Path, name: str, limit: int = 20_000) -> str:
    """The text of one file of a task, safe to print: control characters are made visible, long files are cut."""
    path = Path(folder) / name
    if path.is_symlink() or not path.resolve().is_relative_to(Path(folder).resolve()):
        raise ValueError(f"{name} is a link or lies outside the task")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    text = "\n".join(visible(line) for line in data[:limit].decode(errors="replace").splitlines())
    return text if len(data) <= limit else f"{text}\n[... cut at {limit} bytes ...]"


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(4 * HEAD)
    if b"\0" in head:
        return ""
    return visible(head.decode(errors="replace").partition("\n")[0][:HEAD])
