"""A task's progress contract: checkable states of the workspace, weighted and ordered, and the potential over them (Tev §3.2).

Any task may have one. It stands with the tests, where no agent sees it:

    tests/progress.json   {"version": 1, "workspace": "/app", "paths": ["output"], "program": "progress.py", "truth": "truth.json",
                           "max_bytes": 33554432, "nodes": [{"name": "readable", "weight": 5, "requires": []}, ...]}
    tests/progress.py     score(truth, tree) -> {node: score in [0, 1]}; tree: path below the workspace -> bytes

`truth` may be left out (then None is given). Nodes stand in topological order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

CONTRACT = "progress.json"
MAX_NODES = 100
MAX_CONTRACT_BYTES = 1 << 20


class ProgressError(ValueError):
    """The contract is malformed, or a scorer answered something else than numbers in [0, 1]: says what and where."""


@dataclass(frozen=True)
class Node:
    """A checkable state of the output workspace (Tev §3.2). weight: a positive whole number, normalised over the nodes;
    requires: prerequisites, whose lowest score caps this one's."""

    name: str
    weight: int
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contract:
    """workspace: absolute path in the sandbox. paths: folders below it that are graded. program, truth: file names in
    tests/. max_bytes: of all graded files together; a larger workspace scores 0."""

    nodes: tuple[Node, ...]
    workspace: str = "/app"
    paths: tuple[str, ...] = ("output",)
    program: str = "progress.py"
    truth: str | None = None
    max_bytes: int = 32 << 20

    def to_json(self) -> dict[str, Any]:
        nodes = [{"name": n.name, "weight": n.weight, "requires": list(n.requires)} for n in self.nodes]
        return {**self.__dict__, "version": 1, "paths": list(self.paths), "nodes": nodes}


def gated(nodes: Sequence[Node], scores: Mapping[str, float]) -> dict[str, float]:
    """c~_v: the lowest score over v and all its direct and indirect prerequisites. A node that is not scored scores 0."""
    out: dict[str, float] = {}
    for node in nodes:
        own = scores.get(node.name, 0.0)
        if isinstance(own, bool) or not isinstance(own, int | float) or not (math.isfinite(own) and 0 <= own <= 1):
            raise ProgressError(f"progress node {node.name!r} scored {own!r}: a number in [0, 1] is needed")
        out[node.name] = min([float(own), *(out[required] for required in node.requires)])
    return out


def potential(nodes: Sequence[Node], scores: Mapping[str, float]) -> float:
    """Phi(s) = sum_v w_v c~_v(s) in [0, 1], the weights normalised (Tev Eq. 3). Exact arithmetic: 1.0 exactly when every node is 1."""
    total = sum(node.weight for node in nodes)
    credit = gated(nodes, scores)
    return float(sum((Fraction(node.weight, total) * Fraction(credit[node.name]) for node in nodes), Fraction(0)))


def check_nodes(nodes: Sequence[Node], where: str = CONTRACT) -> None:
    """Raises ProgressError unless names are unique, weights positive whole numbers, prerequisites stand before."""
    if not nodes or len(nodes) > MAX_NODES:
        raise ProgressError(f"{where}: between 1 and {MAX_NODES} nodes are needed, there are {len(nodes)}")
    seen: set[str] = set()
    for node in nodes:
        if not node.name or node.name in seen:
            raise ProgressError(f"{where}: node {node.name!r} has no name of its own")
        if isinstance(node.weight, bool) or not isinstance(node.weight, int) or not 0 < node.weight <= 10**6:
            raise ProgressError(f"{where}: node {node.name!r} has weight {node.weight!r}; use a whole number from 1 up")
        if missing := [name for name in node.requires if name not in seen]:
            raise ProgressError(f"{where}: node {node.name!r} requires {missing}, which do not stand before it")
        seen.add(node.name)


def load_contract(tests: Path) -> Contract | None:
    """The contract in a `tests/` folder; None when it has none. Raises ProgressError."""
    path = tests / CONTRACT
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_CONTRACT_BYTES:
        raise ProgressError(f"{path}: more than {MAX_CONTRACT_BYTES} bytes")
    try:
        data = json.loads(path.read_bytes())
        nodes = tuple(Node(n["name"], n["weight"], tuple(n.get("requires") or ())) for n in data["nodes"])
        contract = Contract(
            nodes,
            workspace=str(data.get("workspace", "/app")),
            paths=tuple(str(p) for p in data.get("paths") or ("output",)),
            program=str(data.get("program", "progress.py")),
            truth=None if data.get("truth") is None else str(data["truth"]),
            max_bytes=int(data.get("max_bytes", 32 << 20)),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProgressError(f"{path}: not a progress contract: {type(error).__name__}: {error}") from error
    _check(contract, tests, path)
    return contract


def _check(contract: Contract, tests: Path, path: Path) -> None:
    check_nodes(contract.nodes, str(path))
    if not contract.workspace.startswith("/") or contract.max_bytes <= 0:
        raise ProgressError(f"{path}: workspace must be an absolute path, and max_bytes positive")
    for name in contract.paths:
        if name.startswith("/") or ".." in name.split("/"):
            raise ProgressError(f"{path}: {name!r} does not lie below the workspace")
    for name in (contract.program, *([contract.truth] if contract.truth else [])):
        if "/" in name or not (tests / name).is_file():
            raise ProgressError(f"{path}: there is no file {name!r} beside it")
