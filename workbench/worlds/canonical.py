"""Output trees in one canonical form, so that two honest programs can be compared: JSON parsed, SQLite dumped, the rest byte by byte."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from workbench.worlds import Tree


def canonical_tree(tree: Tree) -> dict[str, Any]:
    """path -> something that is equal exactly when the meaning is."""
    return {path: canonical_file(path, data) for path, data in sorted(tree.items())}


def canonical_file(path: str, data: bytes) -> Any:
    """The parsed value of JSON and JSON lines, the sorted rows of a database, else the bytes themselves."""
    try:
        if path.endswith(".json"):
            return _exact(json.loads(data))
        if path.endswith((".jsonl", ".ndjson")):
            return [_exact(json.loads(line)) for line in data.splitlines() if line.strip()]
        if data.startswith(b"SQLite format 3\0"):
            return _dump(data)
    except (ValueError, RecursionError, sqlite3.Error) as error:
        return f"unreadable: {error}"
    return data


def _exact(value: Any) -> Any:
    """So that true isn't 1; 1 and 1.0 are the same number."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return ("boolean", value) if isinstance(value, bool) else value


def _dump(data: bytes) -> dict[str, Any]:
    """Per table: columns with their types and keys, and the rows in sorted order (a table has none of its own)."""
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        names = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        out: dict[str, Any] = {}
        for name in names:
            quoted = '"' + name.replace('"', '""') + '"'
            columns = [tuple(row[1:]) for row in base.execute(f"PRAGMA table_info({quoted})")]
            out[name] = (columns, sorted(base.execute(f"SELECT * FROM {quoted}").fetchall(), key=repr))
        return out
    finally:
        base.close()


def differences(left: Tree, right: Tree) -> list[str]:
    """What differs between two trees, shortly; none when they mean the same."""
    found = []
    for path in sorted(set(left) | set(right)):
        if path not in left or path not in right:
            found.append(f"{path}: only the {'second' if path not in left else 'first'} has it")
        elif left[path] != right[path]:
            a, b = canonical_file(path, left[path]), canonical_file(path, right[path])
            if a != b:
                found.append(f"{path}: {_first(a, b)}")
    return found


def _first(a: Any, b: Any, where: str = "") -> str:
    """Where two values begin to differ."""
    if isinstance(a, bytes) and isinstance(b, bytes):
        left, right = a.splitlines(), b.splitlines()
        for at, (x, y) in enumerate(zip(left, right, strict=False), 1):
            if x != y:
                return f"line {at}: {x[:80]!r} and {y[:80]!r}"
        return f"{len(left)} and {len(right)} lines"
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((_first(a[k], b[k], f"{where}.{k}") for k in a if a[k] != b[k]), "")
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        return next((_first(x, y, f"{where}[{n}]") for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), "")
    return f"{where.lstrip('.') or 'value'}: {a!r:.80} and {b!r:.80}"
