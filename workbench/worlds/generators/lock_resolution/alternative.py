"""Alternative solver: versions are whole numbers, constraints bit masks over them; an explicit stack walks the choices."""

from __future__ import annotations

import heapq
import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

BASE = 10_000
PATTERN = re.compile(r"(\^|~|[<>=!]=|[<>])\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?")
STEP = {"major": BASE * BASE, "minor": BASE}


def _text(data: bytes) -> str:
    for codec in ("utf-8-sig", "utf-16"):
        try:
            return data.decode(codec)
        except UnicodeDecodeError:
            continue
    raise ValueError("unknown encoding")


def _cells(data: bytes) -> list[list[str]]:
    """The rows below the header; none of these tables has quotes, commas inside values apart."""
    head, *lines = _text(data).splitlines()
    sign = re.search(r"[,;\t]", head)[0]
    return [[cell.strip().strip('"') for cell in re.findall(rf'"[^"]*"|[^{sign}]+', line)] for line in lines]


def _code(version: str) -> int:
    numbers = [int(n) for n in version.partition("-")[0].split(".")] + [0, 0]
    return (numbers[0] * BASE + numbers[1]) * BASE + numbers[2]


def _ranges(constraint: str) -> list[tuple[int, int, bool]]:
    """(low, high, inside): half-open ranges in which the code must lie, or (inside False) must not."""
    out = []
    for sign, major, minor, patch in PATTERN.findall(constraint):
        at = (int(major) * BASE + int(minor or 0)) * BASE + int(patch or 0)
        if sign == "^":
            unit = STEP["major"] if int(major) else STEP["minor"]
            out.append((at, (at // unit + 1) * unit, True))
        elif sign == "~":
            out.append((at, (at // STEP["minor"] + 1) * STEP["minor"], True))
        elif sign in ("==", "!="):
            out.append((at, at + 1, sign == "=="))
        else:
            low, high = {">=": (at, 1 << 60), ">": (at + 1, 1 << 60), "<": (0, at), "<=": (0, at + 1)}[sign]
            out.append((low, high, True))
    return out


def _holds(code: int, constraint: str) -> bool:
    return all((low <= code < high) is inside for low, high, inside in _ranges(constraint))


class Masks:
    """Per package a bit for each candidate, the highest version first; a constraint is the mask of those it allows."""

    def __init__(self, usable: Mapping[str, list[str]]):
        self.codes = {name: [_code(v) for v in versions] for name, versions in usable.items()}
        self.known: dict[tuple[str, str], int] = {}

    def of(self, name: str, constraint: str) -> int:
        if (name, constraint) not in self.known:
            self.known[name, constraint] = sum(
                1 << i for i, code in enumerate(self.codes[name]) if _holds(code, constraint)
            )
        return self.known[name, constraint]


def _walk(usable: Mapping[str, list[str]], roots: Mapping[str, str], needs: Any) -> dict[str, str]:
    """A frame of the stack: (package, candidates still to try, allowed masks before it)."""
    masks = Masks(usable)
    allowed = {name: masks.of(name, constraint) for name, constraint in roots.items()}
    chosen: dict[str, int] = {}
    stack: list[tuple[str, int, dict[str, int]]] = []

    def enter() -> bool:
        waiting = [name for name in allowed if name not in chosen]
        if waiting:
            name = min(waiting)
            stack.append((name, allowed[name], dict(allowed)))
        return bool(waiting)

    going = enter()
    while going:
        name, left, before = stack.pop()
        chosen.pop(name, None)
        allowed = dict(before)
        while left:
            bit = (left & -left).bit_length() - 1
            left &= left - 1
            wants = needs(name, usable[name][bit])
            cut = {d: masks.of(d, c) for d, c in wants.items()}
            if all(mask >> chosen[d] & 1 for d, mask in cut.items() if d in chosen):
                stack.append((name, left, before))
                chosen[name] = bit
                for d, mask in cut.items():
                    allowed[d] = allowed.get(d, -1) & mask
                going = enter()
                break
    return {name: usable[name][bit] for name, bit in chosen.items()}


def _registry(tree: Mapping[str, bytes]) -> tuple[dict, dict, dict[tuple[str, str], list[str]]]:
    """(checksums, index records, reasons against each) by (name, version)."""
    python = _code(tomllib.loads(_text(tree["input/project.toml"]))["project"]["python"])
    sha = {(n, v): s for n, v, _, s in _cells(tree["input/registry/publish_log.csv"])}
    index: dict[tuple[str, str], dict] = {}
    mirror = [json.loads(line) for line in _text(tree["input/mirror/index.jsonl"]).splitlines()]
    fresh = [
        json.loads(line)
        for name in {n for n, _ in sha}
        for line in _text(tree[f"input/index/{name}.jsonl"]).splitlines()
    ]
    for record in mirror + fresh:  # the index overwrites the mirror
        index[record["name"], record["vers"]] = record
    index = {at: index[at] for at in sha}
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for at, name, version, action in _cells(tree["input/registry/yank_log.csv"]):
        stamp = re.sub(r"^(\d\d)/(\d\d)/(\d{4})", r"\3-\2-\1", at)
        last[name, version] = max(last.get((name, version), ("", "")), (stamp, action))
    against = [
        (n, a)
        for _, n, a, s in _cells(tree["input/registry/advisories.csv"])
        if s.lower() in ("high", "p2", "critical", "crit", "p1")
    ]
    why = {}
    for (name, version), record in sorted(index.items(), key=lambda item: (item[0][0], _code(item[0][1]))):
        checks = {
            "advisory": any(n == name and _holds(_code(version), a) for n, a in against), "prerelease": "-" in version,
            "python": not _holds(python, record["python"]), "yanked": last.get((name, version), ("", ""))[1] == "yank",
        }  # fmt: skip
        why[name, version] = [word for word, true in checks.items() if true]
    return sha, index, why


def _install(edges: Mapping[str, list[str]]) -> list[str]:
    """Kahn's algorithm with a heap."""
    missing = {name: len(below) for name, below in edges.items()}
    above: dict[str, list[str]] = {name: [] for name in edges}
    for name, below in edges.items():
        for dependency in below:
            above[dependency].append(name)
    heap, out = [n for n, k in missing.items() if not k], []
    heapq.heapify(heap)
    while heap:
        out.append(heapq.heappop(heap))
        for name in above[out[-1]]:
            missing[name] -= 1
            if not missing[name]:
                heapq.heappush(heap, name)
    return out


def _change(before: str, after: str, why: list[str]) -> list[str]:
    if before == after:
        return ["unchanged", before, after, ""]
    if not before:
        return ["added", before, after, "required"]
    if not after:
        return ["removed", before, after, "unreachable"]
    word, plain = ("upgraded", "newer") if _code(after) > _code(before) else ("downgraded", "conflict")
    return [word, before, after, [*why, plain][0]]


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The complete outputs."""
    toml = tomllib.loads(_text(tree["input/project.toml"]))
    project, roots = toml["project"], toml["dependencies"]
    sha, index, why = _registry(tree)
    usable: dict[str, list[str]] = {}
    for (name, version), words in why.items():
        usable.setdefault(name, [])
        if not words:
            usable[name].insert(0, version)

    def needs(name: str, version: str) -> dict[str, str]:
        return {
            d["name"]: d["req"]
            for d in index[name, version]["deps"]
            if d["platform"] == "any" or d["platform"] == project["platform"]
        }

    chosen = _walk(usable, roots, needs)
    edges = {name: sorted(needs(name, version)) for name, version in chosen.items()}
    packages = []
    for name in sorted(chosen):
        above = [other for other, below in edges.items() if name in below] + [project["name"]] * (name in roots)
        packages.append(
            {
                "name": name,
                "version": chosen[name],
                "sha256": sha[name, chosen[name]],
                "dependencies": edges[name],
                "required_by": sorted(above),
            }
        )
    old = {row["name"]: row["version"] for row in json.loads(_text(tree["input/project.lock.json"]))}
    lines = [["name", "change", "from", "to", "reason"]]
    for name in sorted(set(old) | set(chosen)):
        before = old.get(name, "")
        lines.append(
            [
                name,
                *_change(before, chosen.get(name, ""), why.get((name, before), ["unpublished"])),
            ]
        )
    excluded = [
        json.dumps({"name": n, "version": v, "reasons": ",".join(words)}) for (n, v), words in why.items() if words
    ]
    lock = {
        "python": project["python"],
        "platform": project["platform"],
        "packages": packages,
        "install_order": _install(edges),
    }
    return {
        "output/excluded.jsonl": "\n".join([*excluded, ""]).encode(),
        "output/candidates.json": json.dumps(usable).encode(),
        "output/lock.json": json.dumps(lock).encode(),
        "output/changes.csv": "\n".join([*(",".join(line) for line in lines), ""]).encode(),
    }
