"""Precision and recall over the facts of nested data, for progress graders: every leaf is a fact, named by its path."""

from __future__ import annotations

from typing import Any

CAP = 200_000  # facts of one file
DEPTH = 12


def facts(value: Any, keys: tuple[str, ...], path: tuple[Any, ...] = (), out: set[Any] | None = None) -> set[Any]:
    """{(path, kind, value)}. A record of a list goes by its own values of `keys` (those it has), else by its place; the order of a list
    is a fact of its own. Stops at CAP facts and DEPTH levels, which only loses credit."""
    out = set() if out is None else out
    if len(out) > CAP or len(path) > DEPTH:
        return out
    if isinstance(value, dict):
        out.add((path, "keys", tuple(sorted(map(str, value)))))
        for name, item in value.items():
            facts(item, keys, (*path, str(name)), out)
    elif isinstance(value, list):
        names = [_name(item, keys, at) for at, item in enumerate(value)]
        out.add((path, "order", tuple(names)))
        for name, item in zip(names, value, strict=True):
            facts(item, keys, (*path, name), out)
    elif isinstance(value, bool) or value is None or isinstance(value, str):
        out.add((path, type(value).__name__, value))
    else:
        out.add((path, "number", value))
    return out


def _name(item: Any, keys: tuple[str, ...], at: int) -> Any:
    if isinstance(item, dict):
        own = tuple(str(item[k]) for k in keys if isinstance(item.get(k), str | int))
        return own or at
    return at


def overlap(expected: Any, got: Any, keys: tuple[str, ...], content: tuple[str, ...] = ("str", "number")) -> float:
    """F1 of the facts, 1.0 exactly when all agree; 0 until one fact of a kind in `content` is right."""
    if got is None or type(expected) is not type(got):
        return 0.0
    ours, theirs = facts(expected, keys), facts(got, keys)
    both = ours & theirs
    if not any(kind in content for _, kind, _ in both):
        return 0.0
    if ours == theirs:
        return 1.0
    return min(2 * len(both) / (len(ours) + len(theirs)), 0.999)
