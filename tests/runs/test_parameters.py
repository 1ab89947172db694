from __future__ import annotations

from pathlib import Path

import pytest

from workbench.runs.parameters import ParameterError, check_parameters, parse_parameters, read_parameters, type_members

CELL = """
profile: str = "micro"  # smoke, micro, small or paper
rounds: int | None = None  # None: the profile's
rate: float = 0.5
fast = True
names: list[str] = ["a"]
seeds: list[int] = [1]
table: dict = {}
anything = None
"""


@pytest.fixture(scope="module")
def known():
    return parse_parameters(CELL)


def test_names_types_defaults_and_help(known):
    assert list(known) == ["profile", "rounds", "rate", "fast", "names", "seeds", "table", "anything"]
    assert known["profile"].help == "smoke, micro, small or paper"
    assert (known["rounds"].type, known["rounds"].default) == ("int | None", None)
    assert known["fast"].type == "bool"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rounds", "12", 12), ("rounds", "none", None), ("rounds", 3.0, 3), ("rate", "1e-3", 0.001), ("rate", 1, 1.0),
        ("fast", "no", False), ("fast", "TRUE", True), ("fast", "1", True), ("names", "x,y", ["x", "y"]),
        ("names", "1,2", ["1", "2"]), ("names", "['x, y']", ["x, y"]), ("names", ("x",), ["x"]), ("seeds", "1,2", [1, 2]),
        ("seeds", "[3]", [3]), ("table", "{'a': 1}", {"a": 1}), ("profile", "12", "12"), ("profile", Path("/x"), "/x"),
        ("anything", "3", 3), ("anything", "abc", "abc"), ("profile", "", ""),
    ],
)  # fmt: skip
def test_values_become_the_parameters_type(known, name, text, value):
    found = check_parameters(known, {name: text}, "nb")[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rounds", "1.5", "rounds must be a whole number or None, not '1.5'"),
        ("rounds", True, "rounds must be a whole number"),
        ("rate", "fast", "rate must be a number, not 'fast'"),
        ("fast", "maybe", "fast must be true or false, not 'maybe'"),
        ("seeds", "a,b", "seeds must be a list such as"),
        ("table", "[1]", "table must be a dict"),
        ("profile", 3, "profile must be text, not 3"),
    ],
)
def test_a_wrong_type_says_what_is_expected(known, name, text, message):
    with pytest.raises(ParameterError) as error:
        check_parameters(known, {name: text}, "nb")
    assert message in str(error.value)


def test_an_unknown_name_is_refused_with_the_close_match_and_all_faults_are_told(known):
    with pytest.raises(ParameterError) as error:
        check_parameters(known, {"round": 3, "rate": "x", "zzz": 1}, "40_flywheel")
    lines = str(error.value).splitlines()
    assert lines[0] == "40_flywheel has no parameter 'round'; did you mean 'rounds'?"
    assert "rate must be a number" in lines[1]
    assert "zzz" in lines[2]
    assert "profile, rounds" in lines[2]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("n = 3\ntwice = 2 * n", "twice is not a plain literal"),
        ("import os", "line 1 of the parameters cell is no `name: type = value`"),
        ("x: int", "no `name: type = value`"),
        ("x = (", "no Python"),
    ],
)
def test_a_parameters_cell_must_be_plain(cell, message):
    with pytest.raises(ParameterError, match=message):
        parse_parameters(cell)


def test_unions_and_what_they_hold():
    assert type_members("list[int] | dict[str, int | None] | None") == [
        ("list", "int"),
        ("dict", "str, int | None"),
        ("None", ""),
    ]


def test_a_notebook_must_have_one_parameters_cell(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text('{"cells": []}')
    with pytest.raises(ParameterError, match="one code cell tagged `parameters`"):
        read_parameters(path)
    path.write_text("hello")
    with pytest.raises(ParameterError, match="no notebook"):
        read_parameters(path)
