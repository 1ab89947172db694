"""Reference solver: the simplex method in exact fractions for both players at once, and dynamic programming over hours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

Game = dict[str, dict[str, Fraction]]


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    told, out = json.loads(tree["input/sites.json"]), {}
    sites = {name: told["sites"][name] for name in sorted(told["sites"])}
    meaning = {word: kind for kind, words in told["outcomes"].items() for word in (kind, *words)}
    fixed = {row["trial_id"]: meaning[row["detected"]] for row in _table(tree["input/corrections.csv"])}
    games, rows = {}, []
    for name, site in sites.items():
        games[name] = {}
        tally = _tally(_table(tree[f"input/trials/{name}.csv"]), site, meaning, fixed)
        for route, cost in sorted(site["routes"].items()):
            games[name][route] = {}
            for entry, stake in sorted(site["entries"].items()):
                hits, trials = tally[route, entry]
                games[name][route][entry] = payoff = Fraction(stake * hits, trials) - cost
                rows.append([name, route, entry, hits, trials, payoff])
    out["output/staging/payoffs.csv"] = _csv("site,route,entry,hits,trials,payoff", rows)
    yield "estimate", dict(out)
    out["output/staging/dominance.json"] = _json({name: _eliminate(game) for name, game in games.items()})
    yield "eliminate", dict(out)
    solved = {name: _simplex(game) for name, game in games.items()}
    equilibria = {
        name: {
            "value": str(value),
            "routes": {k: str(p) for k, p in x.items()},
            "entries": {k: str(q) for k, q in y.items()},
        }
        for name, (value, x, y) in solved.items()
    }
    out["output/equilibria.json"] = _json(equilibria)
    yield "solve", dict(out)
    rows = [row for name, game in games.items() for row in _certify(name, game, *solved[name])]
    out["output/certificate.csv"] = _csv("site,side,strategy,payoff,slack", rows)
    yield "certify", dict(out)
    coverage = _cover({name: (solved[name][0], site["hours"]) for name, site in sites.items()}, told["available_hours"])
    coverage["strongest"] = max(sorted(solved), key=lambda name: solved[name][0])
    coverage["mixed"] = [name for name, (_, x, _) in solved.items() if sum(map(bool, x.values())) > 1]
    out["output/coverage.json"] = _json(coverage)
    yield "cover", dict(out)


def _table(data: bytes) -> list[dict[str, str]]:
    text = data.decode()
    return list(csv.DictReader(io.StringIO(text), delimiter=";" if ";" in text.split("\n")[0] else ","))


def _tally(trials: list[dict[str, str]], site: dict, meaning: dict, fixed: dict) -> dict[tuple[str, str], list[int]]:
    out: dict[tuple[str, str], list[int]] = {}
    for trial in {trial["trial_id"]: trial for trial in trials}.values():
        route, entry = trial["route"], trial["entry"]
        if route.startswith("E-"):
            route, entry = entry, route
        if route in site["routes"] and entry in site["entries"]:
            cell = out.setdefault((route, entry), [0, 0])
            cell[0] += fixed.get(trial["trial_id"], meaning[trial["detected"]]) == "yes"
            cell[1] += 1
    return out


def _eliminate(game: Game) -> dict[str, Any]:
    routes, entries, rounds = sorted(game), sorted(next(iter(game.values()))), []
    while True:
        worse = [r for r in routes if any(all(game[o][e] > game[r][e] for e in entries) for o in routes)]
        dear = [e for e in entries if any(all(game[r][o] < game[r][e] for r in routes) for o in entries)]
        if not worse + dear:
            return {"rounds": rounds, "routes": routes, "entries": entries}
        rounds.append({"routes": worse, "entries": dear})
        routes = [r for r in routes if r not in worse]
        entries = [e for e in entries if e not in dear]


def _simplex(game: Game) -> tuple[Fraction, dict[str, Fraction], dict[str, Fraction]]:
    """Maximise sum(q) with A q <= 1 for the game made positive; the duals give the row player (von Neumann, Dantzig)."""
    routes, entries = sorted(game), sorted(next(iter(game.values())))
    shift = 1 - min(min(row.values()) for row in game.values())
    m, n = len(routes), len(entries)
    table = [
        [game[r][e] + shift for e in entries] + [Fraction(i == k) for k in range(m)] + [Fraction(1)]
        for i, r in enumerate(routes)
    ]
    goal = [Fraction(-1)] * n + [Fraction(0)] * (m + 1)
    basis = list(range(n, n + m))
    while (enter := next((j for j in range(n + m) if goal[j] < 0), None)) is not None:  # Bland's rule: no cycling
        _, _, leave = min((row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0)
        pivot = table[leave][enter]
        table[leave] = [value / pivot for value in table[leave]]
        basis[leave] = enter
        for i, row in enumerate(table):
            if i != leave and row[enter]:
                table[i] = [a - row[enter] * b for a, b in zip(row, table[leave], strict=True)]
        goal = [a - goal[enter] * b for a, b in zip(goal, table[leave], strict=True)]
    total = goal[-1]
    y = {entries[b]: table[i][-1] / total for i, b in enumerate(basis) if b < n}
    x = {route: goal[n + i] / total for i, route in enumerate(routes)}
    return 1 / total - shift, x, {entry: y.get(entry, Fraction(0)) for entry in entries}


def _certify(name: str, game: Game, value: Fraction, x: dict, y: dict) -> Iterator[list[Any]]:
    for entry in y:
        paid = sum(p * game[route][entry] for route, p in x.items())
        yield [name, "entry", entry, paid, paid - value]
    for route in x:
        paid = sum(q * game[route][entry] for entry, q in y.items())
        yield [name, "route", route, paid, value - paid]


def _cover(sites: dict[str, tuple[Fraction, int]], hours: int) -> dict[str, Any]:
    best: list[tuple[Fraction, int, tuple[str, ...]]] = [(Fraction(0), 0, ())] * (hours + 1)
    for name, (value, need) in sorted(sites.items()):
        for left in range(hours, need - 1, -1):
            total, size, names = best[left - need]
            best[left] = min(best[left], (total - value, size + 1, (*names, name)))
    total, _, names = best[hours]
    used = sum(sites[name][1] for name in names)
    return {"sites": list(names), "hours": used, "value": str(-total), "unused_hours": hours - used}


def _csv(header: str, rows: list[list[Any]]) -> bytes:
    return ("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n").encode()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
