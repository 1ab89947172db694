from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tasks.ngrams import NgramIndex, grams, similarity, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write /app/out_1.CSV, please!", ["write", "app", "out", "1", "csv", "please"]),
        ("| a | b |\n| --- | --- |", ["a", "b"]),
        ("Größe ÉTÉ 数据 ٣", ["größe", "été", "数据", "٣"]),
        ("ze\u200bro \ufeffone", ["zero", "one"]),
        ("ｆｕｌｌ ﬁne", ["full", "fine"]),
        ("e\u0301te\u0301", ["été"]),
        ("don't", ["don", "t"]),
        ("", []),
        ("___ --- \0", []),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected


@given(st.text(max_size=80))
def test_tokens_are_lower_case_runs(text):
    found = tokens(text)
    assert all(word and not set(word) & set(" _-\n") for word in found)
    assert tokens(" | ".join(found)) == found


def test_grams_move_by_one():
    assert list(grams("a b c d".split(), 3)) == [("a", "b", "c"), ("b", "c", "d")]
    assert list(grams(["a"], 2)) == []


@pytest.mark.parametrize("exact", [True, False])
def test_index_finds_windows_and_places(exact):
    index = NgramIndex(2, exact=exact)
    index.add(7, "a b c a b".split())
    index.add(8, "b c".split())
    assert len(index) == 3
    assert list(index.find("x b c".split())) == [(1, [(7, 1), (8, 0)])]
    assert list(index.find("a b".split())) == [(0, [(7, 0), (7, 3)])]
    assert index.touches("a b".split())
    assert not index.touches("b a".split())
    assert not index.touches(["a"])


def test_set_aside_before_and_after():
    for early in (True, False):
        index = NgramIndex(2)
        if early:
            index.set_aside(["A, b!"])
        index.add(0, "a b c".split())
        index.set_aside(["a b"])
        assert not index.touches("a b".split())
        assert index.touches("b c".split()), "a window that only overlaps the scaffold stays"


def test_a_window_has_a_token():
    with pytest.raises(ValueError, match="at least one"):
        NgramIndex(0)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_index_agrees_with_a_plain_search(held, words):
    index = NgramIndex(3)
    index.add(0, held)
    plain = {(i, j) for i in range(len(words) - 2) for j in range(len(held) - 2) if words[i : i + 3] == held[j : j + 3]}
    assert {(i, j) for i, places in index.find(words) for _, j in places} == plain
    assert index.touches(words) == bool(plain)


def test_similarity():
    text = "Sort the lines of the file by their second column"
    assert similarity(text, text.upper() + "!") == 1
    assert similarity(text, "Start the server on port eighty and leave it running") == 0
    assert similarity("a b c d", "a b c e") == 1 / 3
    assert similarity("", "") == 1
    assert similarity("", "a") == 0
    assert similarity("a", "a") == 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_symmetric_and_bounded(a, b):
    assert 0 <= similarity(a, b) == similarity(b, a) <= 1
    assert similarity(a, a) == 1
