"""The comparison's file: what it expands to, and what it says when something is wrong."""

from __future__ import annotations

import pytest

from workbench.proposer.compare_config import CompareError, entries, read_config
from workbench.proposer.compare_open import Opener


def test_models_times_methods_and_controls():
    config = {"models": [{"name": "a b", "model": "designer:0.5"}, "smollm2"], "controls": ["world"], "self_check": [True, False],
              "optimize": ["a b"]}  # fmt: skip
    assert [e.id for e in entries(config)] == [
        "a-b-prompt", "a-b-feedback", "a-b-harness", "a-b-harness-unchecked", "a-b-harness-optimized",
        "smollm2-prompt", "smollm2-feedback", "smollm2-harness", "smollm2-harness-unchecked", "world",
    ]  # fmt: skip


def test_a_model_may_have_methods_and_checks_of_its_own():
    row = {"model": "smollm2", "methods": ["harness"], "self_check": [True]}
    assert [e.id for e in entries({"models": [row], "self_check": [True, False]})] == ["smollm2-harness"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "nothing to compare"),
        ({"model": []}, "unknown key model: there are controls, methods"),
        ({"models": [{"name": "x"}]}, "a model needs at least `model: NAME`"),
        ({"models": [{"model": "m", "price": 3}]}, "unknown key price; there are .*prices"),
        ({"models": [{"model": "m", "agents": "pi"}]}, "unknown key agents; there are agent"),
        ({"models": [{"model": "m", "agent": "vim"}]}, "no agent 'vim': use terminal"),
        ({"models": [{"model": "m", "agent": "codex"}]}, "codex needs endpoint"),
        ({"models": [{"model": "m", "prices": {"input": -1, "output": 2}}]}, "price of m, input"),
        ({"models": ["m"], "methods": ["prompts"]}, "methods: prompts is none of prompt, feedback, harness"),
        ({"models": ["m", "M"]}, "names must differ: m-feedback"),
        ({"models": ["m"], "optimize": ["n"]}, "optimize: n is none of m"),
    ],
)
def test_what_is_wrong_is_told(config, message):
    with pytest.raises(CompareError, match=message):
        entries(config)


def test_a_file_may_be_a_list_of_models(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("- {model: m, prices: {input: 1, output: 2.5}}\n")
    (first, *_) = entries(read_config(path))
    assert (first.spec.price.input, first.spec.price.output) == (1, 2.5)
    path.write_text("a: [")
    with pytest.raises(CompareError, match=r"c\.yaml: cannot be read"):
        read_config(path)
    path.write_text("7")
    with pytest.raises(CompareError, match="expected a mapping"):
        read_config(path)
    with pytest.raises(CompareError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")


def test_a_model_that_cannot_be_opened_is_named(tmp_path, backend):
    (entry, *_) = entries({"models": [{"name": "x", "model": "nothing:here"}]})
    with pytest.raises(CompareError, match=r"x-prompt: no model 'nothing:here'"):
        Opener(None, backend, tmp_path).open(entry)
