"""SQLite databases as bytes: written the same on every machine, read without trusting them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LIMIT = 16 << 20  # bytes; the largest honest database is far below
ROWS = 50_000  # of one table
OPERATIONS = 50  # of 100,000 virtual machine steps each, before a reading is given up
VERSION = (3_040_000).to_bytes(4, "big")  # stands in for the library's own, so that bytes don't depend on it


@dataclass(frozen=True)
class Table:
    """columns: name -> declared type, upper case. key: columns of the primary key. foreign: (column, table, column), sorted."""

    columns: Mapping[str, str]
    rows: list[tuple[Any, ...]]
    key: tuple[str, ...] = ()
    foreign: tuple[tuple[str, str, str], ...] = ()


def write(script: str, rows: Mapping[str, Iterable[Sequence[Any]]]) -> bytes:
    """A database made by the `script` of CREATE statements, then filled table by table, in the order given."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 4096")
        connection.executescript(script)
        connection.execute("BEGIN")
        for table, lines in rows.items():
            width = len(connection.execute(f'PRAGMA table_info("{table}")').fetchall())
            connection.executemany(f'INSERT INTO "{table}" VALUES ({",".join("?" * width)})', lines)
        connection.execute("COMMIT")
        data = bytearray(connection.serialize())
    finally:
        connection.close()
    # Header fields: change counter 24..27, version-valid-for 92..95, library version 96..99.
    data[24:28] = data[92:96] = (1).to_bytes(4, "big")
    data[96:100] = VERSION
    return bytes(data)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(connection: sqlite3.Connection, name: str) -> list[tuple[Any, ...]]:
    """All rows; pages that several rows point to can make a small file's content endless, so it is measured while it's read."""
    rows, size = [], 0
    for row in connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT {ROWS + 1}"):
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        rows.append(row)
        if len(rows) > ROWS or size > LIMIT:
            raise ValueError(f"table {name} holds too much")
    return rows


def _table(connection: sqlite3.Connection, name: str) -> Table | None:
    """None for a table with computed columns: their expressions would run here, and one LIKE can take hours."""
    info = connection.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
    if any(row[6] for row in info):
        return None
    rows = _rows(connection, name)
    key = tuple(row[1] for row in sorted((r for r in info if r[5]), key=lambda r: r[5]))
    links = connection.execute(f"PRAGMA foreign_key_list({_quoted(name)})").fetchall()
    foreign = tuple(sorted((str(row[3]), str(row[2]), str(row[4] or "")) for row in links))
    return Table({row[1]: str(row[2]).upper() for row in info}, rows, key, foreign)


def read(data: bytes | None, names: Iterable[str] | None = None) -> dict[str, Table] | None:
    """The ordinary tables (those in `names`, or all); views, virtual tables and tables with computed columns are left out.

    None when it can't be read in bounds.
    The file is never opened: its bytes are loaded in memory, its schema isn't trusted, lengths and steps are capped.
    """
    if not isinstance(data, bytes) or len(data) > LIMIT or not data.startswith(b"SQLite format 3\0") or len(data) < 512:
        return None
    data = data[:18] + b"\1\1" + data[20:]  # a database left in WAL mode can't be loaded in memory
    connection = sqlite3.connect(":memory:", isolation_level=None)
    spent = [0]

    def step() -> bool:
        spent[0] += 1
        return spent[0] > OPERATIONS

    try:
        connection.deserialize(data)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 20)
        connection.set_progress_handler(step, 100_000)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        listed = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 LIMIT 200"
        ).fetchall()
        plain = [n for n, _ in listed if isinstance(n, str) and not n.startswith("sqlite_")]
        wanted = set(plain) if names is None else set(names)
        found = {name: _table(connection, name) for name in sorted(wanted & set(plain))}
        return {name: table for name, table in found.items() if table is not None}
    except (sqlite3.Error, ValueError, OverflowError, MemoryError, RecursionError):
        return None
    finally:
        connection.close()


def dump(data: bytes) -> str | None:
    """Canonical text of the content: tables and rows sorted, so that two databases of the same content compare equal."""
    tables = read(data)
    if tables is None:
        return None
    lines = []
    for name, table in tables.items():
        lines.append(f"{name} {dict(sorted(table.columns.items()))} key={table.key} foreign={table.foreign}")
        order = sorted(range(len(table.columns)), key=lambda i, names=list(table.columns): names[i])
        lines += sorted(repr(tuple(row[i] for i in order)) for row in table.rows)
    return "\n".join(lines)
