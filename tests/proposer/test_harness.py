"""The harness method end to end: a scripted proposer writes, breaks, tests and repairs a real environment through the tools,
turn by turn in a real sandbox, and the gate decides on what it leaves."""

from __future__ import annotations

import json

import pytest

from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents.terminal import TerminalAgent
from workbench.proposer import get_proposer
from workbench.proposer.harness import HarnessProposer, env_name
from workbench.proposer.program import seed_tasks
from workbench.proposer.tools import SolverTool, Toolbox
from workbench.proposer.workspace import Past
from workbench.tasks import load_task
from workbench.trials.run import run_trial

from . import harness_parts as parts
from .harness_parts import BROKEN, EASY, ENV, FRESH, LEAK, RIGHT, SOUND, STALE, SUBMIT, TOOL, looking, solve, turn

EPISODE = [
    ("Build a harder variant", turn("I look around.", "cat assignment.md past_trajectories/index.jsonl; ls memory tools")),
    ('"reward_std"', turn("How did it fare?", "grep -h verifier_stdout past_trajectories/*/*/*.json; cat memory/README.md")),
    ("verifier_stdout", turn("A first version.", BROKEN)),
    ("[exit code 0]", turn("Build.", f"{TOOL}build.py {ENV}")),
    ("the image is built", turn("Oracle.", f"{TOOL}validate.py {ENV} oracle")),
    ("failed count", turn("Why?", f"{TOOL}run.py {ENV} --solution 'bash /solution/solve.sh; cat count.txt; wc -l orders.csv'")),
    ("6 orders.csv", turn("The header was counted.", solve("NR > 1"))),
    ("[exit code 0]", turn("A cache that spoils the task.", f"{STALE}; {TOOL}validate.py {ENV} noop")),
    ("reward=0.666667 (noop; wanted below 0.5): NOT OK", turn("Take it out.", f"{FRESH}; {TOOL}validate.py {ENV} noop")),
    ("reward=0 (noop; wanted below 0.5): OK", turn("Solver?", f"{TOOL}solver_model.py {ENV}")),
    ("mean 1.000  std 0.000", turn("Too easy: one more condition.", f"{RIGHT}\n{TOOL}validate.py {ENV} oracle")),
    ("reward=1 (oracle; wanted exactly 1): OK", turn("Both.", f"{TOOL}validate.py {ENV} noop; {TOOL}solver_model.py {ENV}")),
    ("std 0.333", turn("Spread. Remember.", "echo 'One more condition in the text made spread.' > memory/notes.md")),
    ("[exit code 0]", SUBMIT),
]  # fmt: skip


@pytest.fixture
def stage(backend, tmp_path):
    """propose(steps, …) → (proposal, proposer); judge(proposal) → admission."""
    parent = load_task(seed_tasks(tmp_path, (2,), 0)[0])

    class Stage:
        def proposer(self, steps, **options):
            solver = SolverTool(alternate(), rollouts=4, budget=parts.BUDGET)
            toolbox = options.pop("toolbox", Toolbox(backend, solver=solver))
            agent = TerminalAgent(looking(steps))
            return HarnessProposer(agent, backend=backend, toolbox=toolbox, store=tmp_path / "store", **options)

        def propose(self, steps, **options):
            proposer = self.proposer(steps, **options)
            proposer.refresh([Past("parent", parent, [run_trial(parent, parts.solver(0), backend)], round=1)])
            found = proposer.propose(parts.assignment(str(parent.path)), tmp_path / "new", seed=7)
            return found, proposer

        def judge(self, proposal):
            calibration = Calibration(parts.solver, rollouts=4, more=8, budget=parts.BUDGET)
            return admit(proposal.path, backend, calibrate=calibration)

    return Stage()


def alternate():
    """Numbers of tool rollouts are hashes: careful and naive solvers by turns instead, whatever the number."""
    seen = iter(range(1_000))
    return lambda number: parts.solver(next(seen))


