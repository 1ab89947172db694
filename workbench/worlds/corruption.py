"""Controlled corruption: the door to all operators (Tev §2.1, stage 4).

A generator's plan() declares what is damaged; `seal` fills in what the exact inverse needs, from the tree that the defect meets, and
proves that the inverse gives the same bytes back. `apply` does the damage, `invert` undoes it. Kinds: `workbench worlds coverage`, or
`describe()`. Further operators: a module `corruption_<something>.py` here that calls `register`; it is found by its name.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from workbench.worlds import Defect, Tree, WorldError
from workbench.worlds.corruption_registry import OPERATORS, PHASES, UNDO, Operator


@functools.cache
def _load() -> None:
    for file in sorted(Path(__file__).parent.glob("corruption_*.py")):
        importlib.import_module(f"workbench.worlds.{file.stem}")


def operator(kind: str) -> Operator:
    """The operator of a kind. WorldError lists the kinds there are."""
    _load()
    if kind not in OPERATORS:
        raise WorldError(f"there is no corruption kind {kind!r}: {', '.join(sorted(OPERATORS))}")
    return OPERATORS[kind]


def kinds() -> tuple[str, ...]:
    """All kinds, in alphabetical order."""
    _load()
    return tuple(sorted(OPERATORS))


def describe() -> list[dict[str, object]]:
    """kind, phase, about and params of every operator."""
    return [
        {"kind": o.kind, "phase": o.phase, "about": o.about, "params": dict(o.params)} for o in map(operator, kinds())
    ]


def apply(tree: Tree, defect: Defect) -> dict[str, bytes]:
    """The tree with the defect in it. WorldError says why it doesn't fit, and when it changes nothing."""
    if defect.path not in tree:
        raise WorldError(f"{defect.kind}: there is no file {defect.path!r} among {', '.join(sorted(tree))}")
    out = operator(defect.kind).apply(tree, defect.path, defect.params)
    if out == dict(tree):
        raise WorldError(f"{defect.kind} on {defect.path} changes nothing: a declared defect must be there")
    return out


def invert(tree: Tree, defect: Defect) -> dict[str, bytes]:
    """The tree without the (sealed) defect, byte for byte."""
    if defect.path not in tree:
        raise WorldError(f"{defect.kind}: there is no file {defect.path!r} to repair")
    return operator(defect.kind).invert(tree, defect.path, defect.params)


def seal(tree: Tree, defect: Defect) -> Defect:
    """The defect with all that its inverse needs in params["undo"]. WorldError when its inverse would not be exact, or its params are
    not plain JSON."""
    return _sealed(tree, defect)[0]


def _sealed(tree: Tree, defect: Defect) -> tuple[Defect, dict[str, bytes]]:
    params = {k: v for k, v in defect.params.items() if k != UNDO}
    try:
        json.dumps(params, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WorldError(f"{defect.kind} on {defect.path}: params must be plain JSON data ({error})") from None
    after = apply(tree, replace(defect, params=params))
    kept = operator(defect.kind).undo
    sealed = replace(defect, params={**params, UNDO: kept(tree, defect.path, params)} if kept else params)
    if invert(after, sealed) != dict(tree):
        raise WorldError(
            f"{defect.kind} on {defect.path} can't be undone exactly: its values don't come back the same "
            f"(params {json.dumps(params)[:200]})"
        )
    return sealed, after


def apply_all(tree: Tree, defects: Iterable[Defect]) -> tuple[dict[str, bytes], tuple[Defect, ...]]:
    """(corrupted tree, sealed defects), in the order of the plan. WorldError when a file's defects stand in the wrong order."""
    out, sealed, reached = dict(tree), [], {}
    for defect in defects:
        phase = PHASES.index(operator(defect.kind).phase)
        if phase < reached.get(defect.path, 0):
            raise WorldError(
                f"{defect.kind} on {defect.path} stands too late in the plan: for one file {' before '.join(PHASES)}"
            )
        reached[defect.path] = phase
        done, out = _sealed(out, defect)
        sealed.append(done)
    return out, tuple(sealed)


def invert_all(tree: Tree, sealed: Iterable[Defect]) -> dict[str, bytes]:
    """The clean tree again: the last defect is undone first."""
    out = dict(tree)
    for defect in reversed(tuple(sealed)):
        out = invert(out, defect)
    return out
