"""A cloud account: instances, databases and buckets with their utilisation, prices, waivers, and a billing dashboard.

After Tev A.10 Example 1: three findings (an idle NAT gateway, an unattached address, a stale log group) are drawn into the dashboard's
image and stand in no table. Ours adds regions, reservations, waivers and findings that are resolved already.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.cloud_cost import answers, dashboard, harm, words

SPEC = Spec(
    name="cloud_cost",
    revision=1,
    domain="9.6",
    title="Cloud cost optimisation with a dashboard's screenshot",
    summary="Join inventory, utilisation, prices and waivers, read the findings on a screenshot, and price every saving.",
    outputs=(
        Output(
            "output/staging/dashboard_findings.json",
            "json",
            "Open findings of the screenshot",
            {"findings": [dict.fromkeys(words.FINDINGS[:3], "string") | {"monthly_cost": "number"}]},
        ),
        Output("output/staging/decisions.csv", "csv", "What was decided of every resource", words.DECISIONS),
        Output("output/savings_summary.csv", "csv", "Priced recommendations", words.RECOMMENDATION),
        Output(
            "output/optimization_report.json",
            "json",
            "Summary and recommendations",
            {
                "executive_summary": dict.fromkeys(
                    ("resource_count", "recommendation_count", "dashboard_only_finding_count"), "integer"
                )
                | dict.fromkeys(("total_current_cost", "total_projected_cost", "total_monthly_savings"), "number")
                | {"savings_by_type": {"<resource_type>": "number"}, "savings_by_region": {"<region>": "number"}},
                "recommendations": [words.RECOMMENDATION],
            },
        ),
    ),
    workflow_stages=("read_image", "join", "price", "report"),
    artifact_roles=("image", "inventory", "metrics", "price-list", "policy", "waiver"),
    relation_types=("foreign-key", "precedence", "cross-modal", "validity-period"),
    source_kind="cloud account",
)


@dataclass(frozen=True)
class Resource:
    """metrics: name -> hundredths (ratios: thousandths), only those that were measured."""

    resource_id: str
    kind: str
    name: str
    region: str
    state: str
    instance: str
    size_gb: int
    metrics: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Finding:
    resource_id: str
    kind: str
    name: str
    status: str
    cents: int


@dataclass(frozen=True)
class World:
    account: str
    date: str
    resources: tuple[Resource, ...]
    prices: tuple[tuple[str, str, str, int], ...]  # sku, dimension, unit, micro-dollars
    reserved: tuple[str, ...]
    waivers: tuple[tuple[str, str, str], ...]
    findings: tuple[Finding, ...]
    services: tuple[tuple[str, int], ...]  # of the dashboard: name, cents
    margin: tuple[int, int]  # of the dashboard: left, top


EC2 = (("t3.medium", 41600), ("m5.large", 96000), ("m5.xlarge", 192000), ("m5.2xlarge", 384000), ("m5.4xlarge", 768000))
RDS = (("db.t3.medium", 68000), ("db.m5.large", 171000), ("db.m5.xlarge", 342000), ("db.m5.2xlarge", 684000))
ALIASES = {
    "EC2 instance": "ec2",
    "AmazonEC2": "ec2",
    "RDS database": "rds",
    "AmazonRDS": "rds",
    "S3 bucket": "s3",
    "AmazonS3": "s3",
}
# tier -> (regions, resources)
SIZES = {"unit": (4, 150), "small": (6, 900), "full": (8, 2600)}


def make(draw: Draw, tier: str) -> World:
    count, total = SIZES[tier]
    regions = sorted(draw.fork("regions").sample(words.REGIONS, count))
    some = draw.fork("resources")
    resources, seen = [], set()
    while len(resources) < total:
        one = _resource(some, regions)
        if one.resource_id not in seen:
            seen.add(one.resource_id)
            resources.append(one)
    resources.sort(key=lambda resource: resource.region)
    rest = draw.fork("rest")
    shift = rest.integer(85, 125)
    prices = [(sku, "ec2_compute", "hour", price * shift // 100) for sku, price in EC2]
    prices += [(sku, "rds_compute", "hour", price * shift // 100) for sku, price in RDS]
    prices += [
        ("s3-standard", "s3_storage", "gb_month", 230 * shift),
        ("s3-standard-ia", "s3_storage", "gb_month", 125 * shift),
    ]
    date = f"2025-{rest.integer(2, 11):02d}-{rest.integer(2, 27):02d}"
    ids = [resource.resource_id for resource in resources if resource.kind != "s3"]
    chosen = rest.sample(ids, len(ids) // 5)
    waived = chosen[: len(chosen) // 2]
    waivers = []
    for number, resource_id in enumerate(waived):
        until = date if number == 0 else f"2025-{rest.integer(1, 12):02d}-{rest.integer(1, 28):02d}"
        waivers.append((resource_id, until, rest.choice(("migration", "load test", "quarter end"))))
    findings = rest.shuffled(
        [
            *(_finding(rest, kind, "OPEN") for kind in answers.FINDING),
            *(_finding(rest, rest.choice(sorted(answers.FINDING)), "RESOLVED") for _ in range(2)),
        ]
    )
    services = tuple((name, rest.integer(5000, 2500000)) for name in ("EC2", "RDS", "S3", "CLOUDWATCH", "VPC"))
    account = f"{rest.integer(100000000000, 999999999999)}"
    margin = (rest.integer(8, 20), rest.integer(8, 20))
    return World(
        account,
        date,
        tuple(resources),
        tuple(prices),
        tuple(sorted(chosen[len(waived) :])),
        tuple(waivers),
        tuple(findings),
        services,
        margin,
    )


def _resource(draw: Draw, regions: list[str]) -> Resource:
    kind, region, service = (
        draw.weighted(("ec2", "rds", "s3"), (5, 2, 3)),
        draw.choice(regions),
        draw.choice(words.SERVICES),
    )
    suffix = draw.hexadecimal(9)

    def measured(name: str, low: int, high: int) -> list[tuple[str, int]]:
        return [(name, draw.integer(low, high))] if draw.integer(0, 39) else []

    if kind == "s3":
        metrics = measured("ia_access_ratio", 5, 400)
        return Resource(
            f"s3-{suffix}",
            kind,
            f"{service}-bucket-{suffix[:4]}",
            region,
            "",
            "",
            draw.integer(10, 9000),
            tuple(metrics),
        )
    if kind == "ec2":
        state, tier = draw.weighted(("running", "stopped"), (9, 1)), draw.choice(EC2)[0]
        metrics = measured("cpu_p95", 200, 6000) + measured("mem_p95", 1000, 9000)
        return Resource(f"i-{suffix}", kind, f"{service}-{suffix[:4]}", region, state, tier, 0, tuple(metrics))
    state, tier = draw.weighted(("available", "stopped"), (9, 1)), draw.choice(RDS)[0]
    metrics = measured("cpu_p95", 200, 7000) + measured("connections_p95", 0, 3000)
    return Resource(f"db-{suffix}", kind, f"{service}-db-{suffix[:4]}", region, state, tier, 0, tuple(metrics))


def _finding(draw: Draw, kind: str, status: str) -> Finding:
    prefix, _, name = answers.FINDING[kind]
    where = f"{draw.choice('abc')}{draw.integer(1, 9)}"
    return Finding(
        f"{prefix}-{draw.hexadecimal(8)}",
        kind,
        name.format(service=draw.choice(words.SERVICES), where=where),
        status,
        draw.integer(365, 9900),
    )


def check(world: World) -> None:
    ids = [r.resource_id for r in world.resources] + [f.resource_id for f in world.findings]
    if len(set(ids)) != len(ids):
        raise WorldError("resource ids must be unique")
    if sorted(f.kind for f in world.findings if f.status == "OPEN") != sorted(answers.FINDING):
        raise WorldError("the dashboard must have one open finding of each kind")


def workflow(world: World) -> Workflow:
    resources = len(world.resources)
    return Workflow(
        (
            Stage("read_dashboard", "read_image", 4 * len(world.findings)),
            Stage("decide", "join", 4 * resources),
            Stage("price", "price", resources, ("read_dashboard", "decide")),
            Stage("report", "report", resources // 4, ("price",)),
        )
    )


def render(world: World) -> dict[str, bytes]:
    tree = {"input/billing_dashboard.png": dashboard.render(world)}
    for region in sorted({resource.region for resource in world.resources}):
        own = [resource for resource in world.resources if resource.region == region]
        rows = [[r.resource_id, r.kind, r.name, r.state, r.instance, r.size_gb or ""] for r in own]
        tree[f"input/inventory/{region}.csv"] = csv_table.table(
            ("resource_id", "resource_type", "name", "state", "instance_type", "size_gb"), rows
        )
        rows = [[r.resource_id, name, answers.metric(name, value)] for r in own for name, value in r.metrics]
        tree[f"input/utilization/{region}.csv"] = csv_table.table(("resource_id", "metric", "value"), rows)
    tree["input/pricing.csv"] = csv_table.table(
        ("sku", "dimension", "unit", "price_usd"),
        [[*p[:3], f"{p[3] // 10**6}.{p[3] % 10**6:06d}"] for p in world.prices],
    )
    tree["input/waivers.csv"] = csv_table.table(("resource_id", "until", "reason"), world.waivers)
    policy = {
        "account": world.account,
        "report_date": world.date,
        "aliases": ALIASES,
        "reserved_instances": list(world.reserved),
    }
    tree["input/policy.json"] = (json.dumps(policy, indent=1) + "\n").encode()
    return tree


def recover(tree: dict[str, bytes]) -> World:
    policy = json.loads(tree["input/policy.json"])
    resources = []
    for path in sorted(path for path in tree if path.startswith("input/inventory/")):
        region, metrics = path[16:-4], {}
        for resource_id, name, value in csv_table.rows(tree[f"input/utilization/{region}.csv"]):
            metrics.setdefault(resource_id, []).append((name, int(value.replace(".", ""))))
        for r in csv_table.rows(tree[path]):
            resources.append(
                Resource(r[0], r[1], r[2], region, r[3], r[4], int(r[5] or 0), tuple(metrics.get(r[0], ())))
            )
    prices = tuple((r[0], r[1], r[2], int(r[3].replace(".", ""))) for r in csv_table.rows(tree["input/pricing.csv"]))
    waivers = tuple((r[0], r[1], r[2]) for r in csv_table.rows(tree["input/waivers.csv"]))
    services, findings, margin = dashboard.read(tree["input/billing_dashboard.png"])
    kinds = {shown: kind for kind, (_, shown, _) in answers.FINDING.items()}
    told = tuple(Finding(i, kinds[kind], name, status, cents) for i, kind, name, status, cents in findings)
    return World(
        policy["account"],
        policy["report_date"],
        tuple(resources),
        prices,
        tuple(policy["reserved_instances"]),
        waivers,
        told,
        services,
        margin,
    )


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.account, world.date)
