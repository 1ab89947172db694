"""The words of the world and the public contract."""

from __future__ import annotations

from workbench.worlds import Prompt

REGIONS = "us-east-1 us-west-2 eu-west-1 eu-central-1 ap-south-1 ap-northeast-1 sa-east-1 ca-central-1".split()
SERVICES = "web api batch search ledger media auth mail queue report cache stream".split()
FINDINGS = ["resource_id", "resource_type", "name", "monthly_cost"]
SAVINGS = ["resource_id", "resource_type", "name", "action", "current_cost", "projected_cost", "monthly_savings"]
RECOMMENDATION = dict.fromkeys(SAVINGS[:4], "string") | dict.fromkeys(SAVINGS[4:], "number")
DECISIONS = dict.fromkeys(("resource_id", "resource_type", "region", "decision"), "string")


def prompt(account: str, date: str) -> Prompt:
    return Prompt(
        goal=f"Find the savings in the AWS account {account} as of {date}. The inventory and utilisation are tables; three more savings stand "
        "only on a screenshot of the billing dashboard.",
        inputs={
            "input/billing_dashboard.png": "screenshot: cost by service, and findings, each with type and id, then name, status and monthly cost",
            "input/inventory/<region>.csv": "resource_id, resource_type (ec2, rds, s3), name, state, instance_type, size_gb",
            "input/utilization/<region>.csv": "resource_id, metric (cpu_p95, mem_p95, connections_p95, ia_access_ratio), value",
            "input/pricing.csv": "sku, dimension, unit, price_usd; the skus of one dimension stand from small to large",
            "input/policy.json": "date of the report, aliases of resource types, reserved instances",
            "input/waivers.csv": "resource_id, until (the last day on which it holds), reason",
        },
        requirements=(
            "dashboard_findings.json: the findings whose status is OPEN, as `findings`, sorted by resource_id. resource_type is nat_gateway, elastic_ip or "
            "cloudwatch_log_group (the dashboard writes NAT GATEWAY, ELASTIC IP, LOG GROUP); ids and names as they are printed; monthly_cost in dollars.",
            "decisions.csv, every inventory resource once, sorted by resource_id; decision is the first that applies: inactive (ec2 not running, rds not available); "
            "reserved; waived (by a waiver that still holds on the report's date); no_data (a metric that its rule needs is missing); recommend (its rule holds "
            "and, for instances, there is a smaller tier); keep.",
            "Rules: downsize_ec2, one tier down, when cpu_p95 < 20 and mem_p95 < 50. downsize_rds, one tier down, when cpu_p95 < 25 and connections_p95 < 10. "
            "move_to_ia (s3-standard to s3-standard-ia) when ia_access_ratio < 0.10 and size_gb >= 100.",
            "Findings are recommended too: delete_idle_nat_gateway, release_unattached_eip, delete_stale_log_group, each with projected cost 0.",
            "Costs per month: 730 hours of an instance, size_gb of a bucket. current_cost, projected_cost and monthly_savings are each computed from unrounded prices and then rounded "
            "to cents, half up.",
            "savings_summary.csv and the report's `recommendations`: savings descending, then resource_id; dollars with two decimals in the CSV, numbers in the JSON.",
            "executive_summary: resource_count (inventory), recommendation_count, dashboard_only_finding_count, and the sums of the rounded rows: "
            "total_current_cost, total_projected_cost, total_monthly_savings; savings_by_type and savings_by_region (findings: region `global`), only those with recommendations.",
        ),
        authority=(
            "A row that stands twice in an inventory counts once. Resource types may come under an alias, sizes with a unit (1 TB = 1000 GB) or with thousands separators, values with "
            "blanks around them, tables with semicolons.",
            "Utilisation of a resource that no inventory has is ignored. A file ending in .old.csv is out of date.",
        ),
    )
