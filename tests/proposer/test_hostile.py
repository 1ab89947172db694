"""Every hostile move fails, is named in the record, and the run goes on (tests/proposer/hostile.py is the table)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.admission.admit import admit
from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.proposer.harness import HarnessProposer, HarnessSettings
from workbench.proposer.latent import LatentWorlds
from workbench.proposer.limits import Caps
from workbench.proposer.tools import SolverTool, Toolbox
from workbench.proposer.tools_wire import WireLimits
from workbench.sandboxes import Limits
from workbench.tasks.digest import digest

from . import harness_parts as parts
from .harness_parts import ENV, SOUND, TOOL
from .hostile import MOVES

SECRET = "canary-secret-5f1d"
HELD_OUT = "CANARY-" + "HELD-OUT-7a2e"
CAPS = Caps(calls={"build": 20, "run": 20, "validate": 10, "solver_model": 2, "worlds": 6})
SETTINGS = HarnessSettings(
    budget=Budget(turns=8, seconds=120, command_seconds=60),
    limits=Limits(cpus=1, memory_mb=256, disk_mb=96, processes=64),
    max_files=1_000,
    wire=WireLimits(seconds=3.0, first_byte_seconds=1.0),
)


@pytest.fixture(scope="module")
def stage(backend, tmp_path_factory):
    """(a function from commands to a proposal, the proposer's shared host folder)."""
    home = tmp_path_factory.mktemp("hostile")
    (home / "held-out").mkdir()
    (home / "held-out" / "instruction.md").write_text(HELD_OUT)
    os.environ["WORKBENCH_CANARY"] = SECRET
    seen = iter(range(10_000))
    solver = SolverTool(lambda _: parts.solver(next(seen)), rollouts=2, budget=parts.BUDGET)
    worlds = LatentWorlds(generators=["micro_shelf"], tiers=("micro",))
    toolbox = Toolbox(backend, caps=CAPS, solver=solver, worlds=worlds)
    shared = HarnessProposer(ScriptedAgent([]), backend=backend, toolbox=toolbox, settings=SETTINGS)
    number = iter(range(10_000))

    def propose(*commands):
        shared._agent = lambda seed: ScriptedAgent(commands)
        return shared.propose(parts.assignment(), home / f"new-{next(number)}", seed=0)

    propose("true")
    yield propose, shared
    del os.environ["WORKBENCH_CANARY"]
    shared.close()


@pytest.mark.parametrize("move", MOVES, ids=lambda m: m.name)
def test_the_move_fails_and_is_named(move, stage, backend):
    propose, proposer = stage
    before = digest(proposer.shared()), proposer.store.latest
    proposal = propose(*move.commands)
    told = "\n".join(turn.observation for turn in proposal.episode.turns)
    assert set(move.named) <= set(proposal.violations), told
    for words in move.seen:
        assert words in told
    for secret in (SECRET, HELD_OUT, str(Path.home() / ".bash"), str(proposer.shared())):
        assert secret not in told
    assert (proposal.path is not None) is move.taken, proposal.message
    assert digest(proposer.shared()) == before[0]
    if move.named[0].startswith("memory:"):
        assert proposer.store.latest == before[1]
    if move.judged:
        verdict = admit(proposal.path, backend, repeats=1)
        assert not verdict.infra
        assert {r.kind for r in verdict.reasons} & set(move.judged) or (move.judged == ("",) and verdict.validated)


def test_there_are_twenty_moves_and_more_and_the_page_lists_each():
    page = (Path(__file__).parents[2] / "docs" / "proposer.md").read_text()
    assert len({m.name for m in MOVES}) == len(MOVES) >= 20
    assert [m.name for m in MOVES if f"| {m.name} |" not in page] == []


def test_afterwards_an_honest_episode_is_served_and_valid(stage, backend):
    propose, _ = stage
    proposal = propose(f"{SOUND}\n{TOOL}validate.py {ENV} oracle && {TOOL}validate.py {ENV} noop")
    assert proposal.violations == ()
    assert admit(proposal.path, backend, repeats=1).validated
