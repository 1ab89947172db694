"""Operators on versions of whole files, text or binary."""

from __future__ import annotations

from workbench.worlds import Tree
from workbench.worlds.corruption_registry import Operator, Params, changed, need, register, undo_of


def _overwrite(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    return changed(tree, path, bytes.fromhex(need(params, "hex", "stale_overwrite")))


register(
    Operator(
        "stale_overwrite",
        "file",
        "a file was overwritten by its earlier version; the fresh one stands elsewhere",
        {"hex": "the earlier version's bytes"},
        _overwrite,
        lambda t, path, p: changed(t, path, bytes.fromhex(undo_of(p, "stale_overwrite"))),
        lambda t, path, p: t[path].hex(),
    )
)
