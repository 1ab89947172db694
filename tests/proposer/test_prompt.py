"""The prompt method: what a model answers becomes files, or words that say why not; no answer leaves the target folder."""

from __future__ import annotations

import pytest

from workbench.models.scripted import Scripted
from workbench.proposer import Assignment
from workbench.proposer.program import seed_tasks
from workbench.proposer.prompt import PromptProposer, parse_files

GOOD = '<file path="instruction.md">\nDo it.\n</file>\n<file path="solution/solve.sh">\n#!/bin/bash\ntrue\n</file>'


def test_files_are_parsed_in_order_with_one_final_newline():
    files, fault = parse_files(f"Here it is:\n{GOOD}\nDone.")
    assert fault == ""
    assert files == {"instruction.md": "Do it.\n", "solution/solve.sh": "#!/bin/bash\ntrue\n"}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "tests/../../x", "other/x", "", "tests\\x", "environment/../../../root/.bashrc"]
)
def test_paths_outside_a_task_are_refused(path):
    files, fault = parse_files(f'<file path="{path}">\nx\n</file>')
    assert files == {}
    assert fault


def test_duplicates_and_floods_are_refused():
    assert parse_files(GOOD + GOOD)[1] == "file 'instruction.md' is given twice"
    assert "larger than" in parse_files(f'<file path="instruction.md">\n{"x" * (5 << 20)}\n</file>')[1]


@pytest.fixture
def ask(tmp_path):
    parent = seed_tasks(tmp_path, (2,), 0)[0]
    assignment = Assignment(
        "r1-a000", "run", 0.0, 1, "workbench/parent-00", str(parent), "d", "harder", 0.9, "failed x"
    )

    def propose(*replies: str, feedback: str = ""):
        model = Scripted(list(replies))
        return PromptProposer(model).propose(assignment, tmp_path / "new", seed=1, feedback=feedback), model

    return propose


def test_an_answer_becomes_a_directory_with_runnable_scripts(ask, tmp_path):
    proposal, _ = ask(GOOD)
    assert proposal.path == str(tmp_path / "new")
    assert (tmp_path / "new/solution/solve.sh").stat().st_mode & 0o111
    assert proposal.episode.submitted


def test_an_answer_without_files_is_a_proposal_without_path(ask):
    proposal, _ = ask("I would rather not.")
    assert proposal.path is None
    assert "no <file" in proposal.message
    assert proposal.episode.ended_by == "malformed"


def test_the_question_names_parent_failure_direction_and_feedback(ask):
    _, model = ask(GOOD, feedback="[oracle] oracle-failed: reward 0.5")
    text = model.calls[0][0][-1]["content"]
    for part in ("workbench/parent-00", "failed x", "harder", "oracle-failed", 'path="tests/check.py"'):
        assert part in text, part
