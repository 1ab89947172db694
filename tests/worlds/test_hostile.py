"""Reading hostile text: None instead of an exception, and no guess at what was meant."""

from __future__ import annotations

import pytest

from workbench.worlds.formats import hostile, records


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[" * 200_000,
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"9" * 10_000,
        b'{"a": 1, "a": 2}',
        b"{]",
        b'{"a":' * 50_000,
    ],
    ids=[
        "empty",
        "not text",
        "deep",
        "nan",
        "infinity",
        "too large",
        "too long",
        "key twice",
        "broken",
        "deep objects",
    ],
)
def test_no_json(data):
    assert hostile.json_file({"f": data}, "f") is None


def test_lines_of_objects():
    assert hostile.jsonl_file({"f": b'{"a": 1}\r\n\n{"a": 2}\n'}, "f") == [{"a": 1}, {"a": 2}]
    assert hostile.jsonl_file({"f": b'{"a": 1}\n[2]\n'}, "f") is None
    assert hostile.jsonl_file({}, "f") is None


def test_tables():
    assert hostile.table_file({"f": b'\xef\xbb\xbfa,b\r\n"1","x,y"\r\n'}, "f") == (["a", "b"], [["1", "x,y"]])
    for data in (b"", b"a,b\n1\n", b'a,b\n"1,2\n', b"a\0,b\n", b"\xff"):
        assert hostile.table_file({"f": data}, "f") is None


def test_same_means_the_same_json():
    assert hostile.same({"a": [1, "x", None]}, {"a": [1.0, "x", None]})
    for expected, got in (
        (1, True),
        (0, False),
        (True, 1),
        ("1", 1),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        (None, []),
        ("", None),
        (1, [1]),
    ):
        assert not hostile.same(expected, got)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert not hostile.same({"a": 1}, {"a": deep})


def test_a_file_larger_than_any_honest_one_is_not_read():
    assert hostile.text({"f": b" " * hostile.LIMIT}, "f") is not None
    assert hostile.text({"f": b" " * (hostile.LIMIT + 1)}, "f") is None


def test_records_chosen_to_collide_are_not_counted_one_by_one():
    """Python hashes whole numbers modulo 2**61 - 1: counting these would take hours."""
    collide = [number * (2**61 - 1) for number in range(1, 100_000)]
    assert records.share([1, 2, 3], collide) == 0.0
    assert records.share([1, 2, 3], [3, 2, 1]) == 0.99
    assert records.share([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]) == pytest.approx(5 / 6)


def test_more_lines_than_any_honest_file_has_are_not_parsed():
    assert len(hostile.jsonl_file({"f": b"{}\n" * (hostile.LINES - 1)}, "f")) == hostile.LINES - 1
    assert hostile.jsonl_file({"f": b"{}\n" * (hostile.LINES + 1)}, "f") is None


def test_more_objects_than_any_honest_file_has_are_not_made():
    assert len(hostile.parse_json("[" + "{}," * (hostile.HOLDERS - 2) + "{}]")) == hostile.HOLDERS - 1
    assert hostile.parse_json("[" + "{}," * hostile.HOLDERS + "{}]") is None
