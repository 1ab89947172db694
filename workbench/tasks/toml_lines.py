"""In which line of a task.toml a key stands (the parser of the standard library does not say)."""

from __future__ import annotations

import functools
import re

Loc = tuple[str | int, ...]


def where(text: str, loc: Loc) -> str:
    """ "task.toml:LINE" of a key, or of the nearest section that holds it; "task.toml" when neither is written out."""
    lines = _lines(text)
    for end in range(len(loc), 0, -1):
        if loc[:end] in lines:
            return f"task.toml:{lines[loc[:end]]}"
    return "task.toml"


@functools.lru_cache(maxsize=16)
def _lines(text: str) -> dict[Loc, int]:
    """Line of every header and every key at a line's start. An approximation: inline tables count as their line."""
    found: dict[Loc, int] = {}
    counts: dict[Loc, int] = {}
    section: Loc = ()
    quoted = False
    for number, line in enumerate(text.splitlines(), 1):
        inside, quoted = quoted, quoted != ((line.count('"""') + line.count("'''")) % 2 == 1)
        if inside:
            continue
        if header := re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]", line):
            section = _section(_split(header[2]), header[1] == "[[", counts)
            found.setdefault(section, number)
        elif key := re.match(r"\s*([\w\-.\"' ]+?)\s*=", line):
            parts = _split(key[1])
            for end in range(1, len(parts) + 1):
                found.setdefault((*section, *parts[:end]), number)
    return found


def _section(parts: Loc, is_list: bool, counts: dict[Loc, int]) -> Loc:
    path: Loc = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        if is_list and index == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split(key: str) -> Loc:
    return tuple(part.strip().strip("\"'") for part in key.split("."))
