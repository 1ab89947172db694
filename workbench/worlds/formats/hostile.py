"""Reading what an agent wrote: every byte is hostile, so these functions return None instead of raising, and bound their work."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

# Bytes of one file: five times the largest honest output, and read in about a second whatever it holds.
LIMIT = 2 << 20
HOLDERS = 100_000  # objects and lists of one JSON text
LINES = 20_000  # of JSON lines, each of which is parsed by itself


def text(tree: Mapping[str, bytes], path: str) -> str | None:
    """The file as UTF-8 text, without a byte order mark; None when absent, too big or not UTF-8."""
    data = tree.get(path)
    if not isinstance(data, bytes) or len(data) > LIMIT:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("number too large")
    return value


def parse_json(source: str) -> Any:
    """The value; None for anything that isn't strict JSON (NaN, infinities, nesting or numbers beyond reason, repeated keys)."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            raise ValueError("repeated key")
        return out

    if source.count("{") + source.count("[") > HOLDERS:
        return None
    try:
        return json.loads(source, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=unique)
    except (ValueError, RecursionError, MemoryError):
        return None


def json_file(tree: Mapping[str, bytes], path: str) -> Any:
    source = text(tree, path)
    return None if source is None else parse_json(source)


def jsonl_file(tree: Mapping[str, bytes], path: str) -> list[dict[str, Any]] | None:
    """One object a line, blank lines skipped; None when any line is something else."""
    source = text(tree, path)
    if source is None:
        return None
    lines = source.split("\n")
    if len(lines) > LINES:
        return None
    out = []
    for line in lines:
        if line.strip():
            value = parse_json(line)
            if not isinstance(value, dict):
                return None
            out.append(value)
    return out


def table_file(tree: Mapping[str, bytes], path: str, delimiter: str = ",") -> tuple[list[str], list[list[str]]] | None:
    """(header, rows) of a delimited file, any line ends and quoting; None when ragged, empty or unreadable."""
    source = text(tree, path)
    if source is None or "\0" in source:
        return None
    try:
        lines = [row for row in csv.reader(io.StringIO(source, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return None
    if not lines or any(len(row) != len(lines[0]) for row in lines):
        return None
    return lines[0], lines[1:]


def same(expected: Any, got: Any) -> bool:
    """Equal JSON values: 1 and 1.0 are the same number, true is not 1; the depth followed is that of `expected`."""
    if isinstance(expected, Mapping):
        return (
            isinstance(got, Mapping)
            and expected.keys() == got.keys()
            and all(same(v, got[k]) for k, v in expected.items())
        )
    if isinstance(expected, list | tuple):
        return isinstance(got, list | tuple) and len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(got, list | tuple | Mapping) or isinstance(expected, bool) != isinstance(got, bool):
        return False
    return expected == got
