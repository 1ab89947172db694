"""Worked by hand: one merge, one YAML text, and what lies outside the subset."""

from __future__ import annotations

import copy

import pytest
import yaml

from workbench.worlds.formats import yaml_subset
from workbench.worlds.generators.cluster_migration import alternative, answers, reference

BASE = {"labels": {"a": 1, "b": 2}, "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": [1, 2]}
PATCH = {"labels": {"a": None, "c": 3}, "env": [{"name": "Z", "value": "4"}, {"name": "X", "value": "3"}], "args": [9]}
MERGED = {
    "labels": {"b": 2, "c": 3},
    "env": [{"name": "X", "value": "3"}, {"name": "Y", "value": "2"}, {"name": "Z", "value": "4"}],
    "args": [9],
}


def test_strategic_merge():
    assert answers.merged(BASE, PATCH) == MERGED
    target = copy.deepcopy(BASE) | {"args": []}
    reference._patch(target, {k: v for k, v in PATCH.items() if k != "args"})
    assert target == MERGED | {"args": []}


def test_yaml_reads_as_any_reader_does():
    documents = [{"a": [{"name": "x", "value": "250m"}, {"n": -3, "t": "true"}], "e": {}, "u": "http://h:80/p"}, {"q": 'a"b: c', "on": None}]  # fmt: skip
    text = yaml_subset.dump_all(documents)
    assert yaml_subset.load_all(text) == list(yaml.safe_load_all(text)) == documents


def test_flat_paths_of_the_alternative():
    (flat,) = alternative._paths("a:\n  - name: x\n    b: 2\n  - name: y\nc/d: e\n")
    assert flat == {"a/0/name": "x", "a/0/b": 2, "a/1/name": "y", "c~d": "e"}
    assert alternative._tree(list(flat.items())) == {"a": [{"name": "x", "b": 2}, {"name": "y"}], "c/d": "e"}


@pytest.mark.parametrize("text", ["a: {b: 1}\n", "a: 1\na: 2\n", "a: 1\n    b: 2\n", "a:\n\t b: 1\n"])
def test_outside_the_subset(text):
    with pytest.raises(ValueError, match="line"):
        yaml_subset.load_all(text)
