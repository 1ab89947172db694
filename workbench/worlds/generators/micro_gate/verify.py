"""All or nothing for each of the three reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

COMPONENTS = {"order": 1, "seal": 1, "top": 1}
LONGEST = 40_000
_TRAIL = re.compile(r"[ \t\r]+(?=\n|\Z)")


def _read(tree: Mapping[str, bytes], report: str) -> str:
    """The report without blanks at the ends of its lines and empty lines at its own; "" when it is no text."""
    data = tree.get(f"output/{report}.txt")
    if not isinstance(data, bytes) or len(data) > LONGEST or not data.isascii():
        return ""
    return _TRAIL.sub("", str(data, "ascii")).rstrip("\n")


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    wanted = {"top": truth["earliest"], "order": truth["latest"], "seal": truth["fingerprint"] + "  -"}
    return {report: 1.0 * (_read(tree, report) == wanted[report]) for report in COMPONENTS}
