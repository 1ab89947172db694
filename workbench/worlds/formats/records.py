"""How much of a list or mapping of records a strict grader accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile


def _name(value: Any) -> Any:
    """A hashable stand-in for a JSON value in which 1 equals 1.0 and differs from true. Raises RecursionError when nested too deeply."""
    if isinstance(value, Mapping):
        return ("{", tuple(sorted((str(k), repr(_name(v))) for k, v in value.items())))
    if isinstance(value, list | tuple):
        return ("[", tuple(map(_name, value)))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (type(value).__name__, value)


def share(expected: Any, got: Any, floor: float = 0.6) -> float:
    """In [0, 1], and 1 exactly when got is expected, order included. Of lists: the equal records among the larger number of records;
    of mappings: the keys with equal values. Below `floor` it is 0: a few lucky facts are no evidence of work."""
    try:
        if hostile.same(expected, got):
            return 1.0
        if isinstance(expected, list) and isinstance(got, list):
            if len(got) * floor > len(expected):  # too many to reach the floor, and maybe chosen to make counting slow
                return 0.0
            ours, theirs = Counter(map(_name, expected)), Counter(map(_name, got))
            part = (ours & theirs).total() / max(len(expected), len(got), 1)
        elif isinstance(expected, Mapping) and isinstance(got, Mapping):
            equal = sum(1 for k, v in expected.items() if k in got and hostile.same(v, got[k]))
            part = equal / max(len(expected.keys() | got.keys()), 1)
        else:
            return 0.0
    except (RecursionError, OverflowError):
        return 0.0
    return 0.0 if part < floor else min(part, 0.99)


def table(found: tuple[list[str], list[list[str]]] | None, columns: list[str]) -> list[dict[str, str]] | None:
    """Rows of a table as mappings; None unless the header is exactly `columns`, in any order."""
    if found is None or sorted(found[0]) != sorted(columns):
        return None
    return [dict(zip(found[0], row, strict=True)) for row in found[1]]
