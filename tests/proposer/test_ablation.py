"""The data ablations: what a model is shown, what it may write, what is gone from the task; and the sealed verifier beside its own."""

from __future__ import annotations

import json
import tomllib

import pytest

from workbench.models.scripted import Scripted
from workbench.proposer import Assignment, Proposer, get_proposer
from workbench.proposer.ablation import PromptFirst, PublicView
from workbench.proposer.ablation_corpus import SAMPLES, agreement, build, open_ablation
from workbench.proposer.ablation_text import public_view
from workbench.proposer.world import WorldProposer
from workbench.runs import new_run
from workbench.tasks import load_task
from workbench.trials import Trial

TESTS = '<file path="tests/test_outputs.py">\ndef test_it():\n    assert True\n</file>'
SECRETS = ("truth.json", "hidden_suite.json", "progress.json", "progress.py", "verify.py", "grade.py")


@pytest.fixture
def worlds():
    return WorldProposer(generators=("micro_shelf",), tiers=("micro",))


@pytest.fixture
def assignment():
    return Assignment("a1", "run", 0.0, 0, "", "", "", "harder", 0.5, "")


def test_the_sealed_truth_is_gone_and_all_else_is_the_world(assignment, worlds, tmp_path):
    sealed = worlds.propose(assignment, tmp_path / "sealed", seed=1).path
    proposal = PublicView(Scripted([TESTS]), worlds).propose(assignment, tmp_path / "new", seed=1)
    new = tmp_path / "new"
    assert proposal.path == str(new)
    assert sorted(p.name for p in (new / "tests").iterdir()) == ["test.sh", "test_outputs.py"]
    assert not [p for p in new.rglob("*") if p.name in SECRETS]
    for name in ("instruction.md", "solution/reference.py", "environment/Dockerfile"):
        assert (new / name).read_bytes() == (tmp_path / "sealed" / name).read_bytes(), sealed
    data = tomllib.loads((new / "task.toml").read_text())
    assert data["metadata"]["workbench"]["ablation"] == {"method": "public-view", "model": "scripted"}
    assert data["metadata"]["workbench"]["world"]["generator"] == "micro_shelf"
    assert load_task(new).name.startswith("public-view/micro_shelf-")


def test_the_model_sees_the_agents_view_only(assignment, worlds, tmp_path):
    model = Scripted([TESTS])
    PublicView(model, worlds).propose(assignment, tmp_path / "new", seed=1)
    ((messages, sampling),) = model.calls
    shown = "\n".join(m["content"] for m in messages)
    assert (tmp_path / "new" / "instruction.md").read_text() in shown
    assert "--- /app/input/" in shown
    assert sampling.seed == 1
    sealed = worlds.propose(assignment, tmp_path / "sealed", seed=1).path
    truth = (tmp_path / "sealed" / "tests" / "truth.json").read_text()
    assert sealed
    assert truth.strip() not in shown
    assert not [name for name in SECRETS if name in shown]


def test_a_view_follows_no_link_and_shows_bytes_as_bytes(tmp_path):
    (tmp_path / "environment" / "input").mkdir(parents=True)
    (tmp_path / "instruction.md").write_text("Do it.")
    (tmp_path / "secret").write_text("the answer")
    (tmp_path / "environment" / "input" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "environment" / "input" / "raw.bin").write_bytes(b"\x00\x01" * 40)
    (tmp_path / "environment" / "input" / "long.txt").write_text("x" * 100_000)
    text = public_view(tmp_path)
    assert "the answer" not in text
    assert "00 01 00 01" in text
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("no", "no <file"),
        ('<file path="tests/test.sh">\nexit 0\n</file>', "is not asked for here"),
        ('<file path="solution/solve.sh">\ntrue\n</file>', "is not asked for here"),
        ('<file path="tests/helper.py">\nx = 1\n</file>', "there is no tests/test_"),
    ],
)
def test_what_cannot_be_used_goes_back_once(answer, fault, assignment, worlds, tmp_path):
    proposal = PublicView(Scripted([answer, TESTS]), worlds).propose(assignment, tmp_path / "new", seed=1)
    assert proposal.path
    assert fault in proposal.episode.turns[0].observation
    lost = PublicView(Scripted([answer, answer + " "]), worlds).propose(assignment, tmp_path / "lost", seed=1)
    assert (lost.path, lost.calls) == (None, 2)
    assert fault in lost.message
    assert not (tmp_path / "lost").exists()


