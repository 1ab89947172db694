"""Phi: prerequisite-gated weighted sum over the nodes of a progress contract (Tev §3.2, Eq. 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from workbench.worlds import Node, WorldError


def gated(nodes: Sequence[Node], scores: Mapping[str, float]) -> dict[str, float]:
    """c~_v: the lowest score over v and all its direct and indirect prerequisites. Nodes stand in topological order."""
    out: dict[str, float] = {}
    for node in nodes:
        own = scores.get(node.name, 0.0)
        if not (isinstance(own, int | float) and math.isfinite(own) and 0 <= own <= 1):
            raise WorldError(f"progress node {node.name!r} scored {own!r}: a number in [0, 1] is needed")
        missing = [r for r in node.requires if r not in out]
        if missing:
            raise WorldError(f"progress node {node.name!r} requires {missing}, which do not stand before it")
        out[node.name] = min([float(own), *(out[r] for r in node.requires)])
    return out


def combine(nodes: Sequence[Node], scores: Mapping[str, float]) -> float:
    """Phi in [0, 1]; exact arithmetic, so that it is 1.0 exactly when every node is."""
    total = sum(node.weight for node in nodes)
    if total <= 0 or any(node.weight <= 0 for node in nodes):
        raise WorldError("progress weights must be positive whole numbers")
    credit = gated(nodes, scores)
    return float(sum((Fraction(node.weight, total) * Fraction(credit[node.name]) for node in nodes), Fraction(0)))
