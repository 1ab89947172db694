"""Reference solver: a recursive search over lists of versions, as the contract tells it."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterator, Mapping

REASONS = ("advisory", "prerelease", "python", "yanked")
SEVERE = {"high", "critical", "HIGH", "P2", "CRIT", "P1"}


def _decode(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] == b"\xff\xfe" else "utf-8-sig")


def _table(data: bytes) -> list[dict[str, str]]:
    text = _decode(data)
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [{k: v.strip() for k, v in row.items()} for row in rows]


def _numbers(version: str) -> tuple[int, ...]:
    parts = [int(p) for p in version.split("-")[0].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def _meets(version: str, constraint: str) -> bool:
    """Whether a version satisfies every comparator."""
    mine = _numbers(version)
    for part in constraint.split(","):
        part = part.strip()
        limit = _numbers(part.lstrip("^~<>=!")) if part != "*" else ()
        if part == "*":
            continue
        if part[0] == "^":
            fits = mine >= limit and (mine[0] == limit[0] if limit[0] else mine[:2] == limit[:2])
        elif part[0] == "~":
            fits = mine >= limit and mine[:2] == limit[:2]
        elif part[:2] in (">=", "<=", "==", "!="):
            fits = {">=": mine >= limit, "<=": mine <= limit, "==": mine == limit, "!=": mine != limit}[part[:2]]
        else:
            fits = mine > limit if part[0] == ">" else mine < limit
        if not fits:
            return False
    return True


def _when(text: str) -> str:
    day, clock = text.split(" ")
    return f"{'-'.join(reversed(day.split('/')))} {clock}" if "/" in day else text


class Registry:
    """The published versions, their index records and what speaks against them."""

    def __init__(self, tree: Mapping[str, bytes]):
        self.project = tomllib.loads(_decode(tree["input/project.toml"]))
        self.sha = {(r["name"], r["version"]): r["sha256"] for r in _table(tree["input/registry/publish_log.csv"])}
        self.records: dict[tuple[str, str], dict] = {}
        names = {name for name, _ in self.sha}
        for path in [f"input/index/{name}.jsonl" for name in sorted(names)] + ["input/mirror/index.jsonl"]:
            for line in _decode(tree[path]).splitlines():
                record = json.loads(line)
                at = (record["name"], record["vers"])
                if at in self.sha:
                    self.records.setdefault(at, record)
        state = {}
        for row in sorted(_table(tree["input/registry/yank_log.csv"]), key=lambda r: _when(r["at"])):
            state[row["name"], row["version"]] = row["action"]
        self.yanked = {at for at, action in state.items() if action == "yank"}
        self.severe = [r for r in _table(tree["input/registry/advisories.csv"]) if r["severity"] in SEVERE]
        self.order = sorted(self.records, key=lambda at: (at[0], _numbers(at[1])))
        self.why = {at: self._reasons(at) for at in self.order}

    def _reasons(self, at: tuple[str, str]) -> list[str]:
        name, version = at
        found = (
            any(a["name"] == name and _meets(version, a["affected"]) for a in self.severe), "-" in version,
            not _meets(self.project["project"]["python"], self.records[at]["python"]), at in self.yanked,
        )  # fmt: skip
        return [word for word, true in zip(REASONS, found, strict=True) if true]

    def needs(self, name: str, version: str) -> dict[str, str]:
        here = ("any", self.project["project"]["platform"])
        return {d["name"]: d["req"] for d in self.records[name, version]["deps"] if d["platform"] in here}

    def candidates(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {name: [] for name, _ in self.order}
        for name, version in reversed(self.order):
            if not self.why[name, version]:
                out[name].append(version)
        return out


def _search(
    registry: Registry, usable: dict[str, list[str]], chosen: dict[str, str], demands: dict[str, list[str]]
) -> dict[str, str] | None:
    """demands: package -> the constraints on it so far."""
    open_names = sorted(demands.keys() - chosen.keys())
    if not open_names:
        return chosen
    name = open_names[0]
    for version in usable[name]:
        if not all(_meets(version, c) for c in demands[name]):
            continue
        needs = registry.needs(name, version)
        if all(_meets(chosen[d], c) for d, c in needs.items() if d in chosen):
            more = {d: [*demands.get(d, []), *([needs[d]] if d in needs else [])] for d in {**demands, **needs}}
            found = _search(registry, usable, {**chosen, name: version}, more)
            if found is not None:
                return found
    return None


def _lock(registry: Registry, chosen: dict[str, str]) -> dict:
    project, direct = registry.project["project"], registry.project["dependencies"]
    parents: dict[str, list[str]] = {name: [project["name"]] if name in direct else [] for name in chosen}
    for name, version in chosen.items():
        for dependency in registry.needs(name, version):
            parents[dependency].append(name)
    packages = [
        {
            "name": n,
            "version": v,
            "sha256": registry.sha[n, v],
            "dependencies": sorted(registry.needs(n, v)),
            "required_by": sorted(parents[n]),
        }
        for n, v in sorted(chosen.items())
    ]
    order: list[str] = []
    waiting = {n: set(registry.needs(n, v)) for n, v in chosen.items()}
    while waiting:
        ready = min(n for n, missing in waiting.items() if not missing)
        order.append(ready)
        del waiting[ready]
        for missing in waiting.values():
            missing.discard(ready)
    return {"python": project["python"], "platform": project["platform"], "packages": packages, "install_order": order}


def _changes(registry: Registry, old: dict[str, str], new: dict[str, str]) -> list[list[str]]:
    rows = []
    for name in sorted({*old, *new}):
        before, after = old.get(name, ""), new.get(name, "")
        if not before or not after:
            rows.append(
                [name, *(("removed", before, "", "unreachable") if before else ("added", "", after, "required"))]
            )
        elif before == after:
            rows.append([name, "unchanged", before, after, ""])
        else:
            up = _numbers(after) > _numbers(before)
            why = registry.why.get((name, before), ["unpublished"])
            rows.append(
                [
                    name,
                    "upgraded" if up else "downgraded",
                    before,
                    after,
                    why[0] if why else "newer" if up else "conflict",
                ]
            )
    return rows


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The outputs after every stage."""
    registry = Registry(tree)
    out: dict[str, bytes] = {}
    yield "read-index", dict(out)
    excluded = [
        {"name": n, "version": v, "reasons": ",".join(registry.why[n, v])}
        for n, v in registry.order
        if registry.why[n, v]
    ]
    out["output/excluded.jsonl"] = "".join(json.dumps(row) + "\n" for row in excluded).encode()
    usable = registry.candidates()
    out["output/candidates.json"] = json.dumps(usable, indent=1).encode()
    yield "judge-versions", dict(out)
    chosen = _search(registry, usable, {}, {name: [c] for name, c in registry.project["dependencies"].items()})
    if chosen is None:
        raise ValueError("the project can't be resolved")
    yield "resolve", dict(out)
    out["output/lock.json"] = json.dumps(_lock(registry, chosen), indent=1).encode()
    yield "write-lock", dict(out)
    text = io.StringIO()
    old = {r["name"]: r["version"] for r in json.loads(_decode(tree["input/project.lock.json"]))}
    csv.writer(text, lineterminator="\n").writerows(
        [["name", "change", "from", "to", "reason"], *_changes(registry, old, chosen)]
    )
    out["output/changes.csv"] = text.getvalue().encode()
    yield "compare-locks", dict(out)
