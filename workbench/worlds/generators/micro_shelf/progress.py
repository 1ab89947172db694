"""One node an output; no partial credit, so that lines taken over from elsewhere earn nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NODES = (("top", 1, ()), ("seal", 1, ()), ("order", 1, ()))
_MOST = 65536


def _holds(data: object, wanted: list[str]) -> bool:
    """Whether the text is these lines, blanks at their ends and line ends at its own end aside."""
    if not isinstance(data, bytes) or len(data) > _MOST:
        return False
    body = data.rstrip(b"\n").rstrip(b"\r\n")
    found = [match.rstrip() for match in body.replace(b"\r\n", b"\n").split(b"\n")]
    return len(found) == len(wanted) and all(a == b.encode() for a, b in zip(found, wanted, strict=True))


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {name: 1.0 if _holds(tree.get(f"output/{name}.txt"), truth[name]) else 0.0 for name, _, _ in NODES}
