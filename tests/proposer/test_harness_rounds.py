"""A harness in the flywheel: it is shown the round's rollouts, its record is in the journal, and what it keeps goes on."""

from __future__ import annotations

import pytest

from workbench.admission.calibration import Calibration
from workbench.agents.terminal import TerminalAgent
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.program import seed_tasks
from workbench.proposer.tools import Toolbox
from workbench.runs.folder import new_run, open_run
from workbench.tasks import load_task
from workbench.training.flywheel import Flywheel, Settings, generate

from . import harness_parts as parts
from .harness_parts import ENV, SOUND, SUBMIT, looking, turn


@pytest.fixture
def wheel(backend, tmp_path):
    run = new_run("40_flywheel", {"profile": "test"}, results=tmp_path).begin()
    steps = [
        ("", turn("Look.", "cat past_trajectories/index.jsonl past_trajectories/*/*/000.json; cat memory/round.md")),
        ('"verifier_stdout"', turn("Write.", f"{SOUND.replace(ENV, 'env_000')}\necho seen >> memory/round.md")),
        ("[exit code 0]", SUBMIT),
    ]
    proposer = HarnessProposer(
        TerminalAgent(looking(steps)), backend=backend, toolbox=Toolbox(backend), store=tmp_path / "store"
    )
    calibration = Calibration(parts.solver, rollouts=2, more=2, budget=parts.BUDGET)
    settings = Settings(assignments=1, rollouts=2, workers=2, calibration=calibration, budget=parts.BUDGET)
    made = Flywheel(run, backend, parts.solver, proposer, settings, say=lambda line: None)
    made.parents = [load_task(p) for p in seed_tasks(tmp_path / "parents", (2,), 0)]
    return made


def test_a_round_shows_its_rollouts_and_keeps_memory_and_record(wheel):
    (entry,) = generate(wheel, wheel.parents)
    assert entry.proposer_reward in (1.0, -0.25)  # two rollouts with hashed numbers: in the band or not, but valid
    (row,) = open_run(wheel.run.folder).rows("proposal")
    assert row["violations"] == ["unvalidated"]
    assert row["tools"]["harness_version"] == 1
    assert (wheel.proposer.store.path(1) / "memory/round.md").read_text() == "seen\n"
    assert wheel.proposer.store.for_round(2).number == 1
