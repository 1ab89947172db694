"""The plan of defects."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw

MAPPING = {"ec2": ["EC2 instance", "AmazonEC2"], "rds": ["RDS database", "AmazonRDS"], "s3": ["S3 bucket", "AmazonS3"]}
PHASE = (
    "category_drift",
    "unit_drift",
    "numeric_format_drift",
    "whitespace_noise",
    "duplicate_records",
    "orphan_records",
    "delimiter_drift",
    "stale_copy",
)


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    """Rows doubled in one inventory, in every world; some of the rest, each in a region of its own."""
    regions = draw.shuffled(sorted({resource.region for resource in world.resources}))
    own = {region: [r for r in world.resources if r.region == region] for region in regions}
    rows = sorted(draw.sample(range(len(own[regions[0]])), len(own[regions[0]]) // 8))
    certain = Defect("duplicate_records", _path(regions[0]), {"rows": rows}, "rows were exported twice")
    some = [
        Defect(
            "category_drift",
            _path(regions[1]),
            {"column": "resource_type", "mapping": MAPPING},
            "names of a billing export",
        ),
        _terabytes(regions[2], own[regions[2]]),
        _thousands(regions[3], own[regions[3]]),
        Defect("whitespace_noise", _path(regions[0], "utilization"), {"column": "value"}, "blanks around values"),
        Defect("delimiter_drift", _path(regions[1], "utilization"), {"to": ";"}, "semicolons"),
        _terminated(regions[2], draw),
        Defect(
            "stale_copy",
            "input/pricing.csv",
            {"copy": "input/pricing.old.csv", "edits": [[row, "price_usd", "0.777000"] for row in (1, 6, 9)]},
            "last year's prices",
        ),
    ]
    chosen = [defect for defect in draw.shuffled(some) if defect][: draw.integer(2, 5)]
    return tuple(sorted((certain, *chosen), key=lambda defect: PHASE.index(defect.kind)))


def _path(region: str, folder: str = "inventory") -> str:
    return f"input/{folder}/{region}.csv"


def _terabytes(region: str, own: list[Any]) -> Defect | None:
    rows = [row for row, resource in enumerate(own) if resource.size_gb >= 1000]
    params = {"column": "size_gb", "factor": "0.001", "suffix": " TB", "rows": rows}
    return Defect("unit_drift", _path(region), params, "sizes in terabytes") if rows else None


def _thousands(region: str, own: list[Any]) -> Defect | None:
    rows = [row for row, resource in enumerate(own) if resource.size_gb >= 1000]
    params = {"column": "size_gb", "style": "thousands", "rows": rows}
    return Defect("numeric_format_drift", _path(region), params, "sizes written for people") if rows else None


def _terminated(region: str, draw: Draw) -> Defect:
    records = [{"resource_id": f"i-{draw.hexadecimal(9)}", "metric": "cpu_p95", "value": "3.10"} for _ in range(4)]
    return Defect(
        "orphan_records", _path(region, "utilization"), {"records": records}, "metrics of terminated instances"
    )
