"""What one learning run came to: its words, its table and its picture, from rows that can be followed by hand."""

from __future__ import annotations

import pytest

from tests.report.training_rows import evaluation_row, proposer_row, update_row, write
from workbench.report import learning_report
from workbench.report.training_figures_rows import evaluations, updates
from workbench.runs.folder import new_run


@pytest.fixture
def run(tmp_path):
    with new_run("40_flywheel", {"arm": "full"}, results=tmp_path) as run:
        write(run, "update", [update_row(n, proposer=proposer_row(6) if n == 2 else None) for n in (1, 2, 3)])
        yield run


def test_the_picture_has_the_pool_and_each_held_out_set_where_it_was_evaluated(run):
    write(run, "evaluation", [evaluation_row(step, {"a": [r]}, name=name) for name, step, r in
                              (("seeds", 0, 0.25), ("seeds", 3, 0.75), ("generators", 0, 0.0), ("generators", 3, 0.0))])  # fmt: skip
    fig, table = learning_report.solver_reward(updates([run]), evaluations([run]))
    held = table[table["panel"] == "seeds"]
    assert list(zip(held["step"], held["reward"], held["n"], strict=True)) == [(0, 0.25, 1), (3, 0.75, 1)]
    assert list(table[table["panel"] == "pool"]["trailing"]) == [0.5, 0.5, 0.5]
    texts = [text.get_text() for text in fig.legends[0].get_texts()]
    assert texts == ["pool, 5-step mean", "seeds (1)", "generators (1)"]


def test_a_run_that_was_never_evaluated_shows_its_pool(run):
    _, table = learning_report.solver_reward(updates([run]), evaluations([run]))
    assert set(table["panel"]) == {"pool"}


@pytest.mark.parametrize(("after", "verdict"), [(1.0, "rose"), (0.0, "fell"), (0.5, "no detectable change")])
def test_the_words_say_what_the_interval_says(run, after, verdict):
    tasks = [f"t{n}" for n in range(12)]
    write(run, "evaluation", [evaluation_row(s, {t: [r] for t in tasks}) for s, r in ((0, 0.5), (3, after))])
    assert verdict in learning_report.words(run).splitlines()[0]
    row = learning_report.outcome(run).iloc[0]
    assert (row["tasks"], row["difference"], row["verdict"]) == (12, after - 0.5, verdict)
    assert "malformed 4/10" in learning_report.words(run)
