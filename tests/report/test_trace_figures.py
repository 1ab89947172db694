from __future__ import annotations

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from workbench.paths import DATA
from workbench.report import figures, labelled, trace_figures
from workbench.traces import Episode, Turn
from workbench.traces.labels import LABELS, Label, LabelJournal
from workbench.traces.reading import read_trace
from workbench.traces.turns import turns

ROOT = DATA / "labels"
HOSTILE = "costs $1 and $2 \x1b[31m\nred " + "very " * 30 + "long"


@pytest.fixture(scope="module")
def shipped():
    return labelled.load_labelled(ROOT / "episodes", ROOT / "labels")


@pytest.fixture
def made(tmp_path):
    """Two small episodes, one turn of one of them disputed, one without a label."""
    folder = tmp_path / "episodes"
    folder.mkdir()
    for name, commands in (("one", ["cat a", "echo x > b", "python3 test_b.py"]), ("two", ["ls", "make"])):
        shown = tuple(Turn(i, f"I go on.\n```bash\n{c}\n```", c, "[exit code 0]", 0) for i, c in enumerate(commands))
        episode = Episode("terminal", shown, "a model", True, instruction=f"task {name}").to_json()
        (folder / f"{name}.json").write_text(
            json.dumps(episode | {"turns": [t | {"usd": 0} for t in episode["turns"]]})
        )
    journal = LabelJournal(tmp_path / "labels" / "a.jsonl")
    for name, said in (("one", "rrwwtt"), ("two", "rrb")):
        keys = [t.key for t in turns(read_trace(folder / f"{name}.json"))]
        for key, letter in zip(keys, said, strict=False):
            journal.add(Label(*key, dict(zip("rbwt", LABELS, strict=True))[letter], "me"))
    journal.add(Label(*keys[0], "test", "you"))
    journal.close()
    return folder, tmp_path / "labels"


def test_a_turn_table_has_a_row_a_turn_with_what_is_said_of_it(made):
    found = labelled.load_labelled(*made)
    table = found.turns
    assert list(table.columns) == list(labelled.COLUMNS)
    assert list(table["label"]) == ["read", "read", "write", "write", "test", "test", "", "read", "build", ""]
    assert list(table["status"][6:]) == ["disputed", "single", "single", ""]
    assert list(table["kind"][:4]) == ["text", "call", "text", "call"]
    assert list(table["position"][6:]) == [0.125, 0.375, 0.625, 0.875]
    assert found.annotators() == ["me", "you"]
    assert found.episodes.empty
    assert found.of(role="propose").empty


def test_counts_agree_with_counts_made_another_way(shipped):
    counts = labelled.turn_counts(shipped.turns).set_index("episode")
    for path in (ROOT / "episodes").glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        calls = sum(t["command"] is not None for t in data["turns"])
        words = sum(not t["text"].startswith("```bash") or t["command"] is None for t in data["turns"])
        row = counts.loc[path.name.removesuffix(".json")]
        assert (row["calls"], row["text"], row["turns"]) == (calls, words, calls + words)
        assert row[list(LABELS)].sum() == row["turns"]


def test_two_sides_are_compared_and_unknown_ones_named(made):
    found = labelled.load_labelled(*made)
    whole, table = labelled.compare(found, "me", "you", draws=20)
    assert (whole.n, whole.equal) == (1, 0)
    assert list(table["episode"]) == ["two", "all"]
    grid = labelled.confusion(whole, "me", "you")
    assert list(grid.columns) == ["me", *(f"you: {each}" for each in LABELS), "same"]
    assert grid["you: test"].sum() == 1
    with pytest.raises(ValueError, match="no labels of 'him': there are those of me, you"):
        found.side("him")


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match="no traces"):
        labelled.trace_files(tmp_path)


def test_a_folder_that_is_not_there_is_named(made, tmp_path):
    with pytest.raises(ValueError, match="nowhere is no folder: give a folder of traces"):
        labelled.load_labelled(tmp_path / "nowhere", made[1])
    with pytest.raises(ValueError, match="nowhere does not exist: give a journal of labels"):
        labelled.load_labelled(made[0], tmp_path / "nowhere")


def test_a_table_without_its_columns_is_named(made):
    folder, labels = made
    (folder.parent / "moments.csv").write_text("episode,step\none,1\n")
    with pytest.raises(ValueError, match=r"moments\.csv: no column call, text"):
        labelled.load_labelled(folder, labels)


