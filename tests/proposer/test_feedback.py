"""The `prompt + feedback` method: real builds and grades between answers, bounded rounds, honest ends."""

from __future__ import annotations

import pytest

from workbench.models import ContextFull, ModelError, Reply
from workbench.models.scripted import Scripted
from workbench.proposer import Assignment, get_proposer
from workbench.proposer.compare_scripted import FAULTS, Designer, _blocks
from workbench.proposer.feedback import FeedbackProposer
from workbench.tasks import load_task

ASKED = Assignment("r1-a000", "run", 0.0, 1, "parent", "/nowhere", "d", "simpler", 0.1, "failed x", way="fewer steps")
DRAFTS = Designer(0.0)


def draft(fault: str) -> str:
    return _blocks(DRAFTS.files("parent simpler way x", fault))


def propose(replies, backend, target, rounds=3, **more):
    model = Scripted(replies)
    made = FeedbackProposer(model, backend, rounds=rounds).propose(ASKED, target, seed=5, **more)
    return made, model


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_comes_back_in_the_log_and_is_repaired(fault, backend, tmp_path):
    made, model = propose([draft(fault), draft("")], backend, tmp_path / "t")
    shown = made.episode.turns[0].observation
    word = {"files": "bad-toml", "build": "nowhere.csv", "oracle-fails": "oracle-fails", "noop-passes": "noop-passes"}[
        fault
    ]
    assert word in shown
    assert shown in model.calls[1][0][-1]["content"]
    assert (made.calls, made.episode.submitted, made.tools["validated"]["oracle"]) == (2, True, True)
    assert load_task(made.path).digest
    assert model.calls[0][1].seed != model.calls[1][1].seed


def test_rounds_are_bounded_and_the_last_files_are_the_answer(backend, tmp_path):
    made, model = propose([draft("oracle-fails")] * 9, backend, tmp_path / "t", rounds=2)
    assert (len(model.calls), made.calls, made.episode.ended_by, made.episode.submitted) == (2, 2, "turns", False)
    assert made.path
    assert made.tools["validated"] == {"oracle": False, "noop": False}


def test_an_answer_without_files_is_told_and_counts_as_a_round(backend, tmp_path):
    made, _ = propose(
        ["I cannot.", Reply("<file", "length", completion_tokens=7, usd=0.0), "no"], backend, tmp_path / "t"
    )
    assert (made.path, made.calls, made.tools["calls"]["host_run"]) == (None, 3, 0)
    assert "no <file" in made.episode.turns[0].observation
    assert "cut at 7 tokens" in made.episode.turns[1].observation


def test_only_changed_files_need_to_be_given_again(backend, tmp_path):
    files = DRAFTS.files("parent simpler way x", "")
    patch = _blocks({"solution/solve.sh": files["solution/solve.sh"]})
    made, _ = propose([draft("oracle-fails"), patch], backend, tmp_path / "t")
    assert made.episode.submitted
    assert (tmp_path / "t" / "tests" / "check.py").is_file()


def test_a_revision_shows_the_last_version_and_takes_none_of_it(backend, tmp_path):
    target = tmp_path / "t"
    target.mkdir()
    (target / "instruction.md").write_text("the old words")
    made, model = propose(["nothing"], backend, target, rounds=1, feedback="[oracle] oracle-fails: why")
    assert "the old words" in model.calls[0][0][1]["content"]
    assert "oracle-fails: why" in model.calls[0][0][1]["content"]
    assert made.path is None


def test_a_full_context_ends_it_with_what_there_is(backend, tmp_path):
    said = []

    def answer(messages):
        said.append(messages)
        if len(said) > 1:
            raise ContextFull("full")
        return draft("noop-passes")

    made, _ = propose(answer, backend, tmp_path / "t")
    assert (made.episode.ended_by, made.calls) == ("context", 1)
    assert made.path


def test_a_model_that_cannot_be_asked_is_no_answer(backend, tmp_path):
    with pytest.raises(ModelError):
        propose([], backend, tmp_path / "t")


def test_it_is_opened_by_its_name(tmp_path, backend):
    script = tmp_path / "s.json"
    script.write_text('["hello"]')
    found = get_proposer(f"feedback:scripted:{script}", backend=backend, rounds=1)
    assert found.name == "feedback:scripted:s.json"
    with pytest.raises(ValueError, match="rounds=0"):
        get_proposer(f"feedback:scripted:{script}", backend=backend, rounds=0)
