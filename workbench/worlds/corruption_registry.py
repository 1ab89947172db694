"""The registry of corruption operators: what each is, how a defect is sealed, applied and undone (Tev §2.1, stage 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.worlds import Tree, WorldError

Params = Mapping[str, Any]
UNDO = "undo"  # the key of params under which sealing keeps what the inverse needs

# Within one file, defects of a plan stand in this order, so that one never has to read through another's damage.
PHASES = ("cells", "lines", "file")


@dataclass(frozen=True)
class Operator:
    """One kind of corruption. phase: cells (changes values in place), lines (adds or loses records), file (its bytes, or a second file).
    params: name -> what it means. undo: what of the clean tree the inverse needs, as JSON data (None: the params alone suffice)."""

    kind: str
    phase: str
    about: str
    params: Mapping[str, str]
    apply: Callable[[Tree, str, Params], dict[str, bytes]]
    invert: Callable[[Tree, str, Params], dict[str, bytes]]
    undo: Callable[[Tree, str, Params], Any] | None = None


OPERATORS: dict[str, Operator] = {}


def register(operator: Operator) -> Operator:
    """Add a kind to the registry. ValueError when the kind is taken."""
    if operator.kind in OPERATORS:
        raise ValueError(f"the corruption kind {operator.kind!r} is registered twice")
    if operator.phase not in PHASES:
        raise ValueError(f"{operator.kind}: phase {operator.phase!r} is none of {', '.join(PHASES)}")
    OPERATORS[operator.kind] = operator
    return operator


def need(params: Params, name: str, kind: str) -> Any:
    """params[name], or a WorldError that says what to give."""
    if name not in params:
        raise WorldError(f"{kind} needs params[{name!r}]: {OPERATORS[kind].params.get(name, 'see its registration')}")
    return params[name]


def undo_of(params: Params, kind: str) -> Any:
    if UNDO not in params:
        raise WorldError(f"{kind} is not sealed: corruption.seal(clean tree, defect) keeps what its inverse needs")
    return params[UNDO]


def changed(tree: Tree, path: str, data: bytes | None) -> dict[str, bytes]:
    """tree with one file replaced, or removed when data is None."""
    out = dict(tree)
    if data is None:
        del out[path]
    else:
        out[path] = data
    return out
