"""The shipped episodes and labels: whole, consistent with each other, and what their README says of them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

import pytest

from workbench.paths import DATA
from workbench.report import labelled
from workbench.report.label_session import Codebook
from workbench.traces.agreement import agreement
from workbench.traces.labels import LABELS, current, read_labels, resolve
from workbench.traces.reading import read_trace
from workbench.traces.turns import trace_digest, turns

ROOT = DATA / "labels"
EPISODES = sorted((ROOT / "episodes").glob("*.json"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
PASSES = ("claude-a", "claude-b", "claude-c")
PAIRS = {
    "The independent pass": ("claude-a", "claude-c"),
    "The two passes of one session": ("claude-a", "claude-b"),
    "The classifier": ("resolved", "classifier"),
}


@pytest.fixture(scope="module")
def found():
    return labelled.load_labelled(ROOT / "episodes", ROOT / "labels")


@pytest.fixture(scope="module")
def records():
    return read_labels(ROOT / "labels")


def test_there_are_enough_episodes_and_turns(found):
    assert len(EPISODES) >= 8
    roles = Counter(found.episodes["role"])
    assert roles["propose"] >= 6
    assert roles["solve"] >= 2
    assert len(found.turns) >= 320


@pytest.mark.parametrize("path", EPISODES, ids=lambda p: p.stem)
def test_an_episode_is_a_whole_trace_of_the_terminal_agent(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["agent"] == "terminal"
    assert "claude" in data["model"]
    assert (data["ended_by"], data["submitted"]) == ("submit", True)
    trace = read_trace(path)
    assert trace.info.format == "episode"
    assert not trace.report.redacted
    assert trace_digest(trace.steps) == trace_digest(read_trace(path, redact=False).steps)
    # A command ran in a sandbox: its observation begins with how it ended.
    for turn in data["turns"][:-1]:
        assert re.match(r"\[(exit code \d+|timed out|killed)", turn["observation"]), turn["index"]
        assert turn["command"] in turn["text"]
    assert data["turns"][-1]["command"] is None


def test_the_list_of_episodes_is_the_folder(found):
    assert sorted(found.episodes["episode"]) == [p.stem for p in EPISODES]
    assert set(found.episodes["outcome"]) == {"valid", "graded"}
    for path in EPISODES:
        row = found.episodes.set_index("episode").loc[path.stem]
        assert row["messages"] == len(json.loads(path.read_text(encoding="utf-8"))["turns"])
        assert 1 <= row["batches"] <= row["messages"]
    total = f"{found.episodes['messages'].sum()} messages in {found.episodes['batches'].sum()} batches"
    assert total in README


def test_all_passes_labelled_every_turn_once_and_nothing_else(records):
    keys = {t.key for path in EPISODES for t in turns(read_trace(path))}
    votes = current(records)
    assert set(votes) == keys
    for key, said in votes.items():
        assert set(said) == set(PASSES), key
    assert Counter(r.annotator for r in records if not r.adjudicates) == dict.fromkeys(PASSES, len(keys))


def test_every_dispute_is_settled_with_a_reason_and_no_other_turn(records):
    disputed = {key for key, said in current(records).items() if len({x.label for x in said.values()}) > 1}
    settled = {r.key for r in records if r.adjudicates}
    assert settled == disputed
    assert all(r.note and r.annotator == "claude-adjudicated" for r in records if r.adjudicates)
    assert all(r.label in LABELS for r in resolve(records).values())


def test_labels_name_the_version_of_the_codebook(records):
    assert {r.codebook for r in records} == {Codebook.read(ROOT / "codebook.md").version}


def test_moments_stand_on_turns_of_their_episodes(found):
    keys = set(zip(found.turns["episode"], found.turns["step"], found.turns["call"], strict=True))
    rows = list(zip(found.moments["episode"], found.moments["step"], found.moments["call"], strict=True))
    assert set(rows) <= keys
    assert len(rows) == len(set(rows))
    assert set(found.moments["episode"]) == set(found.of(role="propose")["episode"])


def rows_of(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading of the README, by their first cell."""
    part = re.split(r"\n#+ ", README.split(f"\n{heading}\n", 1)[1], maxsplit=1)[0]
    cells = [[c.strip(" `") for c in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


def number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def test_the_readme_counts_what_is_there(found):
    stated = rows_of("## The episodes")
    counted = labelled.turn_counts(found.turns).set_index("episode")
    assert set(stated) == set(counted.index)
    for name, row in counted.iterrows():
        assert stated[name][-7:] == [str(row[k]) for k in ("turns", "text", "calls", *LABELS)], name


@pytest.mark.parametrize(("heading", "sides"), PAIRS.items())
def test_the_readme_states_the_agreement_that_the_code_computes(found, heading, sides):
    stated = rows_of(f"### {heading}")
    _, table = labelled.compare(found, *sides)
    assert set(stated) == set(table["episode"])
    for row in table.to_dict("records"):
        assert stated[row["episode"]] == cells(row), row["episode"]


def cells(row) -> list[str]:
    kappa = f"{number(row['kappa'])} ({number(row['kappa_low'])} to {number(row['kappa_high'])})"
    return [f"{row['equal']} of {row['n']}", f"{100 * row['share']:.0f} %", kappa]


def test_the_readme_sums_up_every_pair_of_sides(found):
    stated = rows_of("## Agreement")
    for sides in (*PAIRS.values(), ("claude-b", "claude-c"), ("resolved", "claude-c")):
        _, table = labelled.compare(found, *sides)
        assert stated.pop("` and `".join(sides)) == cells(table.iloc[-1]), sides
    assert not stated


def test_the_readme_compares_the_blind_pass_with_what_was_settled_before_it(records):
    began = min(r.time for r in records if r.annotator == "claude-c")
    earlier = {key: x.label for key, x in resolve([r for r in records if r.time < began]).items()}
    blind = {r.key: r.label for r in records if r.annotator == "claude-c"}
    found = agreement(earlier, blind, draws=10)
    said = f"on {found.equal} of {found.n} turns ({100 * found.share:.0f} %, κ {found.kappa:.2f})"
    assert said in README


def test_the_readme_lists_every_turn_on_which_passes_differ(found, records):
    episode = dict(zip(found.turns["trace"], found.turns["episode"], strict=True))
    settled = {r.key: r for r in records if r.adjudicates}
    expected = {
        (episode[key[0]], f"{key[1]}, {key[2]}", *(said[who].label for who in PASSES), settled[key].label)
        for key, said in current(records).items()
        if key in settled
    }
    part = README.split("\n### Where they differ\n", 1)[1].split("\n#", 1)[0]
    rows = [[c.strip(" `") for c in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| `")]
    assert {tuple(row[:6]) for row in rows} == expected
    assert len(rows) == len(expected)
    assert {row[6] for row in rows} == {r.note for r in settled.values()}


@pytest.mark.parametrize(("heading", "sides"), PAIRS.items())
def test_the_readme_states_the_confusion_that_the_code_computes(found, heading, sides):
    whole, _ = labelled.compare(found, *sides, draws=10)
    stated = rows_of(f"#### {heading}: confusion")
    assert {k: v[:4] for k, v in stated.items()} == {
        each: [str(n) for n in row] for each, row in zip(LABELS, whole.confusion, strict=True)
    }


def test_the_guide_sums_up_what_the_readme_says(found):
    guide = (DATA.parent / "docs" / "labelling.md").read_text(encoding="utf-8")
    for sides in PAIRS.values():
        whole, _ = labelled.compare(found, *sides)
        low, high = whole.kappa_interval
        said = f"| {whole.n} | {100 * whole.share:.0f} % | {whole.kappa:.2f} ({low:.2f} to {high:.2f}) |"
        assert said in guide, sides
