"""The comparison's engine: what is known beforehand comes out, caps hold, the ablation and the optimization do what they say."""

from __future__ import annotations

import dataclasses
import json

import pytest

from workbench.admission.review import load_rubric
from workbench.agents import Budget, get_agent
from workbench.models import BudgetExceeded, Reply, Sampling
from workbench.models.budget import Budget as Cap
from workbench.proposer import Assignment
from workbench.proposer.compare import Comparison, capped, spent_before, unit
from workbench.proposer.compare_config import entries
from workbench.proposer.compare_open import Opener
from workbench.proposer.compare_replies import Remembered
from workbench.proposer.compare_scripted import Designer, key_of
from workbench.proposer.compare_setup import remembered
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.program import seed_tasks
from workbench.proposer.prompt import question
from workbench.proposer.workspace import assignment_text
from workbench.runs.folder import new_run, open_run
from workbench.tasks import load_task


@pytest.fixture
def run(tmp_path):
    with new_run("20_try", {}, results=tmp_path / "results") as run:
        yield run


@pytest.fixture
def suite(tmp_path):
    task = load_task(seed_tasks(tmp_path / "parents", (3,), 0)[0])
    ways = ("fewer steps", "one skill less", "fewer steps; variation 2", "one skill less; variation 2")
    return [
        Assignment(
            f"r1-a{n:03d}",
            "run",
            0.0,
            1,
            task.name,
            str(task.path),
            task.digest,
            "simpler",
            0.0,
            "failed 1-copy",
            way=w,
        )
        for n, w in enumerate(ways)
    ]


def make(run, backend, config, **more) -> Comparison:
    opener = Opener(run, backend, run.folder / "harness", rounds=2, **more)
    return Comparison(run, backend, opener, entries(config), repeats=1, workers=3)


def test_a_question_says_the_same_in_every_form(suite):
    for assignment in suite:
        forms = [question(assignment, ""), assignment_text(assignment, "env_000", {"validate": 3})]
        assert len({key_of(form) for form in forms}) == 1
        assert assignment.way in key_of(forms[0])


def test_faults_are_the_stated_share_and_repairs_only_mend():
    designer = Designer(0.4, 0.5)
    keys = [f"p simpler way {n}" for n in range(2000)]
    share = [sum(bool(designer.fault(k, shown)) for k in keys) / len(keys) for shown in (0, 1, 3)]
    assert share == pytest.approx([0.4, 0.2, 0.05], abs=0.03)
    assert all(designer.fault(k, 1) in ("", designer.fault(k, 0)) for k in keys)


def test_what_is_known_comes_out_and_without_the_self_check_faults_stay(run, backend, suite):
    config = {"models": [{"name": "half", "model": "designer:0.4:1"}], "self_check": [True, False]}
    rows = make(run, backend, config).play(suite)
    assert len(rows) == 16
    assert all(row["known"] == row["first"]["valid_paper"] for row in rows)
    valid = {e: [r["first"]["valid_paper"] for r in rows if r["entry"] == e] for e in {r["entry"] for r in rows}}
    assert valid["half-prompt"] == valid["half-harness-unchecked"]
    assert 0 < sum(valid["half-prompt"]) < 4
    assert all(valid["half-harness"])
    unchecked = [r for r in rows if r["entry"] == "half-harness-unchecked"]
    assert all("unvalidated" in r["violations"] for r in unchecked)
    assert not any(r["violations"] for r in rows if r["entry"] == "half-harness")


def test_an_optimized_harness_takes_its_lessons_into_the_next_round(run, backend, suite):
    config = {"models": [{"name": "weak", "model": "designer:1:0", "methods": ["harness"]}], "optimize": ["weak"]}
    whole = make(run, backend, config)
    rows = whole.play(suite)
    before, after = (sum(r["first"]["valid_paper"] for r in rows if r["optimized"] is flag) for flag in (False, True))
    (row,) = run.rows("optimization")
    assert row["fixed"]
    assert "memory/lessons.md" in row["changed"]
    assert (before, after) == (0, 4)
    harness = whole.opener.harness(whole.entries[0])
    assert isinstance(harness, HarnessProposer)
    assert harness.store.for_round(1).number == 0
    assert harness.store.for_round(2).number == row["version"]


class Dear:
    """A designer at a dollar an answer."""

    name = "dear"

    def reply(self, messages, sampling=Sampling()):
        return Reply(Designer(0.0).reply(messages).text, usd=1.0)

    def worst_usd(self, messages, sampling):
        return 1.0


