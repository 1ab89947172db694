"""Reference solver: the screenshot is read cell by cell against the font; tables are joined in dictionaries, money is whole micro-dollars."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from workbench.worlds.formats import pixel_font, png

KINDS = {"NAT GATEWAY": "nat_gateway", "ELASTIC IP": "elastic_ip", "LOG GROUP": "cloudwatch_log_group"}
ACTIONS = {
    "nat_gateway": "delete_idle_nat_gateway",
    "elastic_ip": "release_unattached_eip",
    "cloudwatch_log_group": "delete_stale_log_group",
    "ec2": "downsize_ec2",
    "rds": "downsize_rds",
    "s3": "move_to_ia",
}
RULES = {
    "ec2": (("cpu_p95", Decimal(20)), ("mem_p95", Decimal(50))),
    "rds": (("cpu_p95", Decimal(25)), ("connections_p95", Decimal(10))),
    "s3": (("ia_access_ratio", Decimal("0.10")),),
}


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    findings = sorted(_findings(tree["input/billing_dashboard.png"]), key=lambda f: f["resource_id"])
    out["output/staging/dashboard_findings.json"] = _json({"findings": findings})
    yield "read_dashboard", dict(out)
    policy, prices = json.loads(tree["input/policy.json"]), _prices(tree)
    resources = _resources(tree, policy)
    for resource in resources.values():
        resource["decision"] = _decide(resource, policy, prices)
    rows = [[i, r["resource_type"], r["region"], r["decision"]] for i, r in sorted(resources.items())]
    out["output/staging/decisions.csv"] = _csv(["resource_id", "resource_type", "region", "decision"], rows)
    yield "decide", dict(out)
    advice = [_advice(r, prices) for r in resources.values() if r["decision"] == "recommend"]
    for finding in findings:
        cost = round(finding["monthly_cost"] * 100)
        kind = finding["resource_type"]
        advice.append([finding["resource_id"], kind, finding["name"], ACTIONS[kind], cost, 0, cost, "global"])
    advice.sort(key=lambda row: (-row[6], row[0]))
    header = ["resource_id", "resource_type", "name", "action", "current_cost", "projected_cost", "monthly_savings"]
    out["output/savings_summary.csv"] = _csv(
        header, [[*r[:4], *(f"{Decimal(c) / 100:.2f}" for c in r[4:7])] for r in advice]
    )
    yield "price", dict(out)
    by_type, by_region = Counter(), Counter()
    for row in advice:
        by_type[row[1]] += row[6]
        by_region[row[7]] += row[6]
    summary = {
        "resource_count": len(resources),
        "recommendation_count": len(advice),
        "dashboard_only_finding_count": len(findings),
        "total_current_cost": sum(row[4] for row in advice) / 100,
        "total_projected_cost": sum(row[5] for row in advice) / 100,
        "total_monthly_savings": sum(row[6] for row in advice) / 100,
        "savings_by_type": {name: cents / 100 for name, cents in by_type.items()},
        "savings_by_region": {name: cents / 100 for name, cents in by_region.items()},
    }
    told = [dict(zip(header, [*row[:4], *(cents / 100 for cents in row[4:7])], strict=True)) for row in advice]
    out["output/optimization_report.json"] = _json({"executive_summary": summary, "recommendations": told})
    yield "report", dict(out)


def _findings(image: bytes) -> Iterator[dict[str, Any]]:
    """Open findings; each has a line with its type and id, then one with name, status and cost."""
    lines = _read(image)
    after = lines.index("FINDINGS") + 1
    for first, second in zip(lines[after::2], lines[after + 1 :: 2], strict=True):
        name, status, cost = second.split()
        if status == "OPEN":
            kind, resource_id = first.rsplit(" ", 1)
            yield {
                "resource_id": resource_id,
                "resource_type": KINDS[kind.strip()],
                "name": name,
                "monthly_cost": float(cost[1:]),
            }


def _read(image: bytes) -> list[str]:
    """The text on the image: its darkest colour is ink, its thinnest stroke one dot of the font."""
    canvas, palette = png.read(image)
    ink = min(range(len(palette)), key=lambda index: sum(palette[index]))
    inked = [y for y, row in enumerate(canvas) if ink in row]
    tops = [y for y in inked if y - 1 not in set(inked)]
    left = min(canvas[y].index(ink) for y in inked)
    strokes = "".join(" #"[pixel == ink] for y in inked[:14] for pixel in [*canvas[y], 0]).split()
    scale = min(map(len, strokes))
    signs = {bits: sign for sign, bits in pixel_font.GLYPHS.items()} | {(0,) * pixel_font.HEIGHT: " "}
    columns = range(left, len(canvas[0]), pixel_font.ADVANCE * scale)
    return ["".join(signs[pixel_font.cell(canvas, x, y, ink, scale)] for x in columns).rstrip() for y in tops]


def _table(data: bytes) -> list[dict[str, str]]:
    text = data.decode()
    reader = csv.DictReader(io.StringIO(text), delimiter=";" if ";" in text.split("\n")[0] else ",")
    return [{key: value.strip() for key, value in row.items()} for row in reader]


def _prices(tree: Mapping[str, bytes]) -> dict[str, list[tuple[str, int]]]:
    """dimension -> (sku, micro-dollars), small to large."""
    out: dict[str, list[tuple[str, int]]] = {}
    for row in _table(tree["input/pricing.csv"]):
        out.setdefault(row["dimension"], []).append((row["sku"], int(Decimal(row["price_usd"]) * 1000000)))
    return out


def _resources(tree: Mapping[str, bytes], policy: dict[str, Any]) -> dict[str, dict[str, Any]]:
    resources: dict[str, dict[str, Any]] = {}
    waivers = {row["resource_id"]: row["until"] for row in _table(tree["input/waivers.csv"])}
    for path in sorted(tree):
        found = re.fullmatch(r"input/inventory/([a-z0-9-]+)\.csv", path)
        if not found:
            continue
        for row in _table(tree[path]):
            size = row["size_gb"].replace(",", "")
            row["size"] = Decimal(size[:-2].strip()) * 1000 if size.endswith("TB") else Decimal(size or 0)
            row["resource_type"] = policy["aliases"].get(row["resource_type"], row["resource_type"])
            until = waivers.get(row["resource_id"], "")
            resources[row["resource_id"]] = row | {"region": found[1], "metrics": {}, "until": until}
    for path in tree:
        if path.startswith("input/utilization/"):
            for row in _table(tree[path]):
                if row["resource_id"] in resources:
                    resources[row["resource_id"]]["metrics"][row["metric"]] = Decimal(row["value"])
    return resources


def _decide(resource: dict[str, Any], policy: dict[str, Any], prices: dict[str, list]) -> str:
    kind, metrics = resource["resource_type"], resource["metrics"]
    if resource["state"] != {"ec2": "running", "rds": "available", "s3": ""}[kind]:
        return "inactive"
    if resource["resource_id"] in policy["reserved_instances"]:
        return "reserved"
    if resource["until"] >= policy["report_date"]:
        return "waived"
    if any(name not in metrics for name, _ in RULES[kind]):
        return "no_data"
    if any(metrics[name] >= limit for name, limit in RULES[kind]):
        return "keep"
    if kind == "s3":
        return "recommend" if resource["size"] >= 100 else "keep"
    return "keep" if resource["instance_type"] == prices[f"{kind}_compute"][0][0] else "recommend"


def _advice(resource: dict[str, Any], prices: dict[str, list]) -> list[Any]:
    kind = resource["resource_type"]
    if kind == "s3":
        ladder = dict(prices["s3_storage"])
        amount, now, then = int(resource["size"]), ladder["s3-standard"], ladder["s3-standard-ia"]
    else:
        ladder = prices[f"{kind}_compute"]
        at = [sku for sku, _ in ladder].index(resource["instance_type"])
        amount, now, then = 730, ladder[at][1], ladder[at - 1][1]
    costs = [(amount * price + 5000) // 10000 for price in (now, then, now - then)]
    return [resource["resource_id"], kind, resource["name"], ACTIONS[kind], *costs, resource["region"]]


def _csv(header: list[str], rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
