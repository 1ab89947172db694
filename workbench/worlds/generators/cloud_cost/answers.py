"""The sealed answer key, from the world's own records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

# kind -> (prefix of ids, how the dashboard writes it, pattern of names)
FINDING = {
    "nat_gateway": ("nat", "NAT GATEWAY", "nat-gw-{service}-{where}"),
    "elastic_ip": ("eip", "ELASTIC IP", "eip-{service}-{where}"),
    "cloudwatch_log_group": ("cwl", "LOG GROUP", "/aws/lambda/{service}-{where}"),
}
ACTION = {
    "ec2": "downsize_ec2",
    "rds": "downsize_rds",
    "s3": "move_to_ia",
    "nat_gateway": "delete_idle_nat_gateway",
    "elastic_ip": "release_unattached_eip",
    "cloudwatch_log_group": "delete_stale_log_group",
}
# kind -> the metrics of its rule and their limits, in hundredths (ratios: thousandths)
LIMITS = {
    "ec2": {"cpu_p95": 2000, "mem_p95": 5000},
    "rds": {"cpu_p95": 2500, "connections_p95": 1000},
    "s3": {"ia_access_ratio": 100},
}


def metric(name: str, value: int) -> str:
    return f"{value // 1000}.{value % 1000:03d}" if name == "ia_access_ratio" else f"{value // 100}.{value % 100:02d}"


def decision(world: Any, resource: Any) -> str:
    metrics, limits = dict(resource.metrics), LIMITS[resource.kind]
    tiers = [sku for sku, dimension, _, _ in world.prices if dimension == f"{resource.kind}_compute"]
    if resource.kind != "s3" and resource.state not in ("running", "available"):
        return "inactive"
    if resource.resource_id in world.reserved:
        return "reserved"
    if any(resource.resource_id == one and until >= world.date for one, until, _ in world.waivers):
        return "waived"
    if set(limits) - set(metrics):
        return "no_data"
    low = all(metrics[name] < limit for name, limit in limits.items())
    fits = resource.size_gb >= 100 if resource.kind == "s3" else resource.instance != tiers[0]
    return "recommend" if low and fits else "keep"


def micro(world: Any, resource: Any) -> tuple[int, int]:
    """Monthly (current, projected) cost in micro-dollars, unrounded."""
    if resource.kind == "s3":
        standard, infrequent = (price for _, dimension, _, price in world.prices if dimension == "s3_storage")
        return standard * resource.size_gb, infrequent * resource.size_gb
    tiers = [(sku, price) for sku, dimension, _, price in world.prices if dimension == f"{resource.kind}_compute"]
    at = next(n for n, (sku, _) in enumerate(tiers) if sku == resource.instance)
    return 730 * tiers[at][1], 730 * tiers[at - 1][1]


def cents(value: int) -> int:
    return (value + 5000) // 10000


def money(value: int) -> str:
    return f"{value // 100}.{value % 100:02d}"


def truth(world: Any) -> dict[str, Any]:
    rows, decisions = [], []
    for resource in world.resources:
        found = decision(world, resource)
        decisions.append([resource.resource_id, resource.kind, resource.region, found])
        if found == "recommend":
            current, projected = micro(world, resource)
            costs = (cents(current), cents(projected), cents(current - projected))
            rows.append((resource.resource_id, resource.kind, resource.name, *costs, resource.region))
    opened = sorted((f for f in world.findings if f.status == "OPEN"), key=lambda f: f.resource_id)
    rows += [(f.resource_id, f.kind, f.name, f.cents, 0, f.cents, "global") for f in opened]
    rows.sort(key=lambda row: (-row[5], row[0]))
    by: dict[int, dict[str, int]] = {1: defaultdict(int), 6: defaultdict(int)}
    for row in rows:
        for column, sums in by.items():
            sums[row[column]] += row[5]
    summary = {
        "resource_count": len(world.resources),
        "recommendation_count": len(rows),
        "dashboard_only_finding_count": len(opened),
        "total_current_cost": sum(row[3] for row in rows) / 100,
        "total_projected_cost": sum(row[4] for row in rows) / 100,
        "total_monthly_savings": sum(row[5] for row in rows) / 100,
        "savings_by_type": {name: value / 100 for name, value in sorted(by[1].items())},
        "savings_by_region": {name: value / 100 for name, value in sorted(by[6].items())},
    }
    savings = [[*row[:3], ACTION[row[1]], *map(money, row[3:6])] for row in rows]
    names = ("resource_id", "resource_type", "name", "action", "current_cost", "projected_cost", "monthly_savings")
    recommendations = [
        dict(zip(names, (*row[:3], ACTION[row[1]], *(value / 100 for value in row[3:6])), strict=True)) for row in rows
    ]
    findings = [
        {"resource_id": f.resource_id, "resource_type": f.kind, "name": f.name, "monthly_cost": f.cents / 100}
        for f in opened
    ]
    return {
        "findings": {"findings": findings},
        "decisions": sorted(decisions),
        "savings": savings,
        "report": {"executive_summary": summary, "recommendations": recommendations},
    }
