"""Alternative solver: the screenshot is cut into signs by row and column projections; the join and the rules are SQL."""

from __future__ import annotations

import decimal
import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import pixel_font, png

SCHEMA = """
CREATE TABLE resource (id TEXT PRIMARY KEY, kind TEXT, name TEXT, state TEXT, tier TEXT, size TEXT, region TEXT);
CREATE TABLE value (id TEXT, metric TEXT, amount REAL);
CREATE TABLE price (sku TEXT PRIMARY KEY, dimension TEXT, micro INTEGER, place INTEGER);
CREATE TABLE waiver (id TEXT, until TEXT);
CREATE TABLE reserved (id TEXT);
CREATE VIEW wide AS SELECT resource.*,
  MAX(CASE metric WHEN 'cpu_p95' THEN amount END) AS cpu, MAX(CASE metric WHEN 'mem_p95' THEN amount END) AS mem,
  MAX(CASE metric WHEN 'connections_p95' THEN amount END) AS conn, MAX(CASE metric WHEN 'ia_access_ratio' THEN amount END) AS ratio
  FROM resource LEFT JOIN value USING (id) GROUP BY resource.id;
"""
DECIDE = """
SELECT w.id, w.kind, w.region, CASE
  WHEN (w.kind = 'ec2' AND w.state <> 'running') OR (w.kind = 'rds' AND w.state <> 'available') THEN 'inactive'
  WHEN w.id IN (SELECT id FROM reserved) THEN 'reserved'
  WHEN EXISTS (SELECT 1 FROM waiver WHERE waiver.id = w.id AND until >= :date) THEN 'waived'
  WHEN CASE w.kind WHEN 'ec2' THEN cpu IS NULL OR mem IS NULL WHEN 'rds' THEN cpu IS NULL OR conn IS NULL ELSE ratio IS NULL END THEN 'no_data'
  WHEN CASE w.kind WHEN 'ec2' THEN cpu < 20 AND mem < 50 AND lower.sku IS NOT NULL
    WHEN 'rds' THEN cpu < 25 AND conn < 10 AND lower.sku IS NOT NULL
    ELSE ratio < 0.1 AND CAST(w.size AS INTEGER) >= 100 END THEN 'recommend' ELSE 'keep' END AS decision,
  w.name, w.size, own.micro, lower.micro
FROM wide w LEFT JOIN price own ON own.sku = w.tier
LEFT JOIN price lower ON lower.dimension = own.dimension AND lower.place = own.place - 1 ORDER BY w.id
"""
SHOWN = {
    "NAT GATEWAY": ("nat_gateway", "delete_idle_nat_gateway"),
    "ELASTIC IP": ("elastic_ip", "release_unattached_eip"),
    "LOG GROUP": ("cloudwatch_log_group", "delete_stale_log_group"),
}
COLUMNS = "resource_id,resource_type,name,action,current_cost,projected_cost,monthly_savings"


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    policy = json.loads(tree["input/policy.json"])
    base = sqlite3.connect(":memory:")
    base.executescript(SCHEMA)
    _load(base, tree, policy)
    decided = base.execute(DECIDE, {"date": policy["report_date"]}).fetchall()
    ladder = dict(base.execute("SELECT sku, micro FROM price"))
    rows = []
    for resource, kind, region, decision, name, size, own, lower in decided:
        if decision == "recommend":
            amount = int(size) if kind == "s3" else 730
            now, then = (ladder["s3-standard"], ladder["s3-standard-ia"]) if kind == "s3" else (own, lower)
            action = "move_to_ia" if kind == "s3" else f"downsize_{kind}"
            rows.append((resource, kind, name, action, *(_cents(amount * p) for p in (now, then, now - then)), region))
    found = _dashboard(tree["input/billing_dashboard.png"])
    rows += [(i, kind, name, action, cost, decimal.Decimal(0), cost, "global") for i, kind, action, name, cost in found]
    rows.sort(key=lambda row: row[0])
    rows.sort(key=lambda row: row[6], reverse=True)
    names = COLUMNS.split(",")
    sums = {
        key: {
            group: float(sum(row[6] for row in rows if row[at] == group)) for group in sorted({row[at] for row in rows})
        }
        for key, at in (("savings_by_type", 1), ("savings_by_region", 7))
    }
    totals = {
        name: float(sum(row[at] for row in rows))
        for at, name in enumerate(("total_current_cost", "total_projected_cost", "total_monthly_savings"), 4)
    }
    counts = {
        "resource_count": len(decided),
        "recommendation_count": len(rows),
        "dashboard_only_finding_count": len(found),
    }
    report = {
        "executive_summary": counts | totals | sums,
        "recommendations": [dict(zip(names, (*row[:4], *map(float, row[4:7])), strict=True)) for row in rows],
    }
    findings = [
        {"resource_id": i, "resource_type": k, "name": n, "monthly_cost": float(c)} for i, k, _, n, c in sorted(found)
    ]
    lines = [COLUMNS, *(",".join((*row[:4], *(f"{cost:.2f}" for cost in row[4:7]))) for row in rows)]
    told = ["resource_id,resource_type,region,decision", *(",".join(row[:4]) for row in decided)]
    return {
        "output/staging/dashboard_findings.json": json.dumps({"findings": findings}).encode(),
        "output/staging/decisions.csv": ("\n".join(told) + "\n").encode(),
        "output/savings_summary.csv": ("\n".join(lines) + "\n").encode(),
        "output/optimization_report.json": json.dumps(report).encode(),
    }


