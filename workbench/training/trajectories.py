"""Which executed trajectories teach: passed, without leaks, each once, balanced (AutoEnvScaling §4.3, H: admitted trajectories only).

The paper keeps 600 proposer trajectories and does not say how they were balanced; order and caps here are ours.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HOST = re.compile(r"workbench/(?:training|trials|proposer|sandboxes|worlds)/|wb-[a-z]+-")


def select(
    rows: Sequence[Mapping[str, Any]], *, most_of_a_kind: float = 0.25, roots: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """(chosen rows, how many were left out and why).

    rows: of kind "trace" (role, passed, kinds, messages). In this order: not passed; a text that tells a path of this host (`roots`: further
    ones); the same conversation as an earlier row; a solver's world whose combination of corruptions has its share
    `most_of_a_kind` of the solver's rows already. The order of the rows does not change what is kept of a combination: digests decide.
    """
    places = [*roots, str(Path.home()), str(Path.cwd()), tempfile.gettempdir() + "/wb-"]
    places = [place for place in places if len(place) > 4]  # "/" and "/root" would match what sandboxes rightly say
    left, kept, seen = Counter(), [], set()
    for row in sorted(rows, key=_digest):
        text = _text(row)
        if not row["passed"]:
            left["not passed"] += 1
        elif HOST.search(text) or any(place in text for place in places):
            left["leaks a path of the host"] += 1
        elif text in seen:
            left["said before"] += 1
        else:
            seen.add(text)
            kept.append(dict(row))
    chosen = _balanced(kept, most_of_a_kind)
    left["over its share"] = len(kept) - len(chosen)
    return chosen, {"executed": len(rows), **dict(left), "chosen": len(chosen)}


def _balanced(rows: list[dict[str, Any]], share: float) -> list[dict[str, Any]]:
    """No combination of corruptions has more than `share` of the solver's rows as they were before."""
    solver = [row for row in rows if row["role"] == "solver"]
    most, taken, out = max(1, int(share * len(solver))), Counter(), []
    for row in rows:
        kind = " ".join(row["kinds"])
        if row["role"] == "solver" and taken[kind] >= most:
            continue
        taken[kind] += row["role"] == "solver"
        out.append(row)
    return out


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps(row["messages"], sort_keys=True, ensure_ascii=False)


def _digest(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(row).encode()).hexdigest()
