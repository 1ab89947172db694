"""The public contract of the lock resolution, its defect plan and sealed answers."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec
from workbench.worlds.draw import Draw
from workbench.worlds.generators.lock_resolution import model

SEVERITIES = {"low": ["LOW", "P4"], "medium": ["MODERATE", "P3"], "high": ["HIGH", "P2"], "critical": ["CRIT", "P1"]}
CHANGES = {"name": "string", "change": "string", "from": "string", "to": "string", "reason": "string"}
SPEC = Spec(
    name="lock_resolution", revision=1, domain="9.1", title="Resolving a stale lock file",
    summary="Resolve a project's dependencies over a damaged registry index with yanks, advisories and conflicts, and explain every change.",
    outputs=(
        Output("output/excluded.jsonl", "jsonl", "every published version that may not be chosen, by name, then version", {"name": "string", "version": "string", "reasons": "string"}),
        Output("output/candidates.json", "json", "package -> its usable versions, highest first; an empty list when there is none", {"<package>": ["string"]}),
        Output(
            "output/lock.json", "json", "the new lock; packages by name, dependencies sorted",
            {
                "python": "string", "platform": "string",
                "packages": [{"name": "string", "version": "string", "sha256": "string", "dependencies": ["string"], "required_by": ["string"]}],
                "install_order": ["string"],
            },
        ),
        Output("output/changes.csv", "csv", "the old lock against the new, by name", CHANGES),
    ),
    curriculum_layer="mastery", workflow_stages=("ingest", "judge", "resolve", "report", "audit"), tools=("python3",),
    artifact_roles=("package-index", "log", "mirror", "advisory", "manifest", "stale-lock"), relation_types=("dependency", "version-range", "precedence", "temporal"),
    source_kind="package registry",
)  # fmt: skip


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    """Lost, doubled or smuggled index lines always; up to five more."""
    names = sorted({v[0] for v in world.versions})
    rows = {name: [v for v in world.versions if v[0] == name] for name in names}
    backed = [n for n in names if sum(v[5] <= world.mirrored_until for v in rows[n]) >= 2]
    lost, twice, smuggled, wrong = draw.choice(backed), draw.choice(names), draw.choice(names), draw.choice(names)
    index = lambda name: f"input/index/{name}.jsonl"  # noqa: E731
    gone = draw.sample([v[1] for v in rows[lost] if v[5] <= world.mirrored_until], 2)
    again = draw.sample([v[1] for v in rows[twice] if not (twice == lost and v[1] in gone)], 2)
    fakes = []
    for i, v in enumerate(draw.sample(rows[smuggled], 2)):
        fakes.append(
            {
                "name": smuggled,
                "vers": f"{model.key(rows[smuggled][-1][1])[0] + 1 + i}.{draw.integer(0, 9)}.0",
                "python": v[2],
                "deps": [],
                "cksum": draw.hexadecimal(64),
            }
        )
    bad = draw.sample([v[1] for v in rows[wrong] if not (wrong == lost and v[1] in gone)], 2)
    log, yanks, advisories = (f"input/registry/{n}.csv" for n in ("publish_log", "yank_log", "advisories"))
    offered = {
        "wrong": Defect("contradictory_record", index(wrong), {"column": "cksum", "where": {"vers": bad}, "values": [draw.hexadecimal(64) for _ in bad]}, "checksums that the publish log denies"),
        "severity": Defect("category_drift", advisories, {"column": "severity", "rows": sorted(draw.sample(range(len(world.advisories)), len(world.advisories) // 2)), "mapping": SEVERITIES}, "another feed's severities"),
        "when": Defect("date_format_drift", yanks, {"column": "at", "from": "%Y-%m-%d %H:%M:%S", "to": "%d/%m/%Y %H:%M:%S", "rows": sorted(draw.sample(range(len(world.yanks)), len(world.yanks) // 2))}, "day-first times"),
        "blank": Defect("whitespace_noise", log, {"columns": ["name", "version"], "rows": sorted(draw.sample(range(len(world.versions)), len(world.versions) // 5))}, "blanks in the publish log"),
        "lost": Defect("missing_records", index(lost), {"where": {"vers": gone}}, "index lines lost, still in the mirror"),
        "twice": Defect("duplicate_records", index(twice), {"where": {"vers": again}}, "index lines written twice"),
        "smuggled": Defect("orphan_records", index(smuggled), {"records": fakes}, "versions that nobody published"),
        "twice_yank": Defect("duplicate_records", yanks, {"rows": sorted(draw.sample(range(len(world.yanks)), 2))}, "yank events logged twice"),
        "old": Defect("stale_copy", index(wrong), {"copy": f"input/index/{wrong}.bak.jsonl", "drop": [0]}, "a backup left in the index"),
        "sign": Defect("delimiter_drift", log, {"to": draw.choice((";", "\t"))}),
        "bytes": Defect("encoding_drift", advisories, {"encoding": draw.choice(("utf-16", "utf-8-sig"))}),
    }  # fmt: skip
    first = draw.sample(("lost", "smuggled", "twice"), 2)
    others = draw.sample([k for k in offered if k not in first], draw.integer(0, 5))
    return tuple(d for name, d in offered.items() if name in {*first, *others})


def truth(world: Any) -> dict[str, Any]:
    chosen, _ = model.resolve(world)
    why, wants = model.reasons(world), model.needs(world)
    sha = {(v[0], v[1]): v[4] for v in world.versions}
    roots = {name for name, _ in world.roots}
    packages = []
    for name, version in sorted(chosen.items()):
        parents = sorted(n for n, v in chosen.items() if name in wants[n, v]) + (
            [world.project] if name in roots else []
        )
        packages.append(
            {
                "name": name,
                "version": version,
                "sha256": sha[name, version],
                "dependencies": sorted(wants[name, version]),
                "required_by": sorted(parents),
            }
        )
    excluded = [
        {"name": v[0], "version": v[1], "reasons": ",".join(why[v[0], v[1]])} for v in world.versions if why[v[0], v[1]]
    ]
    lock = {
        "python": f"3.{world.python}",
        "platform": world.platform,
        "packages": packages,
        "install_order": model.order(world, chosen),
    }
    return {
        "excluded": excluded,
        "candidates": model.candidates(world),
        "lock": lock,
        "header": list(CHANGES),
        "changes": model.changes(world, chosen),
    }


def prompt(world: Any) -> Prompt:
    return Prompt(
        goal="A project's lock file is stale and its registry's index is damaged. Judge every published version, resolve the project anew, and say what changed against the old lock and why.",
        inputs={
            "input/project.toml": "target Python and platform, and the direct dependencies",
            "input/project.lock.json": "the old lock",
            "input/index/": "one file a package, a JSON line a version",
            "input/registry/": "publish log, yank log and advisories of the registry",
            "input/mirror/": "an index copy that lags behind, and the day up to which it is complete",
        },
        requirements=(
            "Versions are MAJOR.MINOR.PATCH compared as numbers; a suffix after a hyphen makes a prerelease (compared by its numbers). Constraints are comparators joined by commas, all of which must hold: >=, >, <=, <, ==, != and ^X (at least X, below the next major; below the next minor when the major is 0), ~X (at least X, below the next minor); missing parts of X are 0; * is anything.",
            "excluded.jsonl: published versions that may not be chosen, in numeric order of versions within a package; reasons: those that hold, joined by commas, in this order: advisory (affected by one of severity high or critical), prerelease, python (constraint not met by the target), yanked (its latest event is a yank).",
            "candidates.json: all other published versions, for every published package.",
            "Resolve by depth-first search: take the first package by name that is required and not yet chosen; try its candidates from the highest; one fits if it meets the constraints of the project and of all chosen versions on it, and its own dependencies' constraints hold for the packages chosen already; if none fits, go back to the previous choice. The first complete choice is the lock. Dependencies for another platform than any or the project's don't count.",
            "lock.json: sha256 of the publish log; required_by: the packages of the lock that depend on it, and the project's name if it is a direct dependency, sorted. install_order: dependencies before dependents; whenever several could be next, the first by name.",
            "changes.csv: every package of either lock; change is added, removed, upgraded, downgraded or unchanged; from and to are versions or empty. reason: required for added, unreachable for removed, empty for unchanged; otherwise the first exclusion reason of the old version, or unpublished if it is not in the publish log, or else newer for an upgrade and conflict for a downgrade.",
        ),
        authority=(
            "The publish log says which versions exist, and their checksums. Index lines of other versions are to be ignored.",
            "A published version that its index file lacks is taken from the mirror; otherwise the index wins over the mirror.",
            "Identical lines, of index or logs, count once. Only <package>.jsonl is a package's index file; anything else in that folder is left over.",
            "Severities may be spelled LOW or P4 for low, MODERATE or P3, HIGH or P2, CRIT or P1 for critical. Times are YYYY-MM-DD HH:MM:SS, or day first with slashes. Tables may use another separator, blanks around values, UTF-8 with or without mark, or UTF-16.",
        ),
    )  # fmt: skip
