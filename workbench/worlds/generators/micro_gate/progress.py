"""A node a report, compared entry by entry; nothing for parts, since entries lie about in the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

NODES = (("earliest", 1, ()), ("fingerprint", 1, ()), ("latest", 1, ()))
FILES = {"earliest": b"top", "fingerprint": b"seal", "latest": b"order"}


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    marks = {}
    for node, file in FILES.items():
        content = tree.get((b"output/" + file + b".txt").decode())
        entries = content[:50_000].splitlines() if isinstance(content, bytes) else []
        while entries and not entries[-1].strip():
            entries.pop()
        tail = b"  -" if node == "fingerprint" else b""
        pairs = zip_longest(entries, truth[node].encode().splitlines())
        marks[node] = float(all(a is not None and b is not None and a.rstrip(b" \t\r") == b + tail for a, b in pairs))
    return marks
