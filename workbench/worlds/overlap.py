"""Lexical overlap of a corpus' prompts with held-out tasks, and the same of held-out tasks among themselves (Tev A.9, Table 10).

Tokens and n-grams are those of the contamination check (workbench.tasks.ngrams). The index here is the one of Table 10: windows of 13 and of
8 tokens, the share of a task's tokens that lie in a shared 8-gram, and the largest Jaccard index of token sets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from workbench.tasks.ngrams import NgramIndex, tokens

LONG, SHORT = 13, 8
MAX_BYTES, MAX_TASKS = 1 << 20, 100_000
TEXT = (".md", ".txt", ".rst")


def read_prompts(folder: str | Path) -> dict[str, str]:
    """task -> instruction, of every Harbor task below the folder (several steps: joined); without any, of its text files.

    Links are not followed; instructions over 1 MB are cut. FileNotFoundError without the folder, ValueError when it holds neither.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder")
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for path in _files(root):
        relative = path.relative_to(root)
        if path.name == "instruction.md":
            parts = relative.parts[:-1]
            task = "/".join(parts[: parts.index("steps")] if "steps" in parts else parts) or root.name
            texts[task] = f"{texts[task]}\n{_read(path)}" if task in texts else _read(path)
        elif not texts and path.suffix in TEXT and len(others) < MAX_TASKS:
            others[relative.as_posix()] = _read(path)
    if found := {name: text for name, text in (texts or others).items() if text.strip()}:
        return found
    raise ValueError(f"{root}: neither Harbor tasks (instruction.md) nor text files ({', '.join(TEXT)}) in it")


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below.sort()
        yield from (Path(folder) / name for name in sorted(names))


def _read(path: Path) -> str:
    """The text of a regular file; nothing of a link, pipe or device."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""


def overlap_row(name: str, held_out: Mapping[str, str], against: Mapping[str, str] | None) -> dict[str, Any]:
    """One row of Table 10: how many held-out tasks share a 13-gram and an 8-gram, the worst coverage, the nearest neighbours.

    against: the corpus' prompts; None compares each held-out task with the others of its set: the calibration.
    """
    keys = list(held_out)
    words = [tokens(held_out[key]) for key in keys]
    texts = words if against is None else [tokens(text) for text in against.values()]
    long, short = NgramIndex(LONG, exact=False), NgramIndex(SHORT, exact=False)
    for number, text in enumerate(texts):
        long.add(number, text)
        short.add(number, text)
    sets = [frozenset(text) for text in texts]
    hits13 = hits8 = 0
    worst, near = 0.0, []
    for number, text in enumerate(words):
        own = number if against is None else -1
        hits13 += bool(_shared(long, text, own))
        places = _shared(short, text, own)
        hits8 += bool(places)
        covered = {place + step for place in places for step in range(SHORT)}
        worst = max(worst, len(covered) / len(text) if text else 0.0)
        mine = frozenset(text)
        near.append(max((_jaccard(mine, other) for n, other in enumerate(sets) if n != own), default=0.0))
    return {
        "evaluation_set": name,
        "calibration": against is None,
        "tasks": len(keys),
        "hits_13_gram": hits13,
        "hits_8_gram": hits8,
        "max_token_coverage": worst,
        "nearest_jaccard_median": median(near) if near else 0.0,
        "nearest_jaccard_max": max(near, default=0.0),
    }


def _shared(index: NgramIndex, words: Sequence[str], own: int) -> list[int]:
    """Where windows begin that another text has."""
    return [place for place, where in index.find(words) if any(document != own for document, _ in where)]


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


def overlap_table(corpus: Mapping[str, str], held_out: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Table 10: a row for each evaluation set against the corpus, then the calibration block over the same sets."""
    rows = [overlap_row(name, tasks, corpus) for name, tasks in held_out.items()]
    return rows + [overlap_row(name, tasks, None) for name, tasks in held_out.items()]
