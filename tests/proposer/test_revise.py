"""The revision loop: typed reasons go back, twice at most, each version through the whole gate, scored on the last."""

from __future__ import annotations

import pytest

from workbench.admission import no_files
from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.models import ModelError
from workbench.models.scripted import Scripted
from workbench.proposer import Assignment, Proposal
from workbench.proposer.compare_scripted import Designer, _blocks
from workbench.proposer.prompt import PromptProposer
from workbench.proposer.revise import answer
from workbench.runs.folder import new_run

ASKED = Assignment("r1-a002", "run", 0.0, 1, "parent", "/nowhere", "d", "simpler", 0.1, "failed x")
BUDGET = Budget(turns=2, tokens=1000, seconds=60, command_seconds=20)
DRAFTS = Designer(0.0)


def draft(fault: str = "") -> str:
    return _blocks(DRAFTS.files("parent simpler  x", fault))


@pytest.fixture
def run(tmp_path):
    with new_run("20_try", {}, results=tmp_path / "results") as run:
        yield run


def solver(number: int) -> ScriptedAgent:
    return ScriptedAgent(["pwd"], name="idle")


def play(run, backend, replies, revisions=2, calibrate=False, proposer=None):
    model = Scripted(replies)
    calibration = Calibration(solver, 2, 2, budget=BUDGET) if calibrate else None

    def gate(key, path):
        return admit(path, backend, calibrate=calibration, repeats=1, run=run, id=key)

    found = answer(ASKED, proposer or PromptProposer(model), gate, run, key="e-r1-a002", folder=run.folder / "tasks" / "e",
                   seed=1, revisions=revisions)  # fmt: skip
    return found, model


def test_reasons_go_back_with_the_last_version_and_the_last_submission_is_scored(run, backend):
    found, model = play(run, backend, lambda m: draft("" if "refused" in m[-1]["content"] else "oracle-fails"))
    assert [s.admission["validated"] for s in found.submissions] == [False, True]
    asked = model.calls[1][0][-1]["content"]
    assert "[oracle] oracle-fails: the reference solution earned 0" in asked
    assert "#!/bin/bash\ntrue" in asked.split("Your last version:")[1]
    row = found.to_row()
    assert (row["first"]["valid_paper"], row["last"]["valid_paper"], row["first_reward"], row["turns"]) == (
        False,
        True,
        -1.0,
        2,
    )
    assert row["submissions"] == ["e-r1-a002", "e-r1-a002-rev1"]
    assert row["reward"] is None  # nothing was calibrated


def test_two_revisions_at_most(run, backend):
    found, model = play(run, backend, lambda m: draft("noop-passes"))
    assert (len(found.submissions), len(model.calls), found.to_row()["reward"]) == (3, 3, -1.0)
    with pytest.raises(ValueError, match="from 0 to 2"):
        play(run, backend, [], revisions=3)


def test_below_the_band_the_hinted_rollout_goes_back(run, backend):
    found, model = play(run, backend, lambda m: draft(), revisions=1, calibrate=True)
    assert [s.admission["reward"] for s in found.submissions] == [-0.25, -0.25]
    asked = model.calls[1][0][-1]["content"]
    assert "[calibration] too-hard: rewards 0, 0" in asked
    assert (
        "diagnostic: with hints from your reference solution one attempt of the solver earned a reward of 0; failed"
        in asked
    )
    assert "$ pwd\n" in asked
    assert len(run.rows("diagnostic")) == 2


def test_an_answer_without_files_is_refused_and_may_be_mended(run, backend):
    found, _ = play(run, backend, lambda m: draft() if "refused" in m[-1]["content"] else "no files")
    assert found.first.admission["reasons"][0]["kind"] == "no-files"
    assert found.last.admission["valid_paper"]
    assert no_files(ASKED.id, "run", "").reward == -1.0


def test_what_is_recorded_is_not_done_again(run, backend):
    replies = lambda m: draft("" if "refused" in m[-1]["content"] else "build")  # noqa: E731
    first, _ = play(run, backend, replies)
    again, model = play(run, backend, replies)
    assert model.calls == []
    assert [s.key for s in again.submissions] == [s.key for s in first.submissions]
    assert len(run.rows("admission")) == 2 == len(run.rows("proposal"))
    assert run.path("traces", "proposal-e-r1-a002.json").is_file()


def test_a_failing_model_records_nothing_of_that_version(run, backend):
    def answers_once(messages):
        if "refused" in messages[-1]["content"]:
            raise ModelError("gone")
        return draft("build")

    with pytest.raises(ModelError):
        play(run, backend, answers_once)
    assert [r["id"] for r in run.rows("proposal")] == ["e-r1-a002"]


class Leaver:
    """Leaves half a task behind and dies; then answers. A killed run does that."""

    name = "leaver"

    def __init__(self):
        self.calls = 0

    def propose(self, assignment, target, *, seed, feedback=""):
        self.calls += 1
        assert not target.exists()
        target.mkdir(parents=True)
        (target / "rest.txt").write_text("of an unfinished answer")
        if self.calls == 1:
            raise ModelError("gone")
        return Proposal(assignment.id, self.name, str(target), usd=0.0)


def test_what_a_killed_answer_left_is_no_part_of_the_next(run, backend):
    leaver = Leaver()
    with pytest.raises(ModelError):
        play(run, backend, [], revisions=0, proposer=leaver)
    found, _ = play(run, backend, [], revisions=0, proposer=leaver)
    assert found.last.admission["stage"] == "files"
