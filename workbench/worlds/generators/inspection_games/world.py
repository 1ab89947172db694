"""A port's inspection games: per site a matrix of detection chances, known only through trials, stakes of entries, costs of routes.

Every game has one equilibrium, with strict complementarity, so that exact solvers of any kind agree.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.inspection_games import answers, harm, words

MIX = {"<strategy>": "string"}
SPEC = Spec(
    name="inspection_games",
    revision=1,
    domain="9.4",
    title="Solve inspection games exactly, with certificates",
    summary="Estimate zero-sum games from trials, eliminate dominated strategies, find values and mixes as fractions, and choose sites.",
    outputs=(
        Output("output/staging/payoffs.csv", "csv", "The estimated games", words.PAYOFFS),
        Output(
            "output/staging/dominance.json",
            "json",
            "Iterated elimination",
            {
                "<site>": {
                    "rounds": [{"routes": ["string"], "entries": ["string"]}],
                    "routes": ["string"],
                    "entries": ["string"],
                }
            },
        ),
        Output(
            "output/equilibria.json",
            "json",
            "Values and optimal mixes",
            {"<site>": {"value": "string", "routes": MIX, "entries": MIX}},
        ),
        Output("output/certificate.csv", "csv", "Payoff and slack of every pure strategy", words.CERTIFICATE),
        Output(
            "output/coverage.json",
            "json",
            "The sites to cover",
            {
                "sites": ["string"],
                "hours": "integer",
                "value": "string",
                "unused_hours": "integer",
                "strongest": "string",
                "mixed": ["string"],
            },
        ),
    ),
    curriculum_layer="mastery",
    workflow_stages=("estimate", "reduce", "solve", "certify", "allocate"),
    artifact_roles=("records", "policy", "correction"),
    relation_types=("foreign-key", "precedence", "duality"),
    source_kind="port security",
)


@dataclass(frozen=True)
class Site:
    name: str
    hours: int
    routes: tuple[tuple[str, int], ...]  # code, cost
    entries: tuple[tuple[str, int], ...]  # code, stake
    trials: tuple[tuple[str, str, str, str], ...]  # id, route, entry, yes or no as recorded


@dataclass(frozen=True)
class World:
    port: str
    hours: int
    sites: tuple[Site, ...]
    corrections: tuple[tuple[str, str], ...]  # trial, outcome


PORTS = "Port-Aster Port-Brine Port-Cinder Port-Dorsal Port-Ebb Port-Fathom Port-Gale".split()
# tier -> (sites, routes, entries, most trials of a pair)
SIZES = {"unit": (7, 4, 4, 18), "small": (9, 4, 5, 30), "full": (12, 5, 5, 56)}


def make(draw: Draw, tier: str) -> World:
    count, routes, entries, most = SIZES[tier]
    sites, corrections = [], []
    for name in sorted(draw.fork("names").sample(words.SITES, count)):
        for attempt in range(200):
            one = draw.fork(name, attempt)
            site, fixed = _site(one, name, routes - one.integer(0, 1), entries - one.integer(0, 1), most)
            if answers.solve(answers.matrix(site, dict(fixed))):
                break
        else:
            raise WorldError(f"no game with one equilibrium for {name} in 200 attempts")
        sites.append(site)
        corrections += fixed
    rest = draw.fork("rest")
    hours = sum(site.hours for site in sites) * rest.integer(40, 65) // 100
    return World(rest.choice(PORTS) + f"-{rest.integer(2, 99)}", hours, tuple(sites), tuple(rest.shuffled(corrections)))


def _site(draw: Draw, name: str, routes: int, entries: int, most: int) -> tuple[Site, list[tuple[str, str]]]:
    rows = sorted((f"R-{draw.hexadecimal(8)}", draw.integer(2, 14)) for _ in range(routes))
    columns = sorted((f"E-{draw.hexadecimal(8)}", draw.integer(30, 90)) for _ in range(entries))
    trials = []
    for route, _ in rows:
        for entry, _ in columns:
            chance, number = draw.integer(1, 9), draw.integer(most - 3, most)
            outcomes = ["yes" if draw.integer(1, 10) <= chance else "no" for _ in range(number)]
            trials += [(f"T-{draw.hexadecimal(12)}", route, entry, outcome) for outcome in outcomes]
    trials = draw.shuffled(trials)
    fixed = [(trial[0], "no" if trial[3] == "yes" else "yes") for trial in draw.sample(trials, 3)]
    return Site(name, draw.integer(3, 12), tuple(rows), tuple(columns), tuple(trials)), fixed


def check(world: World) -> None:
    ids = [trial[0] for site in world.sites for trial in site.trials]
    codes = [code for site in world.sites for code, _ in (*site.routes, *site.entries)]
    if len(set(ids)) != len(ids) or len(set(codes)) != len(codes):
        raise WorldError("trial ids and codes must be unique")
    if any(answers.solve(answers.matrix(site, dict(world.corrections))) is None for site in world.sites):
        raise WorldError("every game must have exactly one equilibrium")


def workflow(world: World) -> Workflow:
    trials = sum(len(site.trials) for site in world.sites)
    pure = sum(len(site.routes) + len(site.entries) for site in world.sites)
    return Workflow(
        (
            Stage("estimate", "estimate", trials),
            Stage("eliminate", "reduce", pure**2 // len(world.sites), ("estimate",)),
            Stage("solve", "solve", sum(len(s.routes) * len(s.entries) for s in world.sites), ("eliminate",)),
            Stage("certify", "certify", pure, ("solve",)),
            Stage("cover", "allocate", len(world.sites), ("solve",)),
        )
    )


def render(world: World) -> dict[str, bytes]:
    tree = {"input/sites.json": harm.sites_json(world).encode()}
    for site in world.sites:
        tree[f"input/trials/{site.name}.csv"] = csv_table.table(("trial_id", "route", "entry", "detected"), site.trials)
    tree["input/corrections.csv"] = csv_table.table(("trial_id", "detected"), world.corrections)
    return tree


def recover(tree: dict[str, bytes]) -> World:
    told = json.loads(tree["input/sites.json"])
    sites = []
    for name, site in told["sites"].items():
        trials = tuple((r[0], r[1], r[2], r[3]) for r in csv_table.rows(tree[f"input/trials/{name}.csv"]))
        sites.append(Site(name, site["hours"], tuple(site["routes"].items()), tuple(site["entries"].items()), trials))
    corrections = tuple((r[0], r[1]) for r in csv_table.rows(tree["input/corrections.csv"]))
    return World(told["port"], told["available_hours"], tuple(sites), corrections)


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.port)
