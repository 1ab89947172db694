"""Every operator of the registry: it changes what it says, and its inverse gives the same bytes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.worlds import Defect, WorldError
from workbench.worlds.corruption import apply, apply_all, describe, invert, invert_all, kinds, operator, seal

TABLE = (
    b"id,day,amount,weight,region,note\n"
    b'1,2024-03-05,1234.50,2.5,north,"says ""hi"", twice"\n'
    b"2,2024-12-31,-98765.00,10,south,\n"
    b"3,2025-02-28,0.07,0.125,north,plain\n"
)
CRLF = TABLE.replace(b"\n", b"\r\n")
LINES = b'{"id": 1, "at": "2024-01-01T23:59:50Z", "n": 3}\n{"id": 2, "at": "2024-02-29T00:00:00Z", "n": -4}\n'
TREE = {"input/a.csv": TABLE, "input/crlf.csv": CRLF, "input/b.jsonl": LINES, "input/c.bin": bytes(range(256))}

EXAMPLES = {
    "category_drift": [{"column": "region", "mapping": {"north": ["NORTH", "N."], "south": "S"}}],
    "date_format_drift": [
        {"column": "day", "from": "%Y-%m-%d", "to": "%d/%m/%Y"},
        {"column": "day", "rows": [1], "from": "%Y-%m-%d", "to": "%d %b %y"},
    ],
    "clock_skew": [{"column": "day", "format": "%Y-%m-%d", "seconds": 86400}],
    "unit_drift": [
        {"column": "weight", "factor": "1000"},
        {"column": "weight", "rows": [0, 1], "factor": "2.20462", "suffix": " lb"},
        {"column": "weight", "factor": "1.8", "offset": "32"},
    ],
    "numeric_format_drift": [
        {"column": "amount", "style": style}
        for style in ("thousands", "parentheses", "trailing_minus", "comma_decimal", "currency")
    ],
    "whitespace_noise": [{"columns": ["region", "note"], "before": "  ", "after": "\t"}],
    "swapped_fields": [{"columns": ["region", "note"], "rows": [0, 2]}],
    "scrambled_index": [{"column": "id", "rows": [0, 1, 2], "order": [2, 0, 1]}],
    "contradictory_record": [{"column": "amount", "where": {"id": ["2"]}, "values": ["5.00"]}],
    "duplicate_records": [
        {"rows": [0, 2]},
        {"rows": [2, 0], "places": [0, 0]},
        {"where": {"id": ["2"]}, "set": {"note": "again"}},
    ],
    "orphan_records": [
        {
            "records": [{"id": 9, "day": "2024-01-01", "amount": "1", "weight": "1", "region": "x", "note": "a,b"}],
            "places": [1],
        }
    ],
    "missing_records": [{"rows": [2, 0]}, {"where": {"region": ["south"]}}],
    "truncated_file": [{"lines": 2}, {"bytes": 7}],
    "encoding_drift": [{"encoding": "utf-16"}, {"encoding": "utf-8-sig"}],
    "delimiter_drift": [{"to": ";"}, {"to": "\t"}],
    "schema_drift": [
        {"rename": {"amount": "total", "id": "Order ID"}, "order": ["note", "id", "day", "region", "weight", "amount"]}
    ],
    "bit_rot": [{"offsets": [0, 40], "masks": [1, 128]}],
    "stale_copy": [
        {"copy": "input/old.csv", "edits": [[0, "amount", "7.00"]], "drop": [2]},
        {"copy": "input/old.csv", "text": "id\n1\n"},
    ],
    "config_drift": [{"edits": [["2,2024-12-31", "2,2023-12-31"], ["plain", "other"]]}],
}
CASES = [(kind, params) for kind, examples in EXAMPLES.items() for params in examples]


def test_there_are_at_least_fourteen_and_each_built_in_one_is_tested_here():
    built_in = {k for k in kinds() if operator(k).apply.__module__.split("_")[-1] in ("cells", "rows", "files")}
    assert len(kinds()) >= 14
    assert built_in == set(EXAMPLES)


@pytest.mark.parametrize("path", ["input/a.csv", "input/crlf.csv"])
@pytest.mark.parametrize(("kind", "params"), CASES)
def test_inverse_gives_the_same_bytes_back(kind, params, path):
    defect = seal(TREE, Defect(kind, path, params))
    damaged = apply(TREE, defect)
    assert damaged != TREE
    assert invert(damaged, defect) == TREE
    assert damaged == apply(TREE, Defect(kind, path, params)), "sealing changes nothing of what is done"
    json.dumps(defect.params, allow_nan=False)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("clock_skew", {"column": "at", "format": "%Y-%m-%dT%H:%M:%SZ", "seconds": 75}),
        ("unit_drift", {"column": "n", "factor": "1000"}),
        ("schema_drift", {"rename": {"n": "count"}, "order": ["n", "at", "id"]}),
        ("duplicate_records", {"rows": [1], "set": {"n": 5}}),
        ("orphan_records", {"records": [{"id": 7, "at": "2024-01-01T00:00:00Z", "n": 0}]}),
        ("missing_records", {"where": {"id": [2]}}),
    ],
)
def test_json_lines(kind, params):
    defect = seal(TREE, Defect(kind, "input/b.jsonl", params))
    damaged = apply(TREE, defect)
    assert invert(damaged, defect) == TREE
    assert all(json.loads(line) for line in damaged["input/b.jsonl"].splitlines())


def test_what_the_damage_looks_like():
    def after(kind: str, **params: object) -> list[str]:
        return apply(TREE, Defect(kind, "input/a.csv", params))["input/a.csv"].decode().splitlines()

    assert after("numeric_format_drift", column="amount", style="parentheses", rows=[1])[2].split(",2")[0] == "2"
    assert '"(98,765.00)"' in after("numeric_format_drift", column="amount", style="parentheses", rows=[1])[2]
    assert after("unit_drift", column="weight", factor="1000")[1].split(",")[3] == "2500.0"
    assert after("date_format_drift", column="day", **{"from": "%Y-%m-%d", "to": "%d %b %Y"})[3].startswith("3,28 Feb")
    assert after("clock_skew", column="day", format="%Y-%m-%d", seconds=86400)[2].startswith("2,2025-01-01")
    assert [line[0] for line in after("scrambled_index", column="id", rows=[0, 1, 2], order=[2, 0, 1])] == list("i312")
    assert [line[0] for line in after("duplicate_records", rows=[2, 0], places=[0, 1])] == list("i31123")
    assert [line[0] for line in after("missing_records", rows=[1])] == list("i13")
    assert after("schema_drift", rename={"id": "ID"})[0].startswith("ID,day")
    assert after("delimiter_drift", to=";")[2] == "2;2024-12-31;-98765.00;10;south;"


def test_a_plan_is_applied_in_order_and_undone_backward():
    plan = [
        Defect("date_format_drift", "input/a.csv", {"column": "day", "from": "%Y-%m-%d", "to": "%d/%m/%Y"}),
        Defect("duplicate_records", "input/a.csv", {"rows": [0]}),
        Defect("missing_records", "input/a.csv", {"where": {"id": ["2"]}}),
        Defect("encoding_drift", "input/a.csv", {"encoding": "utf-16"}),
        Defect("bit_rot", "input/c.bin", {"offsets": [3], "masks": [8]}),
    ]
    damaged, sealed = apply_all(TREE, plan)
    assert [d.kind for d in sealed] == [d.kind for d in plan]
    assert invert_all(damaged, sealed) == TREE
    for left_out in range(len(plan)):
        rest = plan[:left_out] + plan[left_out + 1 :]
        damaged, sealed = apply_all(TREE, rest)
        assert invert_all(damaged, sealed) == TREE
    with pytest.raises(WorldError, match="too late"):
        apply_all(TREE, reversed(plan))


@pytest.mark.parametrize(
    ("defect", "says"),
    [
        (Defect("rust", "input/a.csv"), "no corruption kind 'rust'.*bit_rot"),
        (Defect("bit_rot", "input/none"), "no file 'input/none'"),
        (Defect("category_drift", "input/a.csv", {"column": "region"}), r"needs params\['mapping'\]"),
        (Defect("category_drift", "input/a.csv", {"column": "place", "mapping": {}}), "no column 'place'.*region"),
        (Defect("missing_records", "input/a.csv", {"rows": [3]}), "no row 3"),
        (Defect("missing_records", "input/a.csv", {"where": {"id": ["8"]}}), "no record has"),
        (Defect("missing_records", "input/a.csv", {"rows": []}), "changes nothing"),
        (Defect("missing_records", "input/c.bin", {"rows": [0]}), "not UTF-8"),
        (Defect("unit_drift", "input/a.csv", {"column": "note", "factor": "2"}), "not a number"),
        (
            Defect("unit_drift", "input/b.jsonl", {"column": "n", "factor": "0.12345678901234567891"}),
            "can't be undone exactly",
        ),
        (Defect("bit_rot", "input/c.bin", {"offsets": [0], "masks": [b"x"]}), "plain JSON"),
        (Defect("truncated_file", "input/c.bin", {"bytes": 300}), "cannot be cut off"),
        (Defect("config_drift", "input/a.csv", {"edits": [["north", "x"]]}), "stands 2 times"),
        (Defect("encoding_drift", "input/a.csv", {"encoding": "no-such"}), "encoding"),
    ],
)
def test_what_does_not_fit_says_why(defect, says):
    with pytest.raises(WorldError, match=says):
        seal(TREE, defect)


def test_an_inverse_needs_its_seal():
    damaged = apply(TREE, Defect("missing_records", "input/a.csv", {"rows": [0]}))
    with pytest.raises(WorldError, match="not sealed"):
        invert(damaged, Defect("missing_records", "input/a.csv", {"rows": [0]}))


def test_descriptions_tell_every_parameter():
    for row in describe():
        assert row["about"]
        assert row["params"]


cell = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=6)
tables = st.lists(st.tuples(st.integers(-(10**9), 10**9), st.dates(), cell), min_size=1, max_size=6)


def written(rows: list) -> bytes:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(s in text for s in ',"') else text

    return "".join(["n,day,word\n", *(f"{n},{day.isoformat()},{quoted(word)}\n" for n, day, word in rows)]).encode()


@settings(max_examples=60, deadline=None)
@given(rows=tables, data=st.data())
def test_any_table_comes_back(rows, data):
    tree = {"input/t.csv": written(rows)}
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    order = data.draw(st.permutations(range(len(some))))
    for kind, params in (
        ("unit_drift", {"column": "n", "rows": some, "factor": "0.0254"}),
        ("date_format_drift", {"column": "day", "rows": some, "from": "%Y-%m-%d", "to": "%b %d %Y"}),
        ("swapped_fields", {"columns": ["n", "word"], "rows": some}),
        ("scrambled_index", {"column": "n", "rows": some, "order": order}),
        ("whitespace_noise", {"column": "word", "rows": some}),
        ("numeric_format_drift", {"column": "n", "rows": some, "style": "parentheses"}),
        ("duplicate_records", {"rows": some, "places": some}),
        ("missing_records", {"rows": some}),
        ("truncated_file", {"lines": len(some)}),
        ("delimiter_drift", {"to": ";"}),
        ("encoding_drift", {"encoding": "utf-16"}),
        ("schema_drift", {"order": ["word", "n", "day"], "rename": {"day": "date"}}),
    ):
        check_comes_back(tree, Defect(kind, "input/t.csv", params))


def check_comes_back(tree: dict[str, bytes], defect: Defect) -> None:
    """It comes back, or is refused: what changes nothing, a value with outer quotes of its own, an odd quote."""
    try:
        sealed = seal(tree, defect)
    except WorldError as error:
        refused = str(error)
    else:
        assert invert(apply(tree, defect), sealed) == tree
        return
    assert any(why in refused for why in ("changes nothing", "open quote", "undone exactly", "control character"))
