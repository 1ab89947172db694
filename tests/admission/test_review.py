"""Review by a rubric: strict reading of a model's answer, and what becomes of it."""

from __future__ import annotations

import json

import pytest

from workbench.admission.review import (
    Reviewer,
    ReviewUnreadable,
    load_rubric,
    parse_review,
    review_task,
)
from workbench.models import Reply
from workbench.tasks.scaffold import scaffold

RUBRIC = """
[[criteria]]
name = "behavior_in_tests"
description = "Are all behaviours tested?"
guidance = "PASS if so."

[[criteria]]
name = "binary_reward"
description = "Is the reward 0 or 1?"

[[criteria]]
name = "typos"
description = "Any typos?"
"""
GOOD = {
    "behavior_in_tests": {"outcome": "pass", "evidence": "tests/test_outputs.py checks every file"},
    "typos": {"outcome": "fail", "evidence": "instruction.md: 'fiel' for 'file'"},
}


class Answers:
    """A model that gives prepared answers and keeps what it was asked."""

    name = "prepared"

    def __init__(self, *texts):
        self.texts, self.asked = list(texts), []

    def reply(self, messages, sampling=None):
        self.asked.append(list(messages))
        return Reply(self.texts.pop(0), usd=0.25, seconds=1.0)


@pytest.fixture
def rubric_file(tmp_path):
    path = tmp_path / "house-rules.toml"
    path.write_text(RUBRIC)
    return path


@pytest.fixture
def task(tmp_path):
    return scaffold(tmp_path / "task", "demo/task")


def test_the_default_rubric_is_harbors():
    rubric = load_rubric()
    assert rubric.name == "harbor-default"
    names = [criterion.name for criterion in rubric.criteria]
    assert "behavior_in_tests" in names
    assert "binary_reward" not in names
    assert all(criterion.description and criterion.guidance for criterion in rubric.criteria)


def test_binary_reward_is_left_out_of_any_rubric(rubric_file):
    rubric = load_rubric(rubric_file)
    assert [criterion.name for criterion in rubric.criteria] == ["behavior_in_tests", "typos"]
    assert (rubric.name, rubric.left_out) == ("house-rules.toml", ("binary_reward",))


@pytest.mark.parametrize("text", ["", "criteria = 3", "[[criteria]]\nname = 'a'\n", "= 1", RUBRIC + RUBRIC])
def test_a_file_that_is_no_rubric(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad\.toml"):
        load_rubric(path)


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```\n"])
def test_a_readable_answer(rubric_file, wrap):
    findings = parse_review(wrap.replace("{}", json.dumps(GOOD)), load_rubric(rubric_file))
    assert [(f.criterion, f.outcome) for f in findings] == [("behavior_in_tests", "pass"), ("typos", "fail")]


@pytest.mark.parametrize(
    "answer",
    [
        "all fine",
        "[]",
        "{" * 5000,
        json.dumps({"typos": GOOD["typos"]}),
        json.dumps({**GOOD, "bonus": GOOD["typos"]}),
        json.dumps({**GOOD, "typos": "pass"}),
        json.dumps({**GOOD, "typos": {"outcome": "pass"}}),
        json.dumps({**GOOD, "typos": {"outcome": "pass", "evidence": " "}}),
        json.dumps({**GOOD, "typos": {"outcome": "PASS", "evidence": "x"}}),
        json.dumps({**GOOD, "typos": {"outcome": ["pass"], "evidence": "x"}}),
        f"```\n{json.dumps(GOOD)}\n```\n```\n{json.dumps(GOOD)}\n```",
    ],
)
def test_an_unreadable_answer(rubric_file, answer):
    with pytest.raises(ReviewUnreadable):
        parse_review(answer, load_rubric(rubric_file))


def test_a_review_gives_a_reason_for_each_failed_criterion(task, rubric_file):
    review = review_task(task, Reviewer(Answers(json.dumps(GOOD)), rubric_file))
    (reason,) = review.reasons()
    assert (reason.kind, reason.stage) == ("review", "review")
    assert "typos" in reason.message
    assert "fiel" in reason.message
    assert review.to_row()["findings"]["behavior_in_tests"]["outcome"] == "pass"


def test_the_reviewer_sees_the_tasks_files_between_marks(task, rubric_file):
    model = Answers(json.dumps(GOOD))
    review_task(task, Reviewer(model, rubric_file))
    system, user = (message["content"] for message in model.asked[0])
    mark = system.partition("with the mark ")[2].split(";")[0]
    assert f"{mark} begin instruction.md" in user
    assert f"{mark} begin tests/test.sh" in user
    assert task.instruction.strip()[:60] in user
    assert "binary_reward" not in user


def test_it_asks_again_once_and_then_gives_up(task, rubric_file):
    model = Answers("hm", json.dumps(GOOD))
    review = review_task(task, Reviewer(model, rubric_file))
    assert review.usd == 0.5
    assert "could not be read" in model.asked[1][-1]["content"]
    with pytest.raises(ReviewUnreadable, match="prepared gave no readable review"):
        review_task(task, Reviewer(Answers("hm", "hm"), rubric_file))