def test_prompt_first_asks_in_the_order_prompt_inputs_verifier_solution(assignment, tmp_path):
    replies = json.loads((SAMPLES / "prompt_first.json").read_text())
    model = Scripted(replies)
    proposal = PromptFirst(model, ("9.5",)).propose(assignment, tmp_path / "new", seed=2)
    asked = [call[0][-1]["content"] for call in model.calls]
    assert [text.split(",")[0].split(":")[0].split(".")[0] for text in asked] == [
        "Step 1",
        "Step 2",
        "Step 3",
        "Step 4",
    ]
    assert "Security and Forensics" in asked[0]
    data = tomllib.loads((tmp_path / "new" / "task.toml").read_text())
    assert "world" not in data["metadata"]["workbench"]
    assert data["metadata"]["workbench"]["ablation"]["domain"] == "9.5"
    assert proposal.calls == 4
    assert load_task(tmp_path / "new").name == "prompt-first/new"


def test_a_step_that_fails_is_named_and_nothing_is_written(assignment, tmp_path):
    first = json.loads((SAMPLES / "prompt_first.json").read_text())[0]
    proposal = PromptFirst(Scripted([first, "no", "never"])).propose(assignment, tmp_path / "new", seed=2)
    assert proposal.message.startswith("inputs: no <file")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="no domain 7"):
        PromptFirst(Scripted([]), ("7",))


def test_both_are_proposers_by_name():
    for spec in ("public-view:sample", "prompt-first:sample"):
        assert isinstance(get_proposer(spec), Proposer)
    with pytest.raises(ValueError, match="no ablation"):
        open_ablation("public-view")


@pytest.mark.slow
def test_the_shipped_answers_pass_admission_and_are_not_admitted_twice(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path))
    worlds = WorldProposer(generators=("retail_warehouse",), tiers=("unit",))
    with new_run("60_try") as run:
        for spec in ("public-view:sample", "prompt-first:sample"):
            (row,) = build(open_ablation(spec, worlds), 1, run, backend, repeats=1)
            assert (row["validated"], row["reasons"]) == (True, ""), row
        before = len(run.rows("trial"))
        build(open_ablation("public-view:sample", worlds), 1, run, backend, repeats=1)
        assert len(run.rows("trial")) == before


def test_a_faulty_answer_is_a_row_without_a_task(backend, tmp_path, monkeypatch, worlds):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path))
    with new_run("60_try") as run:
        (row,) = build(PublicView(Scripted(["no", "no!"]), worlds), 1, run, backend)
    assert (row["path"], row["stage"], row["validated"]) == (None, "proposal", False)
    assert "no <file" in row["reasons"]


def test_agreement_counts_both_kinds_of_error():
    fixed = {"id": "x", "run_id": "", "time": 0.0, "digest": "", "model": "", "backend": "b", "outcome": "graded"}
    agents = ("right", "right too", "stale", "lost")
    sealed = [Trial(task="worlds/w", agent=a, passed=a.startswith("right"), reward=1.0, **fixed) for a in agents]
    other = [
        Trial(task="public-view/w", agent=a, passed=a in ("right", "stale"), reward=1.0, **fixed) for a in agents[:3]
    ]
    found = agreement(sealed, other)
    assert found == {"rollouts": 3, "sealed_pass": 2, "written_pass": 2, "false_pass": 1, "false_fail": 1}