def test_writes_breaks_tests_and_repairs_an_environment_and_gets_plus_one(stage):
    proposal, proposer = stage.propose(EPISODE)
    assert proposal.episode.ended_by == "submit"
    assert proposal.calls == len(EPISODE)
    assert proposal.violations == ()
    assert proposal.tools["validated"] == {"oracle": True, "noop": True}
    assert proposal.tools["calls"] == {"build": 1, "validate": 5, "run": 1, "solver_model": 2}
    assert proposal.tools["seconds"]["validate"] > 0
    assert proposal.tools["usd"] == 0
    json.dumps(proposal.to_row())
    verdict = stage.judge(proposal)
    assert [r.message for r in verdict.reasons] == []
    assert (verdict.admitted, verdict.reward) == (True, 1.0)
    assert sorted(verdict.rewards["solver"]) == pytest.approx([1 / 3] * 4 + [1] * 4, abs=1e-3)
    assert proposer.store.latest.changed == ("memory/notes.md",)
    assert "One more condition" in proposer.store.diff(0, proposer.store.latest.number)


def test_submitting_unvalidated_gets_minus_one(stage):
    proposal, _ = stage.propose([("Assignment", turn("Quick.", BROKEN)), ("", SUBMIT)])
    assert "unvalidated" in proposal.violations
    verdict = stage.judge(proposal)
    assert (verdict.stage, verdict.reward) == ("oracle", -1.0)


def test_leaking_the_oracle_gets_minus_one_though_both_validations_pass(stage):
    check = f"{TOOL}validate.py {ENV} oracle && {TOOL}validate.py {ENV} noop"
    steps = [("", turn("With a leak.", f"{SOUND}\n{LEAK}\n{check}")), ("reward=0 (noop", SUBMIT)]
    proposal, _ = stage.propose(steps)
    assert proposal.tools["validated"] == {"oracle": True, "noop": True}
    verdict = stage.judge(proposal)
    assert verdict.reward == -1.0
    assert "solution-in-image" in [r.kind for r in verdict.reasons]


def test_outside_the_band_gets_minus_a_quarter(stage):
    check = f"{TOOL}validate.py {ENV} oracle && {TOOL}validate.py {ENV} noop"
    proposal, _ = stage.propose([("", turn("Easy.", f"{EASY}\n{check}")), ("reward=0 (noop", SUBMIT)])
    verdict = stage.judge(proposal)
    assert (verdict.validated, verdict.admitted, verdict.reward) == (True, False, -0.25)
    assert [r.kind for r in verdict.reasons] == ["too-easy"]


def test_a_revision_begins_with_the_refused_version_and_its_reasons(stage, tmp_path):
    revise = turn("Repair.", f"cat {ENV}/solution/solve.sh; {solve('NR > 1')}")
    steps = [("", turn("Broken.", BROKEN)), ("", SUBMIT)]
    _, proposer = stage.propose(steps)
    fresh = stage.proposer([("[oracle] oracle-fails: 2 of 3", revise), ("NR >= 1", SUBMIT)])
    fresh._last = proposer._last
    again = fresh.propose(parts.assignment(), tmp_path / "new-rev1", seed=8, feedback="[oracle] oracle-fails: 2 of 3")
    assert again.path == str(tmp_path / "new-rev1")
    assert (tmp_path / "new-rev1/tests/test.sh").stat().st_mode & 0o100


def test_an_episode_without_a_submission_is_a_proposal_without_path(stage):
    proposal, _ = stage.propose([("", SUBMIT)])
    assert proposal.path is None
    assert f"/workspace/{ENV}" in proposal.message
    assert proposal.violations == ("no-files",)


def test_one_string_names_a_harness_with_a_script(backend, tmp_path):
    script = tmp_path / "commands.json"
    script.write_text(json.dumps([SOUND]))
    proposer = get_proposer(f"harness:script:{script}", backend=backend, toolbox=Toolbox(backend))
    assert proposer.name == f"harness:script:{script}"
    assert load_task(proposer.propose(parts.assignment(), tmp_path / "new", seed=0).path).name == "scripted/orders"


@pytest.mark.parametrize("spec", ["harness:", "harness:terminal", "harness:terminal:"])
def test_a_harness_without_agent_or_model_is_refused(spec):
    with pytest.raises(ValueError, match="harness:AGENT:MODEL"):
        get_proposer(spec)


def test_the_output_folder_has_the_assignments_number():
    assert env_name(parts.assignment(id="r2-a017")) == "env_017"
    assert env_name(parts.assignment(id="odd")) == "env_000"
