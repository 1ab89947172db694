"""Compares the merged tree and the conflicts with the fates that the trees were made from (expected.json)."""

import json
from pathlib import Path

import pytest

MERGED = Path("/app/merged")
EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))


def merged(kind):
    return {p.relative_to(MERGED).as_posix(): p.read_bytes().decode() for p in MERGED.rglob(f"*{kind}") if p.is_file() and not p.is_symlink()}


def wanted(kind):
    return {f: text for f, text in EXPECTED["files"].items() if f.endswith(kind)}


@pytest.fixture()
def conflicts():
    return json.loads(Path("/app/conflicts.json").read_text(encoding="utf-8"))


def by_rule(rows, *rules):
    return [r for r in rows if r["rule"] in rules]


def test_the_right_files_exist():
    assert sorted(merged("")) == sorted(EXPECTED["files"])


def test_lists_are_merged_as_sets():
    assert merged(".list") == wanted(".list")


def test_conf_files_to_the_byte():
    assert merged(".conf") == wanted(".conf")


def test_conflicts_are_found(conflicts):
    keys = ("file", "section", "key", "base", "ours", "theirs")
    assert [[r[k] for k in keys] for r in conflicts] == [[r[k] for k in keys] for r in EXPECTED["conflicts"]]


@pytest.mark.parametrize("rules", [("security",), ("changed", "ours"), ("number",), ("union",)], ids="+".join)
def test_conflicts_are_resolved(conflicts, rules):
    assert by_rule(conflicts, *rules) == by_rule(EXPECTED["conflicts"], *rules)
