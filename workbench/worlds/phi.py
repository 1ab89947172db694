"""Phi of a world: the contract's own arithmetic (workbench.tasks.progress), with a world's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.tasks.progress import Node, ProgressError, check_nodes, gated, potential
from workbench.worlds import WorldError

__all__ = ["combine", "gated"]


def combine(nodes: Sequence[Node], scores: Mapping[str, float]) -> float:
    """Phi in [0, 1]; 1.0 exactly when every node is (Tev §3.2, Eq. 3). Raises WorldError."""
    try:
        check_nodes(nodes, "NODES")
        return potential(nodes, scores)
    except ProgressError as error:
        raise WorldError(str(error)) from error
