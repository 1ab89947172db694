"""Each output is right line by line, or worth nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COMPONENTS = {"top": 1, "seal": 1, "order": 1}
LIMIT = 1 << 16


def _lines(data: object) -> list[str] | None:
    if not isinstance(data, bytes) or len(data) > LIMIT:
        return None
    try:
        return [line.rstrip() for line in data.decode("utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")]
    except UnicodeDecodeError:
        return None


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    return {name: float(_lines(tree.get(f"output/{name}.txt")) == truth[name]) for name in COMPONENTS}
