"""Digests: the same for the same content on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from workbench.worlds import Tree, WorldError


def canonical(value: Any) -> str:
    """A world or any plain value as one text: fields by name, mappings sorted, bytes in hexadecimal."""
    try:
        return json.dumps(value, default=_plain, sort_keys=True, ensure_ascii=True)
    except TypeError:  # keys that JSON lacks
        return json.dumps(_keyed(value), default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, set | frozenset):
        return sorted(canonical(item) for item in value)
    if hasattr(value, "items"):
        return dict(value)
    return repr(value)  # Fraction, Decimal, date: their text says all


def _keyed(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = _plain(value)
    if hasattr(value, "items"):
        return {k if isinstance(k, str) else repr(k): _keyed(v) for k, v in value.items()}
    return [_keyed(v) for v in value] if isinstance(value, list | tuple) else value


def world_id(world: Any) -> str:
    """sha256 of the world, in hexadecimal."""
    return hashlib.sha256(canonical(world).encode()).hexdigest()


def tree_digest(tree: Tree) -> str:
    """sha256 over paths and contents."""
    out = hashlib.sha256()
    for path in sorted(tree):
        out.update(f"{path}\0{len(tree[path])}\0".encode() + tree[path])
    return out.hexdigest()


def plain_json(value: Any, what: str) -> Any:
    """The value after a trip through JSON, as a grader will read it. WorldError when JSON can't hold it exactly."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise WorldError(f"{what} must be plain JSON data: {error}") from None
