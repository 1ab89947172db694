"""Find text in the turns of many traces. A plain scan: files that cannot hold the text are passed over unparsed."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.traces.files import open_bytes
from workbench.traces.reading import read_trace
from workbench.traces.record import SUFFIX
from workbench.traces.store import TraceError
from workbench.traces.turns import TurnView, turns

_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_STRUCTURE = frozenset('"{}[]:,')  # arguments are kept as objects by some, and written as text by us
_OTHER_ESCAPES = (b"\\/", b"\\u002", b"\\u003")  # of writers that escape more than JSON must
_AROUND = 60
_FIELDS = ("text", "command", "arguments", "observation")


@dataclass(frozen=True)
class Hit:
    """A turn that holds the text. field: where; start: at which character; snippet: what stands around it."""

    path: str
    trace: str
    step: int
    call: int
    kind: str
    field: str
    start: int
    snippet: str

    def to_row(self) -> dict[str, Any]:
        return asdict(self)


def trace_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and in folders everything below that is named like a trace, in order."""
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.name.endswith(_SUFFIXES) and _visible(p, path))
        else:
            yield path


def _visible(path: Path, root: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)


def search(
    paths: Iterable[Path], query: str, *, regex: bool = False, case: bool = False, skipped: list[str] | None = None
) -> Iterator[Hit]:
    """Turns that hold `query`, first hit of each. case: upper and lower case differ. Secrets are replaced first, so they
    are neither found nor shown. In folders, files that are no traces are passed over (named in `skipped`).
    Raises ValueError for a pattern that is none, or an empty one."""
    if not query:
        raise ValueError("an empty query: give the text to find")
    try:
        pattern = re.compile(query if regex else re.escape(query), 0 if case else re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{query!r} is no regular expression: {error}") from error
    forms = None if regex else _forms(query, case)
    for path in trace_files(paths):
        try:
            exact = path.name.endswith(SUFFIX) or not _STRUCTURE & set(query)
            if forms and exact and not _may_hold(path, forms, case):
                continue
            found = turns(read_trace(path))
        except (TraceError, EOFError, zlib.error, OSError) as error:
            if skipped is not None:
                skipped.append(str(error))
            continue
        yield from (hit for turn in found if (hit := _hit(path, turn, pattern)))


def _forms(query: str, case: bool) -> tuple[bytes, ...] | None:
    """How the text may stand in a file: in a JSON string, or in arguments, which are JSON inside of one. None when that
    is not known: letters outside of ASCII may be escaped there, and their cases are many."""
    if not query.isascii():
        return None
    once = json.dumps(query)[1:-1]
    forms = {once, json.dumps(once)[1:-1]}
    return tuple((f if case else f.lower()).encode() for f in sorted(forms))


def _may_hold(path: Path, forms: tuple[bytes, ...], case: bool) -> bool:
    with open_bytes(path) as file:
        data = file.read()
    if not case:
        data = data.lower()
    return any(form in data for form in forms) or any(mark in data for mark in _OTHER_ESCAPES)


def _hit(path: Path, turn: TurnView, pattern: re.Pattern[str]) -> Hit | None:
    for field in _FIELDS:
        value = getattr(turn, field)
        if value and (match := pattern.search(value)):
            snippet = value[max(0, match.start() - _AROUND) : match.end() + _AROUND]
            return Hit(str(path), turn.trace, turn.step, turn.call, turn.kind, field, match.start(), snippet)
    return None
