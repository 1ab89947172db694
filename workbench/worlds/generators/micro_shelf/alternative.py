"""The same by streams of bytes: a filter for each remark, a sink for each output."""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Callable, Mapping
from hashlib import new


def _unrepeated(data: bytes) -> bytes:
    return b"".join(key for key, _ in itertools.groupby(data.splitlines(keepends=True)))


FILTERS: dict[bytes, tuple[bytes, Callable[[bytes], bytes]]] = {
    b"clean": (b"", bytes),
    b"stale": (b"new/", bytes),
    b"double": (b"", _unrepeated),
    b"void": (b"", lambda data: re.sub(rb"(?m)^.*void.*\n", b"", data)),
}


def _descending(data: bytes) -> bytes:
    pieces = data.splitlines(keepends=True)
    return b"".join(heapq.nlargest(len(pieces), pieces))


SINKS: dict[bytes, Callable[[bytes], bytes]] = {
    b"top": lambda data: b"".join(itertools.islice(data.splitlines(keepends=True), 3)),
    b"seal": lambda data: new("md5", data, usedforsecurity=False).hexdigest().encode() + b"  -\n",
    b"order": _descending,
}


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    found = {}
    for job, name, remark in re.findall(rb"(\w+) (\w+) (\w+)", tree["input/note.txt"]):
        folder, clean = FILTERS[remark]
        data = clean(tree[(b"input/" + folder + name + b".txt").decode()])
        found[f"output/{job.decode()}.txt"] = SINKS[job](data)
    return found