def _cents(micro: int) -> decimal.Decimal:
    return (decimal.Decimal(micro) / 1000000).quantize(decimal.Decimal("0.01"), decimal.ROUND_HALF_UP)


def _cells(data: bytes) -> list[list[str]]:
    """Rows below the header. A comma inside quotes belongs to a number; all separators become one sign first."""
    out = []
    for line in data.decode().splitlines()[1:]:
        parts = line.split('"')
        parts[1::2] = [part.replace(",", "") for part in parts[1::2]]
        out.append([cell.strip() for cell in "".join(parts).replace(";", ",").split(",")])
    return out


def _load(base: sqlite3.Connection, tree: Mapping[str, bytes], policy: dict[str, Any]) -> None:
    for path, data in tree.items():
        folder, _, file = path.removeprefix("input/").rpartition("/")
        if folder == "inventory":
            for resource, kind, name, state, tier, size in _cells(data):
                if size.endswith("TB"):
                    size = str(int(decimal.Decimal(size[:-2].rstrip()) * 1000))
                known = policy["aliases"].get(kind, kind)
                row = (resource, known, name, state, tier, size, file[:-4])
                base.execute("INSERT OR IGNORE INTO resource VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        elif folder == "utilization":
            base.executemany("INSERT INTO value VALUES (?, ?, ?)", _cells(data))
    for place, (sku, dimension, _, price) in enumerate(_cells(tree["input/pricing.csv"])):
        micro = int(price.split(".")[0]) * 1000000 + int(price.split(".")[1].ljust(6, "0"))
        base.execute("INSERT INTO price VALUES (?, ?, ?, ?)", (sku, dimension, micro, place))
    base.executemany("INSERT INTO waiver VALUES (?, ?)", [row[:2] for row in _cells(tree["input/waivers.csv"])])
    base.executemany("INSERT INTO reserved VALUES (?)", [(resource,) for resource in policy["reserved_instances"]])


def _dashboard(image: bytes) -> list[tuple[str, str, str, str, decimal.Decimal]]:
    """(id, kind, action, name, cost) of the open findings."""
    lines, out = _text(image), []
    for at, line in enumerate(lines):
        shown = next((name for name in SHOWN if line.startswith(name)), None)
        if shown and " OPEN " in lines[at + 1]:
            name, _, cost = lines[at + 1].split()
            out.append((line.split()[-1], *SHOWN[shown], name, decimal.Decimal(cost.lstrip("$"))))
    return out


def _text(image: bytes) -> list[str]:
    """Bands of rows with ink, in each band the signs between blank columns, each looked up by its trimmed dots."""
    rows, palette = png.read(image)
    ink = palette.index(min(palette))
    known = {}
    for sign, bits in pixel_font.GLYPHS.items():
        picture = ["".join(str(line >> column & 1) for line in bits) for column in range(pixel_font.WIDTH - 1, -1, -1)]
        first = next(at for at, column in enumerate(picture) if "1" in column)
        known[_key(picture)] = (sign, first)
    bands = _runs([ink in row for row in rows])
    out = []
    for top, bottom in bands:
        scale = (bottom - top) // pixel_font.HEIGHT
        band = [[pixel == ink for pixel in row] for row in rows[top:bottom:scale]]
        columns = ["".join("01"[row[x]] for row in band) for x in range(len(band[0]))]
        text, origin = "", None
        for begin, end in _runs(["1" in column for column in columns]):
            sign, bearing = known[_key(columns[begin:end:scale])]
            place = begin // scale - bearing
            origin = place if origin is None else origin
            text = text.ljust(round((place - origin) / pixel_font.ADVANCE)) + sign
        out.append(text)
    return out


def _key(columns: list[str]) -> str:
    """Columns of dots without blank ones at the sides."""
    inked = [at for at, column in enumerate(columns) if "1" in column]
    return " ".join(columns[inked[0] : inked[-1] + 1])


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    """(begin, end) of every stretch of true flags."""
    out, begin = [], None
    for at, flag in enumerate([*flags, False]):
        if flag and begin is None:
            begin = at
        elif not flag and begin is not None:
            out.append((begin, at))
            begin = None
    return out