def test_the_cap_ends_it_and_a_resumed_run_counts_what_was_spent(run, backend, suite):
    config = {"models": [{"name": "dear", "model": "designer:0", "methods": ["prompt"]}]}
    cap = capped(run, 2.5)
    make(run, backend, config, models={"dear": cap.wrap(Dear())}).play(suite)
    assert (len(run.rows("answer")), spent_before(run), cap.spent) == (2, 2.0, 2.0)
    missing = run.rows("unanswered")
    assert [m["why"] for m in missing] == ["cap", "cap"]
    assert "of $2.5000" in missing[0]["message"]
    run.close()
    again = open_run(run.folder)
    cap = capped(again, 3.5)
    assert cap.spent == 2.0
    make(again, backend, config, models={"dear": cap.wrap(Dear())}).play(suite)
    assert (len(again.rows("answer")), cap.spent) == (3, 3.0)
    assert capped(again, 0) is None
    again.close()


def test_a_reply_that_arrived_is_not_asked_for_again(run):
    asked, cap = [{"role": "user", "content": "x"}], Cap(1.0)
    first = Remembered(cap.wrap(Dear()), run, "a").reply(asked, Sampling(seed=1, seconds=9))
    again = Remembered(cap.wrap(Dear()), run, "a").reply(asked, Sampling(seed=1, seconds=2))
    assert (first, cap.spent) == (again, 1.0)
    with pytest.raises(BudgetExceeded):
        Remembered(cap.wrap(Dear()), run, "b").reply(asked, Sampling(seed=1))


class Broken:
    name = "broken"

    def __init__(self):
        self.asked = 0

    def reply(self, messages, sampling=Sampling()):
        from workbench.models import ModelError

        self.asked += 1
        if self.asked == 1:
            raise ModelError("server gone")
        return Designer(0.0).reply(messages)


def test_infrastructure_leaves_a_unit_open_and_the_others_go_on(run, backend, suite):
    config = {"models": [{"name": "b", "model": "designer:0", "methods": ["prompt"]}], "controls": ["program"]}
    whole = make(run, backend, config, models={"b": Broken()})
    assert len(whole.play(suite[:2])) == 3
    (missing,) = run.rows("unanswered")
    assert (missing["why"], missing["message"]) == ("infra", "ModelError: server gone")
    assert len(whole.play(suite[:2])) == 4


def test_the_world_proposer_and_budget_are_opened(run, backend, suite):
    whole = make(run, backend, {"controls": ["world"]}, worlds={"tiers": ("micro",)}, budget=Budget(turns=2))
    (row,) = whole.play(suite[:1])
    assert row["first"]["valid_paper"]
    assert row["entry"] == "world"
    assert run.done("answer", unit(whole.entries[0], suite[0]))


class Reviewing:
    """Designs sound tasks, and as its own reviewer fails one criterion with evidence."""

    name = "reviewing"

    def reply(self, messages, sampling=Sampling()):
        if "You review a task" not in messages[0]["content"]:
            return Designer(0.0).reply(messages)
        names = [c.name for c in load_rubric().criteria]
        found = {n: {"outcome": "pass", "evidence": "tests/check.py reads each file"} for n in names}
        found[names[0]] = {"outcome": "fail", "evidence": "instruction.md names no file"}
        return Reply(json.dumps(found), usd=0.25)


def test_the_review_is_by_the_proposer_s_own_model_and_is_paid_for(run, backend, suite):
    config = {"models": [{"name": "r", "model": "smollm2", "methods": ["prompt"]}], "controls": ["program"]}
    whole = make(run, backend, config, models={"r": Reviewing()})
    whole.review = True
    reviewed, program = whole.play(suite[:1])
    assert (reviewed["last"]["stage"], reviewed["last"]["reasons"], reviewed["reward"]) == ("review", ["review"], -1.0)
    assert (reviewed["last"]["valid_paper"], reviewed["last"]["validated"], reviewed["usd"]) == (True, False, 0.25)
    report = run.get("admission", reviewed["submissions"][0])["report"]["review"]
    assert report["model"] == "reviewing"
    assert all(finding["evidence"] for finding in report["findings"].values())
    assert program["last"]["validated"]  # a program has no model that could review


@dataclasses.dataclass(frozen=True)
class Solving:
    """A solver whose model is paid for."""

    model: object

    def __call__(self, number):
        return get_agent("terminal", self.model, sampling=Sampling(seed=number))


def test_the_solver_s_replies_are_remembered_too(run):
    cap = Cap(1.0)
    solver = remembered(Solving(cap.wrap(Dear())), run)
    asked = [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    assert [solver.model.reply(asked).usd for _ in range(2)] == [1.0, 1.0]
    assert (cap.spent, spent_before(run)) == (1.0, 1.0)
    assert solver(3).sampling.seed == 3
    plain = lambda n: None  # noqa: E731
    assert remembered(plain, run) is plain
