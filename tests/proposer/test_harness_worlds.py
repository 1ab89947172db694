"""The tool `worlds` with the real library: an agent composes a latent world in a sandbox, and the gate admits it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents.noop import NoOp
from workbench.agents.oracle import Oracle
from workbench.proposer import get_proposer
from workbench.proposer.compare_config import entries
from workbench.proposer.compare_open import Opener
from workbench.proposer.latent import LatentWorlds
from workbench.runs.folder import new_run

from . import harness_parts as parts
from .harness_parts import ENV, TOOL

COMPOSE = f"{TOOL}worlds.py compose micro_shelf micro {ENV}"


def half(number: int) -> Oracle | NoOp:
    """A population of which every second one knows the solution."""
    return Oracle() if number % 2 else NoOp()


@pytest.fixture
def propose(tmp_path):
    """A function from commands to a proposal of `harness:script` with a library of worlds; each has a new harness."""
    made = []

    def one(*commands: str, name: str = "a"):
        script = tmp_path / f"{name}.json"
        script.write_text(json.dumps(commands))
        library = LatentWorlds(generators=["micro_shelf"], tiers=("micro",), seed=3)
        made.append(get_proposer(f"harness:script:{script}", worlds=library, store=tmp_path / f"store-{name}"))
        return made[-1].propose(parts.assignment(), tmp_path / f"task-{name}", seed=0)

    yield one
    for harness in made:
        harness.close()


def test_a_composed_world_is_submitted_and_admitted(propose, backend):
    proposal = propose(
        f"{TOOL}worlds.py list\n{COMPOSE} && {TOOL}validate.py {ENV} oracle && {TOOL}validate.py {ENV} noop"
    )
    assert "micro_shelf" in proposal.episode.turns[0].observation
    assert proposal.tools["validated"] == {"oracle": True, "noop": True}
    assert proposal.violations == ()
    gate = Calibration(half, rollouts=2, more=2, budget=parts.BUDGET)
    assert admit(proposal.path, backend, repeats=1, calibrate=gate).admitted


def test_an_episode_that_is_played_again_gets_the_same_world(propose):
    """Else a resumed comparison would show its model something new, and pay for it."""
    first, second = (propose(f"{COMPOSE}2; {COMPOSE}", name=name) for name in ("a", "b"))
    files = [
        {p.relative_to(path): p.read_bytes() for p in sorted(Path(path).rglob("*")) if p.is_file()}
        for path in (first.path, second.path)
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("offered", [True, False])
def test_a_comparison_offers_worlds_where_its_profile_says_so(offered, backend, tmp_path):
    run = new_run("20_compare_proposers", {"profile": "test"}, results=tmp_path).begin()
    config = {"models": [{"name": "d", "model": "designer:0:1"}], "methods": ["harness"], "self_check": [False]}
    (entry,) = entries({**config, "controls": [], "optimize": []})
    opener = Opener(run, backend, tmp_path / "harness", worlds={"tiers": ("micro",)}, harness_worlds=offered)
    try:
        toolbox = opener.harness(entry).toolbox
        assert ("worlds" in toolbox.offered()) is offered
        assert not offered or toolbox.worlds.tiers == ("micro",)
    finally:
        opener.close()
