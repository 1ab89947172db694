from __future__ import annotations

import pytest

from workbench.runs import load_profile, profiles
from workbench.runs.profiles import Profile, ProfileError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    (tmp_path / "tiny.yaml").write_text("x: {rounds: 1, names: [a, b], map: {k: 1}}\nempty: {}\n")
    (tmp_path / "paper.yaml").write_text(
        "x:\n  rounds: {value: 16, source: 'A paper, Table 3'}\n  names: {value: [], source: ours}\n"
        "  map: {value: null, source: unpublished}\n"
    )


def test_values_by_name_and_their_sources():
    tiny = load_profile("x", "tiny")
    assert (tiny.rounds, tiny["names"], tiny["map"], dict(tiny)["rounds"]) == (1, ["a", "b"], {"k": 1}, 1)
    paper = load_profile("x", "paper")
    assert paper.rounds == 16
    assert paper.table()[0] == {"name": "rounds", "value": 16, "source": "A paper, Table 3"}


def test_what_is_unpublished_must_be_given():
    with pytest.raises(ProfileError, match="map is unpublished"):
        load_profile("x", "paper")["map"]
    assert load_profile("x", "paper", map={"k": 2})["map"] == {"k": 2}


def test_parameters_win_and_empty_ones_leave_the_profile():
    assert load_profile("x", "tiny", rounds=5, names=None, map="").rounds == 5
    given = load_profile("x", "tiny", rounds=0, names=None, map="")
    assert (given.rounds, given.names, given["map"]) == (0, ["a", "b"], {"k": 1})
    assert given.sources["rounds"] == "parameter"


def test_the_variable_wins_over_the_notebooks_default(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROFILE", "paper")
    assert load_profile("x", "tiny").name == "paper"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "tinny"), "no profile 'tinny': there are paper, tiny"),
        (("y", "tiny"), "no section for the notebook 'y'"),
    ],
)
def test_what_is_not_there_is_named(arguments, message):
    with pytest.raises(ProfileError, match=message):
        load_profile(*arguments)


def test_a_name_that_is_not_in_the_profile():
    with pytest.raises(ProfileError, match="did you mean 'rounds'"):
        load_profile("x", "tiny", round=3)
    with pytest.raises(AttributeError, match="did you mean 'rounds'"):
        _ = load_profile("x", "tiny").round


def test_it_is_asked_like_any_mapping():
    profile = Profile("mine", "x", {"a": 1, "b": None}, {"b": "unpublished"})
    assert (profile.get("a"), profile.get("none"), profile.get("none", 7)) == (1, None, 7)
    assert "a" in profile
    assert "none" not in profile
    with pytest.raises(ProfileError, match="unpublished"):
        profile.get("b")


def test_a_profile_like_another_has_its_values_and_its_sources(tmp_path):
    (tmp_path / "mine.yaml").write_text("like: paper\nx: {rounds: 4}\n")
    mine = load_profile("x", "mine", map={"k": 2})
    assert (mine.rounds, mine.names, mine["map"], mine.sources["rounds"]) == (4, [], {"k": 2}, "")
    assert mine.sources["names"] == "ours"
    with pytest.raises(ProfileError, match="no section for the notebook 'y'"):
        load_profile("y", "mine")


def test_a_value_that_the_other_profile_does_not_have_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_text("like: tiny\nx: {round: 4}\n")
    with pytest.raises(ProfileError, match=r"mine\.yaml: 'round' is no value of profile tiny; did you mean 'rounds'"):
        load_profile("x", "mine")
