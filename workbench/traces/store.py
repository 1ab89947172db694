"""Episodes on disk: one gzipped JSON file an episode, under a run's `traces/`."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from workbench.traces import Episode, Turn

SUFFIX = ".json.gz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class TraceError(ValueError):
    """A trace file cannot be read; the message names it and says what is wrong."""


def write_episode(folder: Path, name: str, episode: Episode) -> Path:
    """Write `episode` as FOLDER/NAME.json.gz: whole or not at all, also when the process is killed meanwhile.

    name: letters, digits, `.`, `_`, `-` (a trial's id, and the step's index when there are several). The same episode
    gives the same bytes. Returns the path."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"trace name {name!r}: use letters, digits, '.', '_' and '-' only")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{SUFFIX}"
    record = episode.to_json()
    for turn in record["turns"]:  # JSON has no NaN: an unknown price is null
        turn["usd"] = None if math.isnan(turn["usd"]) else turn["usd"]
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    # Commands may print half a surrogate pair; UTF-8 has no bytes for it, JSON's escapes do.
    data = gzip.compress(text.encode("utf-8", "backslashreplace"), compresslevel=6, mtime=0)
    made = folder / f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with made.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    return path


def read_episode(path: Path) -> Episode:
    """Read one file. Fields that this version does not know are left out. Raises TraceError, FileNotFoundError."""
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))
        turns = [_known(Turn, turn) for turn in data.get("turns", [])]
        return Episode.from_json({**_known(Episode, data), "turns": [_filled(turn) for turn in turns]})
    except (OSError, EOFError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise TraceError(f"{path}: not a trace of this workbench: {error}") from error


def list_episodes(folder: Path) -> list[str]:
    """Names of the episodes in a folder, sorted; [] when there is no folder."""
    return sorted(p.name.removesuffix(SUFFIX) for p in folder.glob(f"[!.]*{SUFFIX}"))


def iter_episodes(folder: Path) -> Iterator[tuple[str, Episode]]:
    """(name, episode) in order of name, read one at a time."""
    for name in list_episodes(folder):
        yield name, read_episode(folder / f"{name}{SUFFIX}")


def _known(record: type, data: dict) -> dict:
    names = {f.name for f in dataclasses.fields(record)}
    return {k: v for k, v in data.items() if k in names}


def _filled(turn: dict) -> dict:
    """Episode.from_json wants the id lists to be there; null stands for an unknown price."""
    turn = {"prompt_ids": (), "sampled_ids": (), "logprobs": (), **turn}
    return {**turn, "usd": math.nan} if turn.get("usd", 0.0) is None else turn
