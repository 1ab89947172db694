"""Alternative solver: kernels of the integer matrix and their adjugates (Shapley and Snow 1950), and all subsets of sites."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

Whole = list[list[int]]


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    book = json.loads(tree["input/sites.json"])
    yes = {"yes", *book["outcomes"]["yes"]}
    corrected = {cells[0]: cells[1] in yes for cells in _cells(tree["input/corrections.csv"])}
    payoffs, certificate = ["site,route,entry,hits,trials,payoff"], ["site,side,strategy,payoff,slack"]
    dominance, equilibria, worth = {}, {}, {}
    for name in sorted(book["sites"]):
        site = book["sites"][name]
        routes, entries = sorted(site["routes"]), sorted(site["entries"])
        outcomes: dict[str, tuple[str, str, bool]] = {}
        for trial, one, other, said in _cells(tree[f"input/trials/{name}.csv"]):
            route, entry = sorted((one, other), reverse=True)  # R- after E-
            if route in routes and entry in entries:
                outcomes[trial] = (route, entry, corrected.get(trial, said in yes))
        pairs = {(r, e): [hit for a, b, hit in outcomes.values() if (a, b) == (r, e)] for r in routes for e in entries}
        exact = [
            [Fraction(site["entries"][e] * sum(pairs[r, e]), len(pairs[r, e])) - site["routes"][r] for e in entries]
            for r in routes
        ]
        for r, row in zip(routes, exact, strict=True):
            payoffs += [
                f"{name},{r},{e},{sum(pairs[r, e])},{len(pairs[r, e])},{v}" for e, v in zip(entries, row, strict=True)
            ]
        dominance[name] = _reduce(exact, routes, entries)
        scale = lcm(*(value.denominator for row in exact for value in row))
        value, x, y = _equilibrium([[int(v * scale) for v in row] for row in exact])
        value /= scale
        worth[name] = (value, site["hours"], len([p for p in x if p]) > 1)
        equilibria[name] = {
            "value": str(value),
            "routes": {r: str(p) for r, p in zip(routes, x, strict=True)},
            "entries": {e: str(q) for e, q in zip(entries, y, strict=True)},
        }
        for j, e in enumerate(entries):
            got = sum((p * row[j] for p, row in zip(x, exact, strict=True)), Fraction(0))
            certificate.append(f"{name},entry,{e},{got},{got - value}")
        for r, row in zip(routes, exact, strict=True):
            got = sum((q * v for q, v in zip(y, row, strict=True)), Fraction(0))
            certificate.append(f"{name},route,{r},{got},{value - got}")
    return {
        "output/staging/payoffs.csv": _join(payoffs),
        "output/staging/dominance.json": json.dumps(dominance).encode(),
        "output/equilibria.json": json.dumps(equilibria).encode(),
        "output/certificate.csv": _join(certificate),
        "output/coverage.json": json.dumps(_coverage(worth, book["available_hours"])).encode(),
    }


def _cells(data: bytes) -> list[list[str]]:
    return [re.split("[,;]", line) for line in data.decode().splitlines()[1:]]


def _join(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _reduce(game: list[list[Fraction]], routes: list[str], entries: list[str]) -> dict[str, Any]:
    rounds, rows = [], dict(zip(routes, game, strict=True))
    columns = dict(zip(entries, map(list, zip(*game, strict=True)), strict=True))
    alive_r, alive_e = list(routes), list(entries)
    while True:
        i, j = [routes.index(r) for r in alive_r], [entries.index(e) for e in alive_e]
        gone = {
            "routes": [r for r in alive_r if any(all(rows[s][n] > rows[r][n] for n in j) for s in alive_r)],
            "entries": [e for e in alive_e if any(all(columns[f][n] < columns[e][n] for n in i) for f in alive_e)],
        }
        if not any(gone.values()):
            return {"routes": alive_r, "entries": alive_e, "rounds": rounds}
        rounds.append(gone)
        alive_r = [r for r in alive_r if r not in gone["routes"]]
        alive_e = [e for e in alive_e if e not in gone["entries"]]


def _equilibrium(game: Whole) -> tuple[Fraction, list[Fraction], list[Fraction]]:
    """value = |B| / sum(adj B), mixes the column and row sums of adj B over the same, for the kernel B whose answer nobody can better."""
    m, n = len(game), len(game[0])
    for size in range(1, min(m, n) + 1):
        for rows in itertools.combinations(range(m), size):
            for columns in itertools.combinations(range(n), size):
                kernel = [[game[i][j] for j in columns] for i in rows]
                adjugate = _adjugate(kernel)
                total = sum(map(sum, adjugate))
                if not total:
                    continue
                x, y = [Fraction(0)] * m, [Fraction(0)] * n
                for at, i in enumerate(rows):
                    x[i] = Fraction(sum(row[at] for row in adjugate), total)
                for at, j in enumerate(columns):
                    y[j] = Fraction(sum(adjugate[at]), total)
                if min(x) < 0 or min(y) < 0:
                    continue
                value = Fraction(_determinant(kernel), total)
                best = max(sum(v * q for v, q in zip(row, y, strict=True)) for row in game)
                worst = min(sum(game[i][j] * x[i] for i in range(m)) for j in range(n))
                if best == value == worst:
                    return value, x, y
    raise ValueError("no kernel solves the game")


def _determinant(matrix: Whole) -> int:
    if len(matrix) == 1:
        return matrix[0][0]
    if len(matrix) == 2:
        return matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0]
    return sum(
        (-1) ** j * value * _determinant([row[:j] + row[j + 1 :] for row in matrix[1:]])
        for j, value in enumerate(matrix[0])
        if value
    )


def _adjugate(matrix: Whole) -> Whole:
    if len(matrix) == 1:
        return [[1]]
    size = range(len(matrix))
    minors = [
        [
            _determinant([row[:j] + row[j + 1 :] for k, row in enumerate(matrix) if k != i]) * (-1) ** (i + j)
            for i in size
        ]
        for j in size
    ]
    return minors


def _coverage(worth: dict[str, tuple[Fraction, int, bool]], hours: int) -> dict[str, Any]:
    unit = lcm(*(value.denominator for value, _, _ in worth.values()))
    whole = {name: int(value * unit) for name, (value, _, _) in worth.items()}
    best: tuple[int, int, tuple[str, ...]] = (0, 0, ())
    for size in range(1, len(worth) + 1):
        for names in itertools.combinations(sorted(worth), size):
            if sum(worth[name][1] for name in names) <= hours:
                best = min(best, (-sum(whole[name] for name in names), size, names))
    used = sum(worth[name][1] for name in best[2])
    return {
        "sites": list(best[2]),
        "hours": used,
        "value": str(Fraction(-best[0], unit)),
        "unused_hours": hours - used,
        "strongest": sorted(worth, key=lambda name: (-whole[name], name))[0],
        "mixed": sorted(name for name, (_, _, mixed) in worth.items() if mixed),
    }
