"""Replaying a patch series: where each hunk goes, and what becomes of a patch whose hunks don't fit."""

from __future__ import annotations

from typing import Any

Lines = list[str]


def trim(body: tuple[str, ...], fuzz: int) -> tuple[tuple[str, ...], int]:
    """(hunk without up to `fuzz` context lines at either end, how many went at the front)."""
    front = 0
    while front < fuzz and body[front][0] == " ":
        front += 1
    back = 0
    while back < fuzz and body[-1 - back][0] == " ":
        back += 1
    return body[front : len(body) - back], front


def side(body: tuple[str, ...], signs: str) -> Lines:
    return [line[1:] for line in body if line[0] in signs]


def places(text: Lines, wanted: Lines) -> list[int]:
    """The lines, from 1, where `wanted` stands."""
    return [
        i + 1
        for i in range(len(text) - len(wanted) + 1)
        if text[i] == wanted[0] and text[i : i + len(wanted)] == wanted
    ]


def fit(text: Lines, new_start: int, body: tuple[str, ...], shift: int) -> tuple[str, int, int, int]:
    """(result, fuzz, line, context lines dropped in front): the exact place, else it's there already, else with fuzz 1 or 2, else rejected."""
    for fuzz in (0, 1, 2):
        cut, front = trim(body, fuzz)
        expected = new_start + front + shift
        found = places(text, side(cut, " -"))
        if found:
            return ("fuzzy" if fuzz else "applied"), fuzz, min(found, key=lambda at: (abs(at - expected), at)), front
        if not fuzz and (there := places(text, side(body, " +"))):
            return "present", 0, min(there, key=lambda at: (abs(at - expected), at)), 0
    return "rejected", 0, 0, 0


def replay(world: Any) -> tuple[dict[str, Lines], list[dict[str, Any]], list[list[Any]]]:
    """(tree, one record a hunk, one row a patch)."""
    moved = dict(world.renames)
    tree = {path: list(lines) for path, lines in world.files}
    hunks, rows = [], []
    for position, patch in enumerate(world.patches, 1):
        before, records = {path: list(lines) for path, lines in tree.items()}, []
        shift, last = 0, ""
        for number, (path, new_start, body) in enumerate(patch.hunks, 1):
            target = moved.get(path, path)
            shift, last = (shift, last) if target == last else (0, target)
            result, fuzz, line, front = fit(tree[target], new_start, body, shift)
            offset = line - new_start - front if line else 0
            if result in ("applied", "fuzzy"):
                cut, _ = trim(body, fuzz)
                tree[target][line - 1 : line - 1 + len(side(cut, " -"))] = side(cut, " +")
                shift = offset
            records.append(
                {
                    "patch": patch.name,
                    "hunk": number,
                    "file": target,
                    "result": result,
                    "line": line,
                    "offset": offset,
                    "fuzz": fuzz,
                }
            )
        count = {
            word: sum(r["result"] in words for r in records)
            for word, words in (("in", ("applied", "fuzzy")), ("there", ("present",)), ("out", ("rejected",)))
        }
        status = "applied" if not count["out"] else "partial"
        if count["out"] and patch.policy == "drop-patch":
            tree, status = before, "dropped"
            for record in records:
                if record["result"] in ("applied", "fuzzy"):
                    record["result"] = "reverted"
        elif count["there"] == len(records):
            status = "already-upstream"
        hunks += records
        rows.append([str(position), patch.name, status, str(count["in"]), str(count["there"]), str(count["out"])])
    return tree, hunks, rows
