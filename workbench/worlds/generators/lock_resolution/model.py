"""Versions, constraints and the resolver that defines the answer: the first complete choice of a plain depth-first search."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Key = tuple[int, int, int]
SEVERE = ("high", "critical")


class Unsolvable(Exception):
    """No choice of versions, or none within the allowed number of steps."""


def key(version: str) -> Key:
    major, minor, patch = version.split("-")[0].split(".")
    return int(major), int(minor), int(patch)


def bounds(part: str) -> list[tuple[str, Key]]:
    """A comparator as elementary ones."""
    sign, text = re.fullmatch(r"(\^|~|[<>=!]=|[<>])([\d.]+)", part.strip()).groups()
    low = tuple(int(n) for n in [*text.split("."), "0", "0"][:3])
    if sign == "^":
        return [(">=", low), ("<", (low[0] + 1, 0, 0) if low[0] else (0, low[1] + 1, 0))]
    if sign == "~":
        return [(">=", low), ("<", (low[0], low[1] + 1, 0))]
    return [(sign, low)]


def meets(version: Key, constraint: str) -> bool:
    if constraint == "*":
        return True
    tests = {
        "<": version.__lt__,
        ">": version.__gt__,
        "<=": version.__le__,
        ">=": version.__ge__,
        "==": version.__eq__,
        "!=": version.__ne__,
    }
    return all(tests[sign](limit) for part in constraint.split(",") for sign, limit in bounds(part))


def yanked(world: Any) -> set[tuple[str, str]]:
    """The versions whose latest event is a yank."""
    state: dict[tuple[str, str], str] = {}
    for _, name, version, action in sorted(world.yanks):
        state[name, version] = action
    return {at for at, action in state.items() if action == "yank"}


def reasons(world: Any) -> dict[tuple[str, str], list[str]]:
    """(name, version) -> why it may not be chosen, for every published version; [] when it may."""
    gone, out = yanked(world), {}
    for name, version, python, _, _, _ in world.versions:
        hit = any(a[1] == name and a[3] in SEVERE and meets(key(version), a[2]) for a in world.advisories)
        tests = {
            "advisory": hit,
            "prerelease": "-" in version,
            "python": not meets((3, world.python, 0), python),
            "yanked": (name, version) in gone,
        }
        out[name, version] = [word for word, true in tests.items() if true]
    return out


def candidates(world: Any) -> dict[str, list[str]]:
    """name -> usable versions, highest first."""
    out: dict[str, list[str]] = {}
    for (name, version), why in reasons(world).items():
        own = out.setdefault(name, [])
        if not why:
            own.append(version)
    return {name: sorted(own, key=key, reverse=True) for name, own in sorted(out.items())}


def needs(world: Any) -> dict[tuple[str, str], dict[str, str]]:
    """(name, version) -> dependency -> constraint, on the project's platform."""
    return {
        (v[0], v[1]): {d: c for d, c, platform in v[3] if platform in ("any", world.platform)} for v in world.versions
    }


def resolve(world: Any, limit: int = 20_000) -> tuple[dict[str, str], int]:
    """({name: version}, how many candidates were looked at). Raises Unsolvable."""
    usable, wants, looked = candidates(world), needs(world), [0]

    def search(chosen: Mapping[str, str]) -> dict[str, str] | None:
        demands = [(d, c) for n, v in chosen.items() for d, c in wants[n, v].items()] + list(world.roots)
        open_names = sorted({d for d, _ in demands} - chosen.keys())
        if not open_names:
            return dict(chosen)
        name = open_names[0]
        for version in usable[name]:
            looked[0] += 1
            if looked[0] > limit:
                raise Unsolvable("too many steps")
            fits = all(meets(key(version), c) for d, c in demands if d == name)
            if fits and all(meets(key(chosen[d]), c) for d, c in wants[name, version].items() if d in chosen):
                found = search({**chosen, name: version})
                if found is not None:
                    return found
        return None

    found = search({})
    if found is None:
        raise Unsolvable("no choice")
    return found, looked[0]


def order(world: Any, chosen: Mapping[str, str]) -> list[str]:
    """Dependencies first; of those that are ready the first by name."""
    wants, out = needs(world), []
    while len(out) < len(chosen):
        out.append(min(n for n, v in chosen.items() if n not in out and all(d in out for d in wants[n, v])))
    return out


def changes(world: Any, chosen: Mapping[str, str]) -> list[list[str]]:
    """[name, change, from, to, reason], by name."""
    old, why, out = dict(world.stale), reasons(world), []
    for name in sorted({*old, *chosen}):
        a, b = old.get(name, ""), chosen.get(name, "")
        if not a or not b:
            out.append([name, "removed" if a else "added", a, b, "unreachable" if a else "required"])
            continue
        change = "unchanged" if a == b else "upgraded" if key(b) > key(a) else "downgraded"
        blocked = why.get((name, a), ["unpublished"])
        reason = "" if a == b else blocked[0] if blocked else "newer" if change == "upgraded" else "conflict"
        out.append([name, change, a, b, reason])
    return out
