"""Progress through the family: files chosen, code listed, keys found, fields decrypted, serial numbers judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("sources", 2, ()),
    ("instructions", 3, ("sources",)),
    ("reachability", 1, ("instructions",)),
    ("keys", 3, ()),
    ("configs", 4, ("keys",)),
    ("verdicts", 3, ()),
    ("report", 2, ("keys",)),
)


def _cells(expected: list[dict[str, str]], table: Any, key: tuple[str, ...], columns: tuple[str, ...]) -> float:
    """F1 over (key, column, value) cells; a table in another order or of other columns falls just short."""
    if table is None or not set(key) <= set(table[0]):
        return 0.0
    rows = [dict(zip(table[0], row, strict=True)) for row in table[1]]

    def cells(group: list[dict[str, str]]) -> list[tuple[Any, ...]]:
        return [(*(r[k] for k in key), c, r[c]) for r in group for c in columns if c in r]

    ours, theirs = cells(expected), cells(rows)
    right = len(set(ours) & set(theirs))
    score = 2 * right / (len(ours) + len(theirs)) if right else 0.0
    tidy = ours == theirs and sorted(table[0]) == sorted(expected[0])
    return 1.0 if tidy else min(score, 0.98)


def _keys(expected: list[dict[str, Any]], found: Any) -> float:
    rows = found.get("samples") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        return 0.0
    pairs = {
        (r.get("sample"), r.get("key"))
        for r in rows
        if isinstance(r, dict) and isinstance(r.get("sample"), str) and isinstance(r.get("key"), str)
    }
    right = len(pairs & {(r["sample"], r["key"]) for r in expected})
    return 2 * right / (len(expected) + len(rows)) if right else 0.0


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    listing = hostile.table_file(tree, "output/staging/disassembly.csv")
    place = ("sample", "offset")
    configs = hostile.json_file(tree, "output/configs.json")
    return {
        "sources": _cells(
            truth["sources"],
            hostile.table_file(tree, "output/staging/sources.csv"),
            ("sample",),
            ("source", "sha256", "isa"),
        ),
        "instructions": _cells(truth["disassembly"], listing, place, ("mnemonic", "a", "operand")),
        "reachability": _cells(truth["disassembly"], listing, place, ("reachable",)),
        "keys": _keys(truth["configs"], configs),
        "configs": leaves.overlap({"samples": truth["configs"]}, configs, ("sample",)),
        "verdicts": _cells(
            truth["keychecks"], hostile.table_file(tree, "output/keychecks.csv"), ("id", "sample"), ("verdict", "steps")
        ),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), ()),
    }
