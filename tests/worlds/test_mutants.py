"""Graders meet mutants of the right answer: they never raise, and Phi is 1 exactly when the verifier passes."""

from __future__ import annotations

import pytest

from tests.worlds.mutants import mutants
from workbench.worlds import build, catalog
from workbench.worlds.grading import grade

NAMES = catalog.names()


def judged(name: str, seed: int, count: int) -> list[str]:
    """What went wrong; grade() itself raises when a grader does, or leaves [0, 1]."""
    generator = catalog.get(name)
    environment = build(name, seed, generator.spec.tiers[0])
    wrong = []
    for what, tree in mutants(environment, count):
        graded = grade(generator, environment, tree)
        if graded.passed != (graded.phi == 1):
            low = {k: v for k, v in {**graded.components, **graded.nodes}.items() if v != 1}
            wrong.append(f"seed {seed} mutant {what}: passed {graded.passed}, Phi {graded.phi:.6g}, {low}")
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_a_few_mutants(name):
    assert judged(name, 4, 30) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_thousands_of_mutants(name):
    assert [line for seed in (5, 6, 7) for line in judged(name, seed, 1000)] == []
