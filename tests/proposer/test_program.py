"""The program proposer: pure in (rung, seed), moves along the ladder, and every rung is a valid environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.admission.admit import admit
from workbench.proposer import Assignment, get_proposer
from workbench.proposer.program import LADDER, MIDDLE, draw, instruction, rung_of, seed_tasks, write_task
from workbench.proposer.steps import KINDS
from workbench.sandboxes import get_backend
from workbench.tasks import load_task


def assignment(parent: Path, direction: str) -> Assignment:
    return Assignment("r1-a000", "run", 0.0, 1, "p", str(parent), "d", direction, 0.5, "failed x")


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_task(tmp_path):
    write_task(draw(5, 3), tmp_path / "a" / "same", "same")
    write_task(draw(5, 3), tmp_path / "b" / "same", "same")
    write_task(draw(5, 4), tmp_path / "c" / "same", "same")
    a, b, c = (load_task(tmp_path / x / "same").digest for x in "abc")
    assert a == b != c


@pytest.mark.parametrize(("direction", "move"), [("harder", 1), ("simpler", -1)])
def test_the_direction_moves_one_rung(tmp_path, direction, move):
    parent = seed_tasks(tmp_path, (4,), 0)[0]
    proposal = get_proposer("program").propose(assignment(parent, direction), tmp_path / "new", seed=7)
    assert rung_of(tmp_path / "new") == 4 + move
    assert proposal.path == str(tmp_path / "new")
    assert proposal.usd == 0.0


def test_the_ladder_has_ends_and_a_middle_for_foreign_parents(tmp_path):
    assert draw(-3, 1).rung == 0
    assert draw(99, 1).rung == len(LADDER) - 1
    get_proposer("program").propose(assignment(tmp_path / "missing", "harder"), tmp_path / "new", seed=1)
    assert rung_of(tmp_path / "new") == MIDDLE


def test_every_rung_names_known_kinds_and_says_each_step():
    for rung, kinds in enumerate(LADDER):
        spec = draw(rung, 11)
        assert [s.kind for s in spec.steps] == list(kinds)
        assert all(kind in KINDS for kind in kinds)
        assert all(step.file in instruction(spec) for step in spec.steps)


def test_every_rung_is_valid_on_a_real_sandbox(tmp_path):
    backend = get_backend("bubblewrap")
    for path in seed_tasks(tmp_path, tuple(range(len(LADDER))), 2):
        found = admit(path, backend, repeats=1)
        assert found.validated, (path, found.reasons)
        assert found.rewards == {"oracle": [1.0], "noop": [0.0]}
