"""Mutants of a complete output: small and hostile changes of bytes, cells, rows, keys and tables, from a seed."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from workbench.worlds import Environment, Output

Bytes = Callable[[random.Random, bytes], bytes]
STRANGE = [
    None, True, False, 0, -1, 1, 1.0, 0.5, 10**30, -(10**400), 1e308, "", " ", "0", "1", "true", "nan", "\ud800", "\u0430", "\u0661", "x" * 9000,
    [], {}, [[]], [None], {"": None}, {"name": []}, [{"id": {}}], [1, "a", None], "2024-01-01", "-0", -0.0,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, item in items for p in places(item, (*path, key)))]


def _near(draw: random.Random, value: Any) -> Any:
    """A value that a careless comparison takes for the same."""
    near: list[Any] = [[value], {"value": value}, str(value), draw.choice(STRANGE)]
    if isinstance(value, bool):
        near += [int(value), not value, float(value)]
    elif isinstance(value, int) and abs(value) < 2**53:
        near += [float(value), value + 1, value + 0.0001, -value, bool(value), value + 2**61 - 1]
    elif isinstance(value, float) and abs(value) < 2**53:
        near += [value + 1e-9, value * 1.001, round(value), value + 0.01, value - 0.01]
    elif isinstance(value, str) and value:
        near += [
            value.upper(), value.lower(), value + " ", " " + value, value[:-1], value + "\u200b", value.replace("a", "\u0430"),
            value + ".0", "0" + value, value[::-1], value.replace("0", "\u0660"), value + "\0",
        ]  # fmt: skip
    return draw.choice(near)


def mutate_json(draw: random.Random, value: Any) -> Any:
    """One change somewhere in a copy of the value."""
    value = copy.deepcopy(value)
    path = draw.choice(places(value))
    holder, key = None, None
    target = value
    for step in path:
        holder, key, target = target, step, target[step]
    changes: list[str] = ["replace"] if holder is not None else ["wrap", "replace"]
    if isinstance(holder, list):
        changes += ["delete", "repeat", "swap"]
    if isinstance(holder, dict):
        changes += ["delete", "rename", "move"]
    if isinstance(target, dict):
        changes += ["add"]
    if isinstance(target, list):
        changes += ["append", "shuffle", "double"]
    change = draw.choice(changes)
    if change == "delete":
        del holder[key]
    elif change == "repeat":
        holder.insert(key, copy.deepcopy(target))
    elif change == "swap":
        other = draw.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
    elif change == "rename":
        holder[draw.choice([str(key).upper(), str(key) + " ", "x", ""])] = holder.pop(key)
    elif change == "move":
        holder[key] = holder.pop(key)
    elif change == "add":
        target[draw.choice(["extra", "", "id", "name"])] = draw.choice(STRANGE)
    elif change == "append":
        target.append(draw.choice(STRANGE))
    elif change == "shuffle":
        draw.shuffle(target)
    elif change == "double":
        target += copy.deepcopy(target)
    elif holder is None:
        value = [value] if change == "wrap" else _near(draw, value)
    else:
        holder[key] = _near(draw, target)
    return value


def _json(draw: random.Random, data: bytes) -> bytes:
    value = json.loads(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        value = mutate_json(draw, value)
    text = json.dumps(value, indent=draw.choice((None, 1)), ensure_ascii=draw.random() < 0.8)
    return text.encode("utf-8", "surrogatepass")


def _jsonl(draw: random.Random, data: bytes) -> bytes:
    rows = [json.loads(line) for line in data.splitlines() if line.strip()]
    rows = mutate_json(draw, rows)
    rows = rows if isinstance(rows, list) else [rows]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _table(delimiter: str) -> Bytes:
    def mutate(draw: random.Random, data: bytes) -> bytes:
        rows = list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))
        at = draw.randrange(len(rows))
        column = draw.randrange(len(rows[at]))
        change = draw.choice(
            (
                "cell",
                "cell",
                "cell",
                "drop",
                "repeat",
                "swap",
                "shuffle",
                "column",
                "double",
                "wide",
                "drop column",
                "header",
            )
        )
        if change == "cell":
            rows[at][column] = str(_near(draw, rows[at][column])).replace("\ud800", "?")
        elif change == "drop":
            del rows[at]
        elif change == "repeat":
            rows.insert(draw.randrange(len(rows)), list(rows[at]))
        elif change == "swap":
            other = draw.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        elif change == "shuffle":
            rest = rows[1:]
            draw.shuffle(rest)
            rows[1:] = rest
        elif change == "column":  # moved with its header: the same table in another order
            for row in rows:
                row.append(row.pop(column))
        elif change == "double":
            rows += [list(row) for row in rows[1:]]
        elif change == "wide":
            rows = [[*row, row[column]] for row in rows]
        elif change == "drop column":
            rows = [row[:column] + row[column + 1 :] for row in rows]
        else:
            rows[0][column] = draw.choice(["", rows[0][0], rows[0][column].upper()])
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator=draw.choice(("\n", "\r\n"))).writerows(rows)
        return out.getvalue().encode()

    return mutate


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(draw: random.Random, data: bytes) -> bytes:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(data)
    tables = [
        r[0]
        for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    ]
    name = draw.choice(tables)
    table, columns = _quoted(name), [r[1] for r in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
    column = _quoted(draw.choice(columns))
    one = f"WHERE rowid = (SELECT rowid FROM {table} ORDER BY random() LIMIT 1)"
    script = draw.choice((
        f"UPDATE {table} SET {column} = {column} + 1 {one}", f"UPDATE {table} SET {column} = CAST({column} AS REAL) {one}",
        f"UPDATE {table} SET {column} = CAST({column} AS BLOB) {one}", f"UPDATE {table} SET {column} = NULL {one}",
        f"UPDATE {table} SET {column} = upper({column})", f"UPDATE {table} SET {column} = {column} || ' ' {one}",
        f"UPDATE {table} SET {column} = 9e999 {one}", f"UPDATE {table} SET {column} = zeroblob(900000) {one}",
        f"DELETE FROM {table} {one}", f"DELETE FROM {table}", f"DROP TABLE {table}",
        f"ALTER TABLE {table} ADD COLUMN extra TEXT", f"ALTER TABLE {table} ADD COLUMN more AS (1)",
        f"ALTER TABLE {table} RENAME COLUMN {column} TO \"Other\"", f"ALTER TABLE {table} DROP COLUMN {column}",
        f"ALTER TABLE {table} RENAME TO hidden_one; CREATE VIEW {table} AS SELECT * FROM hidden_one",
        f"CREATE TABLE copy_of AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE copy_of RENAME TO {table}",
        f"CREATE TABLE copy_of AS SELECT * FROM {table}; INSERT INTO copy_of SELECT * FROM {table}; DROP TABLE {table}; "
        f"ALTER TABLE copy_of RENAME TO {table}",
        "CREATE TABLE extra_one (a, b); INSERT INTO extra_one VALUES (1, 2)",
        f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END", "VACUUM", "PRAGMA user_version = 7",
        f"CREATE VIRTUAL TABLE v USING fts5(a); INSERT INTO v SELECT {column} FROM {table}",
        f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE x' WHERE name = '{name}'",
        f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 1 WHERE name = '{name}'",
        f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 99999999 WHERE name = '{name}'",
        f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = x'ff00' WHERE name = '{name}'",
        f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = x'ff', tbl_name = x'ff', sql = 'CREATE TABLE x(a)' WHERE name = '{name}'",
        "PRAGMA encoding = 'UTF-16'", f"UPDATE {table} SET {column} = CAST(x'ff80' AS TEXT) {one}",
    ))  # fmt: skip
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        for line in script.split("; ") if "TRIGGER" not in script else [script]:
            connection.execute(line)
    except sqlite3.Error:
        pass  # this change does not fit this table
    try:
        return connection.serialize()
    finally:
        connection.close()


def _safetensors(draw: random.Random, data: bytes) -> bytes:
    """Another header over the same tensors."""
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    change = draw.choice(("one", "one", "metadata", "padded"))
    if change == "one":
        head = mutate_json(draw, head)
    elif change == "metadata":
        head["__metadata__"] = draw.choice(({}, {"format": "pt"}, [], None))
    text = json.dumps(head).encode() + b" " * (1_200_000 if change == "padded" else draw.randrange(9))
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def _bytes(draw: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    at = draw.randrange(len(out)) if out else 0
    change = draw.choice(("flip", "flip", "many", "cut", "insert", "zero", "tail", "bom", "twice", "empty", "line"))
    if change == "flip" and out:
        out[at] ^= 1 << draw.randrange(8)
    elif change == "many" and out:
        for _ in range(20):
            out[draw.randrange(len(out))] = draw.randrange(256)
    elif change == "cut":
        del out[at:]
    elif change == "insert":
        out[at:at] = draw.randbytes(3)
    elif change == "zero":
        out[at : at + 16] = bytes(16)
    elif change == "tail":
        out += draw.choice((b"\n", b" ", b"x", b"\0", b"{}", b"\xff"))
    elif change == "bom":
        out[:0] = b"\xef\xbb\xbf" * draw.choice((1, 2))
    elif change == "twice":
        out += bytes(out)
    elif change == "empty":
        out.clear()
    else:
        lines = bytes(out).split(b"\n")
        draw.shuffle(lines)
        out[:] = b"\n".join(lines)
    return bytes(out)


OF_FORMAT: dict[str, Bytes] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _table(","),
    "tsv": _table("\t"),
    "sqlite": _sqlite,
}


def mutate(draw: random.Random, output: Output, data: bytes) -> bytes:
    """One mutant of a file of that format; bytes alone for text and binary ones, and now and then for all."""
    if output.path.endswith(".safetensors") and draw.random() < 0.8:
        return _safetensors(draw, data)
    if output.format not in OF_FORMAT or draw.random() < 0.2:
        return _bytes(draw, data)
    return OF_FORMAT[output.format](draw, data)


def mutants(environment: Environment, count: int, seed: int = 0) -> Iterator[tuple[str, dict[str, bytes]]]:
    """(what was changed, a whole output tree): `count` of them, spread over the files."""
    draw = random.Random(f"{environment.task_id} {seed}")
    outputs = [o for o in environment.spec.outputs if o.path in environment.output]
    extra = [path for path in environment.output if path not in {o.path for o in outputs}]
    for number in range(count):
        tree = dict(environment.output)
        if extra and draw.random() < 0.3:
            path = draw.choice(extra)
            tree[path] = _bytes(draw, tree[path])
        else:
            output = draw.choice(outputs)
            path = output.path
            tree[path] = mutate(draw, output, tree[path])
        yield f"{number} {path}", tree
