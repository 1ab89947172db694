"""Reads the migrated database and compares it with the world that the legacy one was made from (expected.json)."""

import json
import sqlite3
from pathlib import Path

import pytest

EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))
SCHEMA = Path("/tests/schema.sql").read_text()


def layout(con):
    objects = con.execute("SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name").fetchall()
    details = [con.execute(f"PRAGMA {what}({name})").fetchall() for _, name, _ in objects for what in ("table_info", "foreign_key_list", "index_list", "index_info")]
    return objects, details


@pytest.fixture()
def db():
    path = Path("/app/library.db")
    assert path.is_file() and not path.is_symlink(), "no /app/library.db"
    con = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    want = sqlite3.connect(":memory:")
    want.executescript(SCHEMA)
    assert layout(con) == layout(want), "the schema is another one"
    yield con
    con.close()


def table(db, name):
    return sorted(list(row) for row in db.execute(f"SELECT * FROM {name}"))


def same(db, name):
    assert table(db, name) == EXPECTED[name]


def test_sound_and_filled(db):
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    for name in ("patrons", "books", "loans"):
        assert db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] > 40


def test_patrons(db):
    same(db, "patrons")


def test_books(db):
    same(db, "books")


def test_authors_and_their_order(db):
    assert table(db, "authors") == EXPECTED["authors"]
    same(db, "book_authors")


def test_rejected_members_and_books(db):
    got = [r for r in table(db, "rejects") if r[0] != "loans"]
    assert got == [r for r in EXPECTED["rejects"] if r[0] != "loans"]


def test_loans(db):
    same(db, "loans")


def test_rejected_loans(db):
    assert [r for r in table(db, "rejects") if r[0] == "loans"] == [r for r in EXPECTED["rejects"] if r[0] == "loans"]


def test_totals(db):
    same(db, "patron_totals")
