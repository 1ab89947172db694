"""Databases that an agent wrote: whatever the bytes are, reading them ends soon and raises nothing."""

from __future__ import annotations

import random
import sqlite3

import pytest

from workbench.worlds.formats import sqlite_file

SCRIPT = "CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT); CREATE TABLE b (p INTEGER REFERENCES a(x), q TEXT, PRIMARY KEY (p, q));"
ROWS = {"a": [(i, "t" * i) for i in range(1, 60)], "b": [(1, "u"), (2, "v")]}


def made(script: str) -> bytes:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(script)
    return connection.serialize()


def test_what_is_written_is_read():
    data = sqlite_file.write(SCRIPT, ROWS)
    found = sqlite_file.read(data)
    assert found["a"].rows == ROWS["a"]
    assert found["b"].columns == {"p": "INTEGER", "q": "TEXT"}
    assert (found["a"].key, found["b"].key) == (("x",), ("p", "q"))
    assert found["b"].foreign == (("p", "a", "x"),)
    assert list(sqlite_file.read(data, ["b"])) == ["b"]


def test_bytes_do_not_depend_on_the_library():
    data = sqlite_file.write(SCRIPT, ROWS)
    assert data == sqlite_file.write(SCRIPT, ROWS)
    assert data[96:100] == sqlite_file.VERSION


def test_dump_sees_content_only():
    one = made("CREATE TABLE t (a TEXT, b INTEGER); INSERT INTO t VALUES ('x', 1), ('y', 2)")
    other = made(
        "CREATE TABLE gone (z); CREATE TABLE t (b INTEGER, a TEXT); INSERT INTO t VALUES (2, 'y'), (1, 'x'); DROP TABLE gone"
    )
    assert sqlite_file.dump(one) == sqlite_file.dump(other)
    assert sqlite_file.dump(one) != sqlite_file.dump(
        made("CREATE TABLE t (a TEXT, b INTEGER); INSERT INTO t VALUES ('x', 1)")
    )


def test_a_database_left_in_wal_mode_is_read(tmp_path):
    path = tmp_path / "w.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (7)")
    connection.commit()
    connection.close()  # the last connection moves the log into the file
    assert path.read_bytes()[18] == 2
    assert sqlite_file.read(path.read_bytes())["t"].rows == [(7,)]


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIEW t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TABLE t (a, b AS (hex(zeroblob(2000000)))); INSERT INTO t (a) VALUES (1)",
        "CREATE TABLE t (a, b AS (zeroblob(1000000))); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000) INSERT INTO t (a) SELECT i FROM n",
        "CREATE TABLE t (a, b AS (printf('%.*c', 900000, 'a') LIKE '%a%a%a%a%a%a%a%ab')); INSERT INTO t (a) VALUES (1)",
        "CREATE TABLE t (a, b AS (a + 1) STORED); INSERT INTO t (a) VALUES (1)",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
    ],
)
def test_traps_end_soon(script):
    try:
        data = made(script)
    except sqlite3.OperationalError:
        pytest.skip("this SQLite lacks the feature of the trap")
    found = sqlite_file.read(data)
    assert found is None or "t" not in found


def test_damaged_files_raise_nothing():
    data, dice = sqlite_file.write(SCRIPT, ROWS), random.Random(5)
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(dice.randint(1, 8)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        sqlite_file.read(bytes(broken))
        sqlite_file.dump(bytes(broken))
    for size in (0, 15, 16, 100, 511, 5000):
        sqlite_file.read(data[:size])
    assert sqlite_file.read(None) is None
    assert sqlite_file.read(b"SQLite format 3\0" + b"\xff" * 5000) is None
