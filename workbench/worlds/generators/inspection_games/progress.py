"""Progress: trials counted, payoffs exact, dominated strategies gone, values, mixes, certificates, coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile

NODES = (
    ("counts", 2, ()),
    ("payoffs", 2, ("counts",)),
    ("dominance", 2, ("payoffs",)),
    ("values", 3, ("payoffs",)),
    ("mixes", 3, ("values",)),
    ("certificate", 2, ("mixes",)),
    ("coverage", 2, ("values",)),
)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    games = _read(tree, "output/staging/payoffs.csv", ["site", "route", "entry", "hits", "trials", "payoff"])
    paid = _read(tree, "output/certificate.csv", ["site", "side", "strategy", "payoff", "slack"])
    solved = hostile.json_file(tree, "output/equilibria.json")
    return {
        "counts": _agreement([row[:5] for row in truth["payoffs"]], [row[:5] for row in games]),
        "payoffs": _agreement(truth["payoffs"], games),
        "dominance": _by_site(truth["dominance"], hostile.json_file(tree, "output/staging/dominance.json"), None),
        "values": _by_site(truth["equilibria"], solved, "value"),
        "mixes": _by_site(truth["equilibria"], solved, None),
        "certificate": _agreement(truth["certificate"], paid),
        "coverage": _coverage(truth["coverage"], hostile.json_file(tree, "output/coverage.json")),
    }


def _read(tree: Mapping[str, bytes], path: str, columns: list[str]) -> list[list[str]]:
    found = hostile.table_file(tree, path)
    if found is None or set(found[0]) != set(columns) or len(found[0]) != len(columns):
        return []
    places = {name: at for at, name in enumerate(found[0])}
    return [[row[places[name]] for name in columns] for row in found[1]]


def _agreement(ours: list[list[str]], theirs: list[list[str]]) -> float:
    if ours == theirs:
        return 1.0
    mine, yours = set(map(tuple, ours)), set(map(tuple, theirs))
    return min(0.99, 2 * len(mine & yours) / (len(mine) + len(theirs)))


def _by_site(expected: Mapping[str, Any], got: Any, key: str | None) -> float:
    """Share of sites whose entry (or one part of it) is right."""
    if not isinstance(got, dict):
        return 0.0
    right = 0
    for site, entry in expected.items():
        told = got.get(site)
        if key is None:
            right += hostile.same(entry, told)
        else:
            right += isinstance(told, dict) and hostile.same(entry[key], told.get(key))
    return right / max(len(expected), len(got))


def _coverage(expected: Mapping[str, Any], got: Any) -> float:
    if hostile.same(expected, got):
        return 1.0
    chosen = isinstance(got, dict) and hostile.same(expected["value"], got.get("value"))
    return 0.5 if chosen else 0.0
