"""Files made from nothing but a declared schema: what a probe can write without having looked at any input."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from workbench.worlds import Output

Leaf = Callable[[str], Any]  # type name -> value
ZEROS = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "date": "1970-01-01"}
CONSTANTS = {"string": "a", "integer": 1, "number": 1.0, "boolean": True, "date": "2024-01-01"}


def zero(kind: str) -> Any:
    return ZEROS.get(str(kind).lower(), 0 if str(kind).upper().startswith(("INT", "REAL", "NUM")) else "")


def constant(kind: str) -> Any:
    return CONSTANTS.get(str(kind).lower(), 1 if str(kind).upper().startswith(("INT", "REAL", "NUM")) else "a")


def null(kind: str) -> None:
    return None


def shaped(shape: Any, leaf: Leaf, records: int) -> Any:
    """A value of this shape with `records` members in every list and under every placeholder key ("<region>")."""
    if isinstance(shape, Mapping):
        out: dict[str, Any] = {}
        for key, part in shape.items():
            if key.startswith("<"):
                out |= {f"{key.strip('<>')}{n}": shaped(part, leaf, records) for n in range(records)}
            else:
                out[key] = shaped(part, leaf, records)
        return out
    if isinstance(shape, list | tuple):
        return [shaped(shape[0], leaf, records) for _ in range(records)] if shape else []
    return leaf(str(shape))


def file(output: Output, leaf: Leaf, records: int) -> bytes:
    """A file of the declared format with `records` records of leaf values."""
    schema = output.schema
    if output.format in ("csv", "tsv"):
        sign = "," if output.format == "csv" else "\t"
        cells = ["" if (v := leaf(str(t))) is None else str(v) for t in schema.values()]
        return "".join(f"{sign.join(line)}\n" for line in [list(schema), *[cells] * records]).encode()
    if output.format == "jsonl":
        record = json.dumps({name: leaf(str(kind)) for name, kind in schema.items()})
        return "".join(f"{record}\n" for _ in range(records)).encode()
    if output.format == "json":
        return json.dumps(shaped(schema, leaf, records)).encode()
    if output.format == "sqlite":
        return _database(schema, leaf, records)
    value = leaf("string")
    return b"".join(b"\0" if value is None else f"{value}\n".encode() for _ in range(records)) or b"\n"


def _database(schema: Mapping[str, Any], leaf: Leaf, records: int) -> bytes:
    base = sqlite3.connect(":memory:")
    try:
        for table, columns in schema.items():
            if not isinstance(columns, Mapping):
                continue
            named = ", ".join(f'"{name}" {str(kind).split()[0]}' for name, kind in columns.items())
            base.execute(f'CREATE TABLE "{table}" ({named})')
            row = [leaf(str(kind)) for kind in columns.values()]
            marks = ", ".join("?" * len(row))
            base.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [row] * records)
        base.commit()
        return base.serialize()
    finally:
        base.close()
