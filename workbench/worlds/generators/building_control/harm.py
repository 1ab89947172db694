"""The plan of defects: samples lost, doubled, in another unit or contradicted, and an old description of the building."""

from __future__ import annotations

import json
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    size = len(world.days[0][1])
    rows = sorted(draw.sample(range(size), size // 9))
    certain = Defect(
        "missing_records", f"input/weather/{world.backups[0]}.csv", {"rows": rows}, "samples lost; the backup has them"
    )
    dates = draw.shuffled([date for date, _ in world.days if date != world.backups[0]])
    some = [
        _doubled(dates[0], size, draw),
        _kelvin(dates[-1], size, draw),
        _contradicted(world, draw),
        Defect(
            "stale_copy",
            "input/building.json",
            {"copy": "input/building.old.json", "text": _old(world)},
            "the building before its refit",
        ),
    ]
    chosen = draw.shuffled(some)[: draw.integer(1, 4)]
    return (
        certain,
        *sorted(
            chosen,
            key=lambda d: ("unit_drift", "contradictory_record", "duplicate_records", "stale_copy").index(d.kind),
        ),
    )


def _doubled(date: str, size: int, draw: Draw) -> Defect:
    rows = sorted(draw.sample(range(size), size // 8))
    return Defect("duplicate_records", f"input/weather/{date}.csv", {"rows": rows}, "samples were sent twice")


def _kelvin(date: str, size: int, draw: Draw) -> Defect:
    begin = draw.integer(0, size // 2)
    rows = list(range(begin, begin + size // 4))
    params = {"column": "outdoor_mc", "factor": "1", "offset": "273150", "suffix": " mK", "rows": rows}
    return Defect("unit_drift", f"input/weather/{date}.csv", params, "milli-kelvin")


def _contradicted(world: Any, draw: Draw) -> Defect:
    date = world.backups[1]
    samples = dict(world.days)[date]
    rows = sorted(draw.sample(range(len(samples)), len(samples) // 6))
    params = {"column": "outdoor_mc", "rows": rows, "values": [str(samples[row][1] + 3100) for row in rows]}
    return Defect("contradictory_record", f"input/weather_backup/{date}.csv", params, "the backup stands in the sun")


def _old(world: Any) -> str:
    coefficients = world.building["coefficients"]
    old = {**world.building, "coefficients": coefficients | {"zone_outdoor": coefficients["zone_outdoor"] * 2}}
    return json.dumps({"site": world.site, **old}, indent=1) + "\n"
