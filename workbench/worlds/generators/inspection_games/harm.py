"""The plan of defects, and the document that one of them copies."""

from __future__ import annotations

import json
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw
from workbench.worlds.generators.inspection_games import words

PHASE = ("swapped_fields", "category_drift", "duplicate_records", "orphan_records", "delimiter_drift", "stale_copy")


def sites_json(world: Any, stake: int = 0) -> str:
    """stake: how much higher all stakes stand, in the version that is out of date."""
    sites = {
        site.name: {
            "hours": site.hours,
            "routes": dict(site.routes),
            "entries": {code: value + stake for code, value in site.entries},
        }
        for site in world.sites
    }
    told = {"port": world.port, "available_hours": world.hours, "outcomes": words.SPELLINGS, "sites": sites}
    return json.dumps(told, indent=1) + "\n"


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    """Trials with swapped codes in every world; some of the rest."""
    sites = draw.shuffled(world.sites)
    certain = Defect(
        "swapped_fields",
        _path(sites[0]),
        {"columns": ["route", "entry"], "rows": _some(sites[0], draw)},
        "route and entry swapped",
    )
    mapping = {kind: list(variants) for kind, variants in words.SPELLINGS.items()}
    some = [
        Defect(
            "category_drift",
            _path(sites[1]),
            {"column": "detected", "mapping": mapping, "rows": _some(sites[1], draw)},
            "spellings",
        ),
        Defect("duplicate_records", _path(sites[2]), {"rows": _some(sites[2], draw)}, "trials entered twice"),
        _strangers(sites[3], sites[4], draw),
        Defect("delimiter_drift", _path(draw.choice(sites)), {"to": ";"}, "semicolons"),
        Defect(
            "stale_copy",
            "input/sites.json",
            {"copy": "input/sites.old.json", "text": sites_json(world, 7)},
            "last year's stakes",
        ),
    ]
    chosen = draw.shuffled(some)[: draw.integer(1, 4)]
    return (certain, *sorted(chosen, key=lambda defect: PHASE.index(defect.kind)))


def _path(site: Any) -> str:
    return f"input/trials/{site.name}.csv"


def _some(site: Any, draw: Draw) -> list[int]:
    return sorted(draw.sample(range(len(site.trials)), len(site.trials) // 5))


def _strangers(site: Any, other: Any, draw: Draw) -> Defect:
    """Trials on another site's routes."""
    records = [
        {
            "trial_id": f"T-{draw.hexadecimal(12)}",
            "route": draw.choice(other.routes)[0],
            "entry": draw.choice(site.entries)[0],
            "detected": "yes",
        }
        for _ in range(7)
    ]
    return Defect("orphan_records", _path(site), {"records": records}, "trials of another site's routes")