def test_the_field_is_a_share_and_lies_where_the_turns_are():
    shares = trace_figures.field([0.1, 0.12, 0.9], ["read", "read", "test"], [0.1, 0.5, 0.9], 0.05)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    read, test = shares[LABELS.index("read")], shares[LABELS.index("test")]
    assert read[0] > 0.99
    assert test[2] > 0.99
    assert not shares[LABELS.index("build")].any()
    far = trace_figures.field([0.1], ["read"], [1.0], 0.001)  # no turn near: their mean, not nothing
    np.testing.assert_allclose(far.sum(axis=0), 1)


def test_paths_number_their_moments_in_each_panel(shipped):
    drawn = shipped.of(case="stack-language", role="propose")
    fig, table = trace_figures.label_paths(drawn, shipped.moments, names=shipped.names())
    assert len(fig.axes) == drawn["episode"].nunique()
    assert len(table) == len(drawn)
    for episode, part in table[table["moment"] > 0].groupby("episode"):
        assert list(part["moment"]) == list(range(1, len(part) + 1))
        assert list(part["text"]) == list(shipped.moments.loc[shipped.moments["episode"] == episode, "text"])


def test_the_drawn_path_is_the_labels_and_breaks_where_there_is_none(made):
    found = labelled.load_labelled(*made)
    fig, _ = trace_figures.label_paths(found.turns)
    one, two = (ax.lines[0].get_ydata() for ax in fig.axes)
    assert list(one) == [0, 0, 2, 2, 3, 3]
    np.testing.assert_array_equal(two, [np.nan, 0, 1, np.nan])


def test_nothing_of_a_panel_touches_another(shipped):
    drawn = shipped.of(case="chunk-recovery", role="propose")
    fig, _ = trace_figures.label_paths(drawn, shipped.moments, title="T")
    fig.canvas.draw()
    boxes = [ax.get_tightbbox().transformed(fig.transFigure.inverted()) for ax in fig.axes]
    for upper, lower in itertools.pairwise(boxes):
        assert upper.y0 >= lower.y1
    assert all(box.x0 >= 0 and box.x1 <= 1 and box.y0 >= 0 for box in boxes)


def test_shares_are_those_of_the_counts(shipped):
    _, shares = trace_figures.spent_turns(shipped.turns)
    counts = labelled.turn_counts(shipped.turns).set_index("episode")
    for (episode, each), row in shares.set_index(["episode", "label"]).iterrows():
        expected = counts[each].sum() if episode == "all" else counts.loc[episode, each]
        total = counts["turns"].sum() if episode == "all" else counts.loc[episode, "turns"]
        assert (row["n"], row["share"]) == (expected, pytest.approx(expected / total))


def test_shares_over_time_add_up(shipped):
    _, shares = trace_figures.spent_over_time(shipped.turns)
    np.testing.assert_allclose(shares[list(LABELS)].sum(axis=1), 1)
    assert shares["read"].iloc[0] > shares["read"].iloc[-1]


def test_every_figure_is_saved_the_same_twice_and_takes_hostile_text_and_nothing(run, made):
    found = labelled.load_labelled(*made)
    moments = pd.DataFrame([["one", 3, 0, HOSTILE]], columns=list(labelled.MOMENTS))
    step = found.turns.loc[0, "step"]
    moments["step"] = step
    names = {"one": HOSTILE}

    def drawn() -> dict:
        nothing = found.turns.iloc[:0]
        return {
            "paths": trace_figures.label_paths(found.turns, moments, names=names, title=HOSTILE),
            "field": trace_figures.label_paths(found.turns[:6], field_of=found.turns.assign(episode="one")),
            "spent": trace_figures.spent_turns(found.turns, names=names),
            "time": trace_figures.spent_over_time(found.turns, by="guess"),
            "no-paths": trace_figures.label_paths(nothing),
            "no-spent": trace_figures.spent_turns(nothing),
            "no-time": trace_figures.spent_over_time(nothing),
        }

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (
            {
                name: [p.read_bytes() for p in (s.png, s.svg, s.csv)]
                for name, s in ((n, figures.save_figure(run, n, *d)) for n, d in drawn().items())
            }
            for _ in range(2)
        )
    assert first == second
    assert all(png.startswith(b"\x89PNG") for png, _, _ in first.values())
