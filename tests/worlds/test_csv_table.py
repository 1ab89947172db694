"""Tables of clean files: what is written is read back, and only what has to be is quoted."""

from __future__ import annotations

from workbench.worlds.formats import csv_table
from workbench.worlds.trees import edit_json


def test_plain_cells_stand_without_quotes():
    assert csv_table.table(("id", "count"), [("a", 1), ("b", "")]) == b"id,count\na,1\nb,\n"


def test_cells_with_signs_of_the_format_come_back():
    rows = [["a,b", 'say "no"'], ["two\nlines", "tab\there"], ["", "é"]]
    for sign in (",", "\t"):
        data = csv_table.table(("one", "two"), iter(rows), sign)
        assert csv_table.rows(data, sign) == rows


def test_a_table_of_a_header_alone_has_no_rows():
    assert csv_table.rows(csv_table.table(("one",), ())) == []


def test_an_edit_leaves_the_tree_as_it_was():
    tree = {"a.json": b'{"n": [1, 2]}', "b": b"x"}
    assert edit_json(tree, "a.json", lambda v: v["n"].pop()) == {"a.json": b'{"n": [1]}', "b": b"x"}
    assert tree["a.json"] == b'{"n": [1, 2]}'
