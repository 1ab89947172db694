"""Strict grader: games, elimination, equilibria, certificates and coverage, in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records

COMPONENTS = {"payoffs": 2, "dominance": 2, "equilibria": 4, "certificate": 2, "coverage": 2}
PAYOFFS = ["site", "route", "entry", "hits", "trials", "payoff"]
CERTIFICATE = ["site", "side", "strategy", "payoff", "slack"]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {
        "payoffs": _rows(truth["payoffs"], PAYOFFS, hostile.table_file(tree, "output/staging/payoffs.csv")),
        "dominance": records.share(truth["dominance"], hostile.json_file(tree, "output/staging/dominance.json"), 0.4),
        "equilibria": records.share(truth["equilibria"], hostile.json_file(tree, "output/equilibria.json"), 0.1),
        "certificate": _rows(truth["certificate"], CERTIFICATE, hostile.table_file(tree, "output/certificate.csv")),
        "coverage": _coverage(truth["coverage"], hostile.json_file(tree, "output/coverage.json")),
    }


def _rows(expected: list[list[str]], columns: list[str], found: Any) -> float:
    return records.share([dict(zip(columns, row, strict=True)) for row in expected], records.table(found, columns))


def _coverage(expected: Mapping[str, Any], got: Any) -> float:
    """Nothing unless the sum of values is right: names of sites are guessed easily."""
    if not isinstance(got, dict) or not hostile.same(expected["value"], got.get("value")):
        return 0.0
    return records.share(expected, got, 0.5)
