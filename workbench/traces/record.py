"""The file that an import leaves: gzipped JSONL, a head, a line a step, and an end with the digest and what was met.

It is written step by step, whole or not at all; the same trace gets the same name and the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.traces.reading import Reading
from workbench.traces.sniff import FORMATS
from workbench.traces.store import TraceError
from workbench.traces.trace import TraceStep
from workbench.traces.turns import Digest, iter_turns

SUFFIX = ".trace.jsonl.gz"
VERSION = 1


@dataclass(frozen=True)
class Imported:
    """One import. steps, turns: on the main branch. turns: {"turns", "text", "call"}. side: steps on side branches."""

    path: Path
    source: Path
    format: str
    digest: str
    steps: int
    side: int
    turns: dict[str, int]
    report: dict[str, Any]

    def to_row(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path), "source": str(self.source)}


def import_trace(reading: Reading, folder: Path, on_step: Callable[[], Any] | None = None) -> Imported:
    """Read a trace to its end and write it below `folder` as NAME-DIGEST.trace.jsonl.gz. Memory: a step at a time.
    Raises TraceError when the file has no message."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        tally = _write(made, reading, on_step)
        digest = tally.digest.hexdigest()
        path = folder / f"{_stem(reading.path)}-{digest[:12]}{SUFFIX}"
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    turns = {"turns": tally.turns.total(), "text": tally.turns["text"], "call": tally.turns["call"]}
    report = reading.report.to_json()
    return Imported(path, reading.path, reading.format, digest, tally.steps, tally.side, turns, report)


class _Tally:
    def __init__(self) -> None:
        self.digest, self.turns, self.steps, self.side = Digest(), Counter(), 0, 0

    def add(self, step: TraceStep) -> None:
        self.digest.add(step)
        if step.branch:
            self.side += 1
            return
        self.steps += 1
        self.turns.update(t.kind for t in iter_turns([step], ""))


def _write(path: Path, reading: Reading, on_step: Callable[[], Any] | None) -> _Tally:
    tally = _Tally()
    with path.open("wb") as raw:
        with (
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as packed,
            io.TextIOWrapper(packed, encoding="utf-8", errors="backslashreplace", newline="\n") as out,
        ):
            _line(out, {"type": "trace", "version": VERSION, "info": reading.info.to_json()})
            for item in reading:
                if isinstance(item, TraceStep):
                    tally.add(item)
                    _line(out, {"type": "step", "step": item.to_json()})
                else:
                    _line(out, {"type": "unknown", "entry_type": item.type, "raw": item.raw})
                if on_step is not None:
                    on_step()
            if not tally.steps + tally.side:
                raise TraceError(f"{reading.path}: {FORMATS[reading.format]} without a single message")
            end = {"digest": tally.digest.hexdigest(), "turns": tally.turns.total(), "report": reading.report.to_json()}
            _line(out, {"type": "end", **end})
        raw.flush()
        os.fsync(raw.fileno())
    return tally


def _line(out: io.TextIOWrapper, value: dict[str, Any]) -> None:
    out.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def _stem(path: Path) -> str:
    """The file's name as far as it is a plain one."""
    name = re.sub(r"(\.trace)?\.(jsonl?|traj\.json|txt|log)(\.gz)?$", "", path.name)
    name = re.sub(r"-[0-9a-f]{12}$", "", name) if path.name.endswith(SUFFIX) else name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "trace"
