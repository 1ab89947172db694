"""The sealed answer key: supports are tried smallest first, each by elimination of its indifference equations."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

Matrix = list[list[Fraction]]


def counts(site: Any, fixed: dict[str, str]) -> tuple[Counter, Counter]:
    """(hits, trials) of every (route, entry)."""
    hits, trials = Counter(), Counter()
    for trial, route, entry, outcome in site.trials:
        trials[route, entry] += 1
        hits[route, entry] += fixed.get(trial, outcome) == "yes"
    return hits, trials


def matrix(site: Any, fixed: dict[str, str]) -> Matrix:
    hits, trials = counts(site, fixed)
    return [
        [stake * Fraction(hits[route, entry], trials[route, entry]) - cost for entry, stake in site.entries]
        for route, cost in site.routes
    ]


def solve(game: Matrix) -> tuple[Fraction, list[Fraction], list[Fraction]] | None:
    """(value, row mix, column mix) when the equilibrium is strictly complementary, hence the only one; None otherwise."""
    rows, columns = len(game), len(game[0])
    for size in range(1, min(rows, columns) + 1):
        for r in itertools.combinations(range(rows), size):
            for c in itertools.combinations(range(columns), size):
                kernel = [[game[i][j] for j in c] for i in r]
                y = _indifferent(kernel)
                x = y and _indifferent([list(column) for column in zip(*kernel, strict=True)])
                if not x or min(x[:-1]) <= 0 or min(y[:-1]) <= 0:
                    continue
                value = y[-1]
                against = {i: sum(game[i][j] * q for j, q in zip(c, y, strict=False)) for i in range(rows)}
                from_row = {j: sum(game[i][j] * p for i, p in zip(r, x, strict=False)) for j in range(columns)}
                if any(v > value for v in against.values()) or any(v < value for v in from_row.values()):
                    continue
                ties = sum(v == value for v in against.values()) + sum(v == value for v in from_row.values())
                mixes = [Fraction(0)] * rows, [Fraction(0)] * columns
                for mix, at, part in zip(mixes, (r, c), (x, y), strict=True):
                    for n, p in zip(at, part, strict=False):
                        mix[n] = p
                return (value, *mixes) if ties == 2 * size else None
    return None


def _indifferent(kernel: Matrix) -> list[Fraction] | None:
    """[q..., v] with kernel q = v and sum of q = 1; None when singular."""
    size = len(kernel)
    table = [[*row, Fraction(-1), Fraction(0)] for row in kernel] + [[Fraction(1)] * size + [Fraction(0), Fraction(1)]]
    for k in range(size + 1):
        pivot = next((i for i in range(k, size + 1) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for i in range(size + 1):
            if i != k and table[i][k]:
                factor = table[i][k]
                table[i] = [a - factor * b for a, b in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


def eliminate(game: Matrix) -> tuple[list[tuple[list[int], list[int]]], list[int], list[int]]:
    """(rounds of (rows, columns) that go, rows left, columns left)."""
    rows, columns, rounds = list(range(len(game))), list(range(len(game[0]))), []
    while True:
        low = [i for i in rows if any(all(game[k][j] > game[i][j] for j in columns) for k in rows)]
        high = [j for j in columns if any(all(game[i][k] < game[i][j] for i in rows) for k in columns)]
        if not low and not high:
            return rounds, rows, columns
        rounds.append((low, high))
        rows, columns = [i for i in rows if i not in low], [j for j in columns if j not in high]


def truth(world: Any) -> dict[str, Any]:
    fixed, payoffs, dominance, equilibria, certificate, values = dict(world.corrections), [], {}, {}, [], {}
    for site in world.sites:
        game, (hits, trials) = matrix(site, fixed), counts(site, fixed)
        routes, entries = [code for code, _ in site.routes], [code for code, _ in site.entries]
        for i, route in enumerate(routes):
            payoffs += [
                [site.name, route, e, str(hits[route, e]), str(trials[route, e]), str(game[i][j])]
                for j, e in enumerate(entries)
            ]
        rounds, rows, columns = eliminate(game)
        dominance[site.name] = {
            "rounds": [
                {"routes": [routes[i] for i in low], "entries": [entries[j] for j in high]} for low, high in rounds
            ],
            "routes": [routes[i] for i in rows],
            "entries": [entries[j] for j in columns],
        }
        value, x, y = solve(game)
        values[site.name] = (value, site.hours, sum(p > 0 for p in x) > 1)
        equilibria[site.name] = {
            "value": str(value),
            "routes": dict(zip(routes, map(str, x), strict=True)),
            "entries": dict(zip(entries, map(str, y), strict=True)),
        }
        for j, entry in enumerate(entries):
            paid = sum(p * game[i][j] for i, p in enumerate(x))
            certificate.append([site.name, "entry", entry, str(paid), str(paid - value)])
        for i, route in enumerate(routes):
            paid = sum(q * game[i][j] for j, q in enumerate(y))
            certificate.append([site.name, "route", route, str(paid), str(value - paid)])
    coverage = cover({name: (value, hours) for name, (value, hours, _) in values.items()}, world.hours)
    coverage["strongest"] = min(values, key=lambda name: (-values[name][0], name))
    coverage["mixed"] = sorted(name for name, (_, _, mixed) in values.items() if mixed)
    return {
        "payoffs": payoffs,
        "dominance": dominance,
        "equilibria": equilibria,
        "certificate": certificate,
        "coverage": coverage,
    }


def cover(sites: dict[str, tuple[Fraction, int]], hours: int) -> dict[str, Any]:
    """The best set by depth-first search over take-or-leave."""
    names = sorted(sites)

    def search(at: int, left: int) -> tuple[Fraction, int, tuple[str, ...]]:
        if at == len(names):
            return (Fraction(0), 0, ())
        value, need = sites[names[at]]
        best = search(at + 1, left)
        if need <= left:
            rest = search(at + 1, left - need)
            best = min(best, (rest[0] - value, rest[1] + 1, (names[at], *rest[2])))
        return best

    total, _, chosen = search(0, hours)
    used = sum(sites[name][1] for name in chosen)
    return {"sites": list(chosen), "hours": used, "value": str(-total), "unused_hours": hours - used}
