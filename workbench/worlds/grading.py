"""Grades an output tree as a task will be graded: by the strict verifier, and by the potential."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Environment, Tree, WorldError, potential
from workbench.worlds.catalog import Generator


@dataclass(frozen=True)
class Grade:
    """components: each in [0, 1]. phi: in [0, 1]. passed: all components are exactly 1."""

    components: Mapping[str, float]
    nodes: Mapping[str, float]
    phi: float

    @property
    def passed(self) -> bool:
        return all(value == 1 for value in self.components.values())


def grade(generator: Generator, environment: Environment, tree: Tree) -> Grade:
    """WorldError when a grader raises, or answers something else than a number in [0, 1] for each of its own names."""
    components = _asked(generator, "verify", generator.components, environment, tree)
    nodes = _asked(generator, "progress", [n.name for n in generator.nodes], environment, tree)
    return Grade(components, nodes, potential(generator.nodes, nodes))


def _asked(generator: Generator, role: str, names: object, environment: Environment, tree: Tree) -> dict[str, float]:
    ask = generator.verify.verify if role == "verify" else generator.progress.score
    try:
        scores = dict(ask(environment.truth, dict(tree)))
    except Exception as error:  # a grader must never raise, whatever the tree holds
        raise WorldError(f"{role}.py raised {type(error).__name__}: {str(error)[:200]}") from error
    if set(scores) != set(names):
        raise WorldError(f"{role}.py scored {sorted(scores)}; it declares {sorted(names)}")
    for name, value in scores.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or not 0 <= value <= 1
        ):
            raise WorldError(f"{role}.py scored {name!r} {value!r}: a number in [0, 1] is needed")
    return {name: float(value) for name, value in scores.items()}
