"""Tables over a corpus' rows: horizon (Tev Table 8), balance (A.7). Rows are those of the corpus' journal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from workbench.worlds import DOMAINS

# Tev's three capability categories; which domain is in which, the paper doesn't say: this is our reading.
CATEGORIES = {
    "Math & Science": ("9.4", "9.7"),
    "ML": ("9.3",),
    "Coding & System": ("9.1", "9.2", "9.5", "9.6"),
    "Beyond computing": ("3", "6"),
}
Row = Mapping[str, Any]


def category(domain: str) -> str:
    return next(name for name, domains in CATEGORIES.items() if domain in domains)


def balance(counts: Iterable[int], buckets: int | None = None) -> float:
    """exp(H)/K in [1/K, 1]; H = -sum p ln p over K buckets (default: as many as there are counts). NaN when all counts are 0."""
    found = [n for n in counts if n > 0]
    k = buckets if buckets is not None else len(found)
    total = sum(found)
    if not total or not k:
        return math.nan
    entropy = -math.fsum(n / total * math.log(n / total) for n in found)
    return math.exp(entropy) / k


def balances(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts and balance per category and per domain. Categories and domains without a generator of their own don't count as buckets."""
    domains = Counter(row["domain"] for row in rows)
    groups = Counter(category(row["domain"]) for row in rows)
    return {
        "category": {"counts": dict(sorted(groups.items())), "balance": balance(groups.values())},
        "domain": {
            "counts": {f"{key} {DOMAINS[key]}": n for key, n in sorted(domains.items())},
            "balance": balance(domains.values()),
        },
    }


def horizon_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A row per category and one in total, with the columns of Tev Table 8: environments, medians of stages, input files and corruptions,
    the number of distinct formats, and the two difficulties, which are None until solvers have run."""
    groups = {name: [row for row in rows if category(row["domain"]) == name] for name in CATEGORIES}
    table = [_horizon(name, found) for name, found in groups.items() if found]
    return [*table, _horizon("total", rows)] if rows else []


def _horizon(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "category": name,
        "environments": len(rows),
        "stages": median(row["stages"] for row in rows),
        "input_files": median(row["input_files"] for row in rows),
        "corruptions": median(len(row["corruptions"]) for row in rows),
        "formats": len({form for row in rows for form in row["formats"]}),
        "base_pass_at_1": None,
        "frontier_pass_at_1": None,
    }


def scale_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Per tier the medians that Tev A.4 gives: input files and kilobytes; and prompt words, nodes and components (A.7)."""
    table = []
    for tier in dict.fromkeys(row["tier"] for row in rows):
        found = [row for row in rows if row["tier"] == tier]
        middle = {key: median(row[key] for row in found) for key in ("input_files", "input_bytes", "prompt_words")}
        counts = {key: median(len(row[key]) for row in found) for key in ("nodes", "components")}
        table.append({"tier": tier, "environments": len(found), **middle, **counts})
    return table
