"""A project whose lock file went stale while its package registry moved on.

The world is the registry as it truly is (published versions with dependencies, yanks, advisories), the project's requirements and the
old lock. It's rendered as a sparse index of one JSON-lines file a package, the registry's publish log, yank log and advisories, a
mirror that lags behind, and the project's files.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Defect, Prompt, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.lock_resolution import contract, model
from workbench.worlds.generators.lock_resolution.contract import SPEC

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]

SIZES = {"unit": (12, 5), "small": (20, 8), "full": (34, 12)}  # packages, versions of each
HEADS = "anvil birch cobalt delta ember flint garnet harbor iris jasper krill lumen mango nectar onyx pixel quartz raven sable tundra umber violet willow xenon yarrow zephyr".split()
TAILS = "cache codec core http io json kit log math net parse pool query rpc sql sync test time ui wire".split()
MIRROR_LAG = 3  # of the versions, in tenths, the latest are not mirrored


@dataclass(frozen=True)
class World:
    """versions: (name, version, python constraint, ((dependency, constraint, platform), …), sha256, published), by name, then age.
    yanks: (time, name, version, "yank" or "unyank"). advisories: (id, name, range, severity). stale: the old lock."""

    project: str
    python: int  # the minor version of Python 3
    platform: str
    roots: tuple[tuple[str, str], ...]
    versions: tuple[tuple, ...]
    yanks: tuple[tuple[str, str, str, str], ...]
    advisories: tuple[tuple[str, str, str, str], ...]
    stale: tuple[tuple[str, str], ...]
    mirrored_until: str


def _numbers(draw: Draw, count: int) -> list[str]:
    """Ascending versions; two digits in a part, so that texts sort wrongly; now and then a candidate for release."""
    at, out = [draw.integer(0, 2), draw.integer(0, 3), draw.integer(0, 9)], []
    for _ in range(count):
        step = draw.weighted((0, 1, 2), (2, 4, 3))
        at = (
            [at[0] + 1, 0, 0]
            if step == 0
            else [at[0], at[1] + draw.integer(1, 4), 0]
            if step == 1
            else [*at[:2], at[2] + draw.integer(1, 4)]
        )
        out.append(".".join(map(str, at)) + ("-rc.1" if draw.chance(0.08) else ""))
    return out


def _around(draw: Draw, version: str) -> str:
    """A constraint that this version meets."""
    major, minor, patch = model.key(version)
    return draw.choice(
        (
            f"^{major}.{minor}.{patch}",
            f">={major}.{minor}.0,<{major + 1}.{draw.integer(0, 2)}.0",
            f"~{major}.{minor}.{patch}",
            f">={max(0, major - 1)}.0.0,<={version}",
        )
    )


def _shape(draw: Draw, count: int) -> dict[int, list[int]]:
    """package -> those it depends on, always later ones; everyone but the first four has a parent."""
    below: dict[int, list[int]] = {i: [] for i in range(count)}
    for child in range(4, count):
        for parent in draw.sample(range(child), min(child, draw.weighted((1, 2, 3), (4, 5, 2)))):
            below[parent].append(child)
    return below


def _attempt(draw: Draw, tier: str) -> World:
    count, length = SIZES[tier]
    mark, python = draw.hexadecimal(3), draw.integer(9, 13)
    names = draw.sample([f"{a}-{b}" for a in HEADS for b in TAILS], count)
    names = [f"{n}-{mark}" if draw.chance(0.5) else f"{n}{draw.integer(2, 9)}" for n in names]
    below, lists, good = _shape(draw, count), [_numbers(draw, length) for _ in names], []
    for own in lists:
        place = draw.integer(1, max(1, length - 3))
        own[place] = own[place].split("-")[0]
        good.append(place)
    versions = []
    for i, name in enumerate(names):
        for at, version in enumerate(lists[i]):
            deps = []
            for child in below[i]:
                newer = min(length - 1, good[child] + draw.integer(1, 2))
                target = newer if at > good[i] and draw.chance(0.55) else good[child]
                if at == good[i] or draw.chance(0.9):
                    deps.append(
                        (
                            names[child],
                            _around(draw, lists[child][target].split("-")[0]),
                            draw.weighted(("any", "linux", "windows"), (8, 1, 1)),
                        )
                    )
            old_python = at != good[i] and draw.chance(0.08)
            support = f">=3.{python + 1}" if old_python else f">=3.{python - draw.integer(1, 4)}"
            published = f"20{18 + at * 6 // length}-{draw.integer(1, 12):02d}-{draw.integer(1, 28):02d}"
            versions.append((name, version, support, tuple(deps), draw.hexadecimal(64), published))
    versions.sort(key=lambda v: (v[0], model.key(v[1])))
    free = [v for v in versions if v[1] != lists[names.index(v[0])][good[names.index(v[0])]]]
    yanks = _yanks(draw, draw.sample(free, len(free) // 6))
    advisories = []
    for i, v in enumerate(draw.sample(free, max(3, len(free) // 9))):
        major, minor, patch = model.key(v[1])
        kept = model.key(lists[names.index(v[0])][good[names.index(v[0])]])
        reach = (
            f"<={major}.{minor}.{patch}"
            if (major, minor, patch) < kept
            else f">={major}.{minor}.{patch},<{major}.{minor}.{patch + 1}"
        )
        advisories.append(
            (
                f"ADV-{2020 + i % 5}-{draw.integer(1000, 9999)}{i}",
                v[0],
                reach,
                draw.choice(("low", "medium", "high", "critical")),
            )
        )
    roots = tuple(
        sorted(
            (names[i], draw.choice(("*", _around(draw, lists[i][good[i]]), f">={lists[i][good[i]]}"))) for i in range(4)
        )
    )
    stale = tuple(sorted((names[i], lists[i][draw.integer(0, good[i])]) for i in range(count) if draw.chance(0.8)))
    days = sorted(v[5] for v in versions)
    return World(
        f"{draw.choice(HEADS)}-service-{mark}",
        python,
        "linux",
        roots,
        tuple(versions),
        yanks,
        tuple(advisories),
        stale,
        days[len(days) * (10 - MIRROR_LAG) // 10],
    )


def _yanks(draw: Draw, chosen: list) -> tuple[tuple[str, str, str, str], ...]:
    """Some yanks were taken back."""
    out = []
    for v in chosen:
        day = f"202{draw.integer(4, 5)}-{draw.integer(1, 6):02d}-{draw.integer(1, 28):02d}"
        out.append((f"{day} {draw.integer(0, 23):02d}:{draw.integer(0, 59):02d}:00", v[0], v[1], "yank"))
        if draw.chance(0.3):
            out.append(
                (f"{day[:5]}{draw.integer(7, 12):02d}{day[7:]} 09:{draw.integer(0, 59):02d}:00", v[0], v[1], "unyank")
            )
    return tuple(sorted(out))


def make(draw: Draw, tier: str) -> World:
    """The first attempt whose search turns back at least twice, and ends soon."""
    for attempt in range(60):
        world = _attempt(draw.fork("attempt", attempt), tier)
        try:
            chosen, looked = model.resolve(world, 4000)
        except model.Unsolvable:
            continue
        if looked > len(chosen) * 2 and len(chosen) >= SIZES[tier][0] * 2 // 3:
            return world
    raise WorldError("no registry of this seed resolves in a bounded number of steps")


def check(world: World) -> None:
    """Unique versions, dependencies that exist, logs that speak of what was published, a solution."""
    published = {(v[0], v[1]) for v in world.versions}
    names = {name for name, _ in published}
    if len(published) != len(world.versions) or {d[0] for v in world.versions for d in v[3]} - names:
        raise WorldError("a version is published twice, or depends on nothing that exists")
    if {(y[1], y[2]) for y in world.yanks} - published or {a[1] for a in world.advisories} - names:
        raise WorldError("a log speaks of a version that is not published")
    if len({y[:3] for y in world.yanks}) != len(world.yanks) or len({a[0] for a in world.advisories}) != len(
        world.advisories
    ):
        raise WorldError("two yank events at one time, or an advisory's number twice")
    model.resolve(world)


def workflow(world: World) -> Workflow:
    packages, versions = len({v[0] for v in world.versions}), len(world.versions)
    return Workflow((
        Stage("read-index", "ingest", versions + packages),
        Stage("judge-versions", "judge", versions + len(world.yanks) + len(world.advisories), ("read-index",)),
        Stage("resolve", "resolve", model.resolve(world)[1], ("judge-versions",)),
        Stage("write-lock", "report", packages, ("resolve",)),
        Stage("compare-locks", "audit", packages + len(world.stale), ("judge-versions", "resolve")),
    ))  # fmt: skip


def line(version: tuple) -> str:
    """One line of the index."""
    name, number, python, deps, sha, _ = version
    listed = [{"name": d, "req": c, "platform": p} for d, c, p in deps]
    return json.dumps({"name": name, "vers": number, "python": python, "deps": listed, "cksum": sha}) + "\n"


def render(world: World) -> dict[str, bytes]:
    wanted = "".join(f'"{name}" = "{constraint}"\n' for name, constraint in world.roots)
    project = f'[project]\nname = "{world.project}"\npython = "3.{world.python}"\nplatform = "{world.platform}"\n\n[dependencies]\n{wanted}'
    log = [(v[0], v[1], v[5], v[4]) for v in sorted(world.versions, key=lambda v: (v[5], v[0], model.key(v[1])))]
    tree = {
        "input/project.toml": project.encode(),
        "input/project.lock.json": (
            json.dumps([{"name": n, "version": v} for n, v in world.stale], indent=1) + "\n"
        ).encode(),
        "input/registry/publish_log.csv": csv_table.table(("name", "version", "published", "sha256"), log),
        "input/registry/yank_log.csv": csv_table.table(("at", "name", "version", "action"), world.yanks),
        "input/registry/advisories.csv": csv_table.table(("id", "name", "affected", "severity"), world.advisories),
        "input/mirror/index.jsonl": "".join(line(v) for v in world.versions if v[5] <= world.mirrored_until).encode(),
        "input/mirror/synced.txt": f"{world.mirrored_until}\n".encode(),
    }
    for name in sorted({v[0] for v in world.versions}):
        tree[f"input/index/{name}.jsonl"] = "".join(line(v) for v in world.versions if v[0] == name).encode()
    return tree


def recover(tree: Mapping[str, bytes]) -> World:
    """The world back from its clean files."""
    table = lambda path: [tuple(row) for row in csv_table.rows(tree[path])]  # noqa: E731
    project = tomllib.loads(tree["input/project.toml"].decode())
    dates = {row[:2]: row[2] for row in table("input/registry/publish_log.csv")}
    versions = []
    for path in sorted(p for p in tree if p.startswith("input/index/")):
        for record in map(json.loads, tree[path].decode().splitlines()):
            deps = tuple((d["name"], d["req"], d["platform"]) for d in record["deps"])
            versions.append(
                (
                    record["name"],
                    record["vers"],
                    record["python"],
                    deps,
                    record["cksum"],
                    dates[record["name"], record["vers"]],
                )
            )
    head = project["project"]
    return World(
        head["name"], int(head["python"].split(".")[1]), head["platform"], tuple(project["dependencies"].items()),
        tuple(sorted(versions, key=lambda v: (v[0], model.key(v[1])))), tuple(table("input/registry/yank_log.csv")), tuple(table("input/registry/advisories.csv")),
        tuple((r["name"], r["version"]) for r in json.loads(tree["input/project.lock.json"])), tree["input/mirror/synced.txt"].decode().strip(),
    )  # fmt: skip


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return contract.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    return contract.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return contract.prompt(world)
