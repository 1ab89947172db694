"""How commands print: JSON lines for machines, aligned columns for people, no control characters from data."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.runs.progress import clean


def json_line(data: Mapping[str, Any]) -> None:
    """One strict JSON object on one line of stdout; what is not finite becomes null."""
    print(json.dumps(_strict(data), allow_nan=False), flush=True)


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def table(rows: Iterable[Sequence[Any]], indent: str = "") -> None:
    """Columns as wide as their widest cell, the last one ragged."""
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)] if cells else []
    for row in cells:
        print(indent + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip())


def block(text: str, indent: str = "    ") -> str:
    """Several lines of untrusted text, cleaned line by line and indented."""
    return "\n".join(indent + "".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())


def message(text: str) -> None:
    print(f"workbench: {text}", file=sys.stderr, flush=True)
