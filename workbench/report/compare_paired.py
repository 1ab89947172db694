"""Two proposers on the same assignments: discordant pairs, exact sign test, bootstrap interval (AutoEnvScaling Table 13).

The paper counts 38 disagreements in acceptance on 60 assignments, 32 of them for one side, and gives a bootstrap interval and a
sign test for solving. Both are here for any column of design's three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from workbench.report.compare_tables import COLUMNS
from workbench.report.tables import records
from workbench.runs.folder import Run
from workbench.statistics import bootstrap_interval

if TYPE_CHECKING:
    import pandas as pd

NAMES = (
    "first",
    "second",
    "column",
    "pairs",
    "both",
    "only_first",
    "only_second",
    "neither",
    "difference",
    "low",
    "high",
    "p",
)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact sign test: probability of a split at least as uneven, ties left out. 1 without discordant pairs."""
    n, k = wins + losses, min(wins, losses)
    if min(wins, losses) < 0:
        raise ValueError(f"{wins} and {losses} are no counts")
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)


def compare(first: Sequence[bool], second: Sequence[bool], *, draws: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Counts, the paired difference in share (first − second), its percentile bootstrap interval over pairs, and p."""
    if len(first) != len(second):
        raise ValueError(f"pairs are needed: {len(first)} and {len(second)} values")
    pairs = list(zip(map(bool, first), map(bool, second), strict=True))
    wins, losses = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    low, high = bootstrap_interval([float(a) - float(b) for a, b in pairs], draws=draws, seed=seed)
    return {
        "pairs": len(pairs), "both": sum(a and b for a, b in pairs), "only_first": wins, "only_second": losses,
        "neither": sum(not a and not b for a, b in pairs),
        "difference": (wins - losses) / len(pairs) if pairs else math.nan, "low": low, "high": high,
        "p": sign_test(wins, losses),
    }  # fmt: skip


def paired(
    frame: pd.DataFrame, pairs: Iterable[tuple[str, str]], columns: Sequence[str] = ("valid_paper",), *,
    submission: str = "first",
) -> pd.DataFrame:  # fmt: skip
    """One row a pair of entries and column, over the assignments on which both have a verdict. frame: compare_tables.answers."""
    import pandas as pd

    of: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(frame):
        of.setdefault(row["entry"], {})[row["assignment"]] = row
    rows = []
    for first, second in pairs:
        shared = sorted(set(of.get(first, {})) & set(of.get(second, {})))
        for column in columns:
            values = [[of[e][a].get(f"{submission}_{column}") for a in shared] for e in (first, second)]
            if shared and not any(v is None for side in values for v in side):
                rows.append({"first": first, "second": second, "column": column, **compare(*values)})
    return pd.DataFrame(rows, columns=list(NAMES))


def method_pairs(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Within each model: harness against prompt + feedback and prompt, feedback against prompt, optimized against not."""
    by: dict[tuple[str, str], str] = {}
    for row in records(frame[["entry", "model", "method", "self_check", "optimized"]].drop_duplicates()):
        kind = "optimized" if row["optimized"] else row["method"] if row["self_check"] else "unchecked"
        by[row["model"], kind] = row["entry"]
    wanted = [("feedback", "prompt"), ("harness", "prompt"), ("harness", "feedback"), ("optimized", "harness")]
    models = dict.fromkeys(model for model, _ in by)
    return [(by[m, a], by[m, b]) for m in models for a, b in wanted if (m, a) in by and (m, b) in by]


def self_check(frame: pd.DataFrame) -> pd.DataFrame:
    """The harness with and without its self-check on the same assignments, each column by itself (Table 11: `admitted`)."""
    by: dict[str, dict[bool, str]] = {}
    part = frame[(frame["method"] == "harness") & ~frame["optimized"].astype(bool)] if len(frame) else frame
    for row in records(part):
        by.setdefault(row["model"], {})[bool(row["self_check"])] = row["entry"]
    both = [(sides[True], sides[False]) for sides in by.values() if len(sides) == 2]
    table = paired(frame, both, COLUMNS)
    table.insert(0, "with_check", (table["both"] + table["only_first"]) / table["pairs"])
    table.insert(0, "without_check", (table["both"] + table["only_second"]) / table["pairs"])
    return table


def optimizations(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """What each harness optimization changed, and validity before and after on the same assignments."""
    import pandas as pd

    rows = []
    for row in run.rows("optimization"):
        found = records(paired(frame, [(row["id"], row["entry"])]))
        more = {k: found[0][k] for k in ("pairs", "difference", "low", "high", "p")} if found else {}
        turns = {e: frame[frame["entry"] == e]["first_turns"].mean() for e in (row["entry"], row["id"])}
        rows.append({"entry": row["entry"], "from_version": row["started"], "to_version": row["version"],
                     "changed": ", ".join(row["changed"]), "fixed_unchanged": row["fixed"], **more,
                     "turns_before": turns[row["entry"]], "turns_after": turns[row["id"]]})  # fmt: skip
    names = ["entry", "from_version", "to_version", "changed", "fixed_unchanged", "pairs", "difference", "low", "high", "p",
             "turns_before", "turns_after"]  # fmt: skip
    return pd.DataFrame(rows, columns=names)
