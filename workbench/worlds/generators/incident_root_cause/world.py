"""The public contract of the bad day: files, damage, prompt (Tev Table 6, 9.6: root-cause analysis of production incidents)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.incident_root_cause.answers import EPISODES, TIMELINE, episodes_of, truth, utc
from workbench.worlds.generators.incident_root_cause.scene import Change, World, check, make

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
INCIDENT = {
    "id": "string", "root": "string", "onset_utc": "string", "end_utc": "string", "trigger": {"kind": "string", "reference": "string"},
    "blast_radius": ["string"], "depth": "integer", "degraded_minutes": "integer", "rollback": {"safe": "boolean", "reasons": ["string"]},
}  # fmt: skip
SPEC = Spec(
    name="incident_root_cause",
    revision=1,
    domain="9.6",
    title="Root causes of a day of incidents",
    summary="Find episodes in metrics, chain them along the topology, name the triggering change or fault, decide on rollbacks, write the timeline.",
    outputs=(
        Output("output/staging/episodes.csv", "csv", "the degraded episodes", dict.fromkeys(EPISODES, "string")),
        Output("output/incidents.json", "json", "the incidents", {"incidents": [INCIDENT]}),
        Output("output/timeline.csv", "csv", "the day in UTC", dict.fromkeys(TIMELINE, "string")),
        Output("output/report.json", "json", "summary", {"case": "string", "clock_offsets": {"<service>": "integer"}, "incidents": "integer", "triggers": {"<kind>": "integer"}, "safe_rollbacks": ["string"], "most_affected": "string"}),
    ),
    workflow_stages=("profile", "detect", "attribute", "decide", "report"),
    curriculum_layer="mastery",
    artifact_roles=("metrics", "log", "reference-table", "change-record", "policy"),
    relation_types=("temporal", "dependency-graph", "precedence", "foreign-key"),
    source_kind="operations",
)  # fmt: skip
SERIES = ("minute", "error_ppm", "latency_ms")


def workflow(world: World) -> Workflow:
    minutes = len(world.metrics[0]) * len(world.services)
    episodes = len(episodes_of(world))
    return Workflow((
        Stage("repair-metrics", "profile", minutes),
        Stage("find-episodes", "detect", minutes, ("repair-metrics",)),
        Stage("correct-clocks", "profile", sum(map(len, world.logs))),
        Stage("chain-causes", "attribute", episodes, ("find-episodes",)),
        Stage("name-triggers", "attribute", len(world.changes), ("chain-causes", "correct-clocks")),
        Stage("decide-rollbacks", "decide", len(world.kept), ("name-triggers",)),
        Stage("write-timeline", "report", 3 * episodes, ("name-triggers",)),
        Stage("report", "report", 6, ("decide-rollbacks", "write-timeline")),
    ))  # fmt: skip


def second(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())


def render(world: World) -> dict[str, bytes]:
    tree = {
        "input/case.json": json.dumps({"case": world.case, "first_minute": utc(world.start)}).encode() + b"\n",
        "input/services.csv": csv_table.table(("service", "error_limit_ppm", "latency_limit_ms"), world.services),
        "input/topology.csv": csv_table.table(("service", "depends_on", "kind"), world.edges),
        "input/registry.csv": csv_table.table(("service", "version"), world.kept),
        "input/requirements.csv": csv_table.table(("consumer", "provider", "lowest_version"), world.needs),
    }
    lines = [
        {
            "time": utc(c.second),
            "id": c.id,
            "service": c.service,
            "kind": c.kind,
            "from": c.before,
            "to": c.after,
            "migration": c.migration,
        }
        for c in world.changes
    ]
    tree["input/changes.jsonl"] = "".join(json.dumps(x) + "\n" for x in lines).encode()
    both = []
    for (name, _, _), series, log in zip(world.services, world.metrics, world.logs, strict=True):
        rows = [(utc(world.start + 60 * i), *values) for i, values in enumerate(series)]
        both += [(name, *row) for row in rows]
        tree[f"input/metrics/{name}.csv"] = csv_table.table(SERIES, rows)
        beats = [(world.start + 1800 * i, "SYNC", f"reference={utc(world.start + 1800 * i)}") for i in range(3)]
        entries = [{"time": utc(t), "level": level, "message": text} for t, level, text in sorted([*log, *beats])]
        tree[f"input/logs/{name}.jsonl"] = "".join(json.dumps(x) + "\n" for x in entries).encode()
    tree["input/metrics-standby.csv"] = csv_table.table(("service", *SERIES), both)
    return tree


def recover(tree: Tree) -> World:
    def rows(path: str) -> list[list[str]]:
        return csv_table.rows(tree[path])

    services = tuple((n, int(a), int(b)) for n, a, b in rows("input/services.csv"))
    changes = [json.loads(x) for x in tree["input/changes.jsonl"].splitlines()]
    logs = [[json.loads(x) for x in tree[f"input/logs/{n}.jsonl"].splitlines()] for n, _, _ in services]
    case = json.loads(tree["input/case.json"])
    return World(
        case["case"],
        second(case["first_minute"]),
        services,
        tuple((a, b, c) for a, b, c in rows("input/topology.csv")),
        tuple(tuple((int(e), int(d)) for _, e, d in rows(f"input/metrics/{n}.csv")) for n, _, _ in services),
        tuple(
            Change(c["id"], second(c["time"]), c["service"], c["kind"], c["from"], c["to"], c["migration"])
            for c in changes
        ),
        tuple((a, b) for a, b in rows("input/registry.csv")),
        tuple((a, b, c) for a, b, c in rows("input/requirements.csv")),
        tuple(
            tuple((second(x["time"]), x["level"], x["message"]) for x in log if x["level"] != "SYNC") for log in logs
        ),
    )


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    episodes = episodes_of(world)
    root = next(e for e in episodes if e.cause is None)
    chained = next((e for e in episodes if e.cause), root)
    names, form = [n for n, _, _ in world.services], "%Y-%m-%dT%H:%M:%SZ"
    skewed = [root.service, draw.choice([n for n in names if n != root.service])]
    hard = [i for i, e in enumerate(world.edges) if e[2] == "hard"]
    other = draw.choice([n for n in names if n not in (root.service, chained.service)])
    width = len(world.metrics[0])
    standby = names.index(other) * width + draw.integer(0, width - 6)
    must = [
        Defect(
            "clock_skew",
            f"input/logs/{n}.jsonl",
            {"column": "time", "seconds": draw.choice([-1, 1]) * draw.integer(120, 2400), "format": form},
            "the host's clock is off",
        )
        for n in skewed
    ]
    more = [
        Defect("missing_records", f"input/metrics/{root.service}.csv", {"rows": list(range(root.first, root.first + 3))}, "the collector was down as the incident began"),
        Defect("duplicate_records", f"input/metrics/{chained.service}.csv" if chained is not root else f"input/metrics/{other}.csv", {"rows": sorted(draw.sample(range(width), 5))}, "scraped twice"),
        Defect("contradictory_record", "input/metrics-standby.csv", {"column": "error_ppm", "rows": list(range(standby, standby + 5)), "values": [str(90_000 + draw.integer(1, 9999)) for _ in range(5)]}, "the standby collector saw a ghost"),
        Defect("numeric_format_drift", f"input/metrics/{other}.csv", {"column": "error_ppm", "style": "thousands"}, "numbers written for people"),
        Defect("stale_copy", "input/topology.csv", {"copy": "input/topology.2025.csv", "edits": [[i, "kind", "soft"] for i in hard[::2]]}, "last year's topology"),
    ]  # fmt: skip
    if more[1].path == more[3].path:
        more[1], more[3] = more[3], more[1]
    kept = sorted(draw.sample(range(len(more)), draw.integer(1, len(more))))
    return (*must[: draw.integer(1, 2)], *(more[i] for i in kept))


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="Explain a bad day of a service fleet: find the degraded episodes, chain them to their root causes, name what triggered each incident and whether rolling back is safe, and give the timeline in UTC.",
        inputs={
            "input/metrics/<service>.csv": "error rate (parts per million) and latency by the minute, primary collector",
            "input/metrics-standby.csv": "the same from the standby collector",
            "input/logs/<service>.jsonl": "log lines, in the clock of the service's host",
            "input/changes.jsonl": "deploys, config changes and flags, in UTC",
            "input/topology.csv, services.csv": "who depends on whom; the limits of each service",
            "input/registry.csv, requirements.csv": "versions still kept; versions that consumers need",
            "input/case.json": "the case",
        },
        requirements=(
            "A minute is degraded when error_ppm or latency_ms exceeds (>) the service's limit. An episode is a run of degraded minutes in which neighbours are at most 3 minutes apart, as long as possible, with at least 3 degraded minutes. onset and end are its first and last degraded minutes.",
            "Clocks: a SYNC line carries the true time in `reference=`; offset = its time - reference in seconds, constant per log. Subtract it from every time of that log.",
            "Cause of an episode: among episodes of the services that it depends on by `hard` edges, those with onset not after and end not before its own onset; of these the one with the earliest onset, then the first service name. None: it is a root. An incident is a root with all episodes that lead to it.",
            "episodes.csv: ordered by onset, service; cause is the causing service or empty. Incidents I-01, I-02, … follow the order of their roots there. All times YYYY-MM-DDTHH:MM:SSZ.",
            "Trigger: the last change of the root service from 1800 s before its onset up to the onset (both included): kind of the change, reference its id. Else the first ERROR line of its log in that span: kind `fault`, reference the text after `code=`. Else `unknown` with an empty reference.",
            "Of an incident: end_utc the latest end; blast_radius its services, sorted; depth the longest chain in steps (a lone root 0); degraded_minutes summed over its episodes.",
            "Rollback: without a change safe is false, reasons [`no-change`]. Else reasons, sorted, among: `version-not-kept` (its `from` is not in registry.csv), `irreversible-migration`, `later-change` (another change of that service after it, up to end_utc), `consumer-needs-newer` (a requirement on that service with lowest_version above `from`, compared number by number); safe when none holds.",
            "timeline.csv, per incident: `change` (the trigger, detail = id); for each episode `onset` and `end` (empty detail), and `first-error`, the first ERROR line of its service from 1800 s before onset to end (detail = code), if any. Sort by time_utc, incident, service, event.",
            "report.json: clock_offsets for every service (0 where right); number of incidents; triggers counts kinds; safe_rollbacks the references of the triggers that are safe to roll back, in order of incidents; most_affected the service in most incidents, then first by name.",
        ),
        authority=(
            "The primary collector wins; the standby serves only minutes that the primary lacks. Repeated identical rows count once. Numbers may carry thousands separators.",
            "topology.csv is in force; dated copies are not.",
        ),
    )
