"""A corpus of latent worlds: coverage of pairs of axes (Tev A.3), gates by generator (Table 7), balance (A.7), overlap (Table 10)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.report.figures import label, new_figure
from workbench.report.published import grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Pair = tuple[tuple[str, str], tuple[str, str]]  # two (axis, value)
Rows = Iterable[Mapping[str, Any]]


def axes_table(values: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Each of the nineteen axes with the number of its values in the corpus, and the values."""
    import pandas as pd

    rows = [{"axis": axis, "values": len(found), "which": ", ".join(found)} for axis, found in values.items()]
    return pd.DataFrame(rows, columns=["axis", "values", "which"])


def pairs_table(valid: Iterable[Pair], uncovered: Iterable[Pair]) -> pd.DataFrame:
    """A row for each two axes: how many valid pairs of their values there are, how many occur in the corpus, their share."""
    import pandas as pd

    every = Counter(_axes(pair) for pair in valid)
    missing = Counter(_axes(pair) for pair in uncovered)
    rows = [
        {"axis": a, "other": b, "valid": n, "covered": n - missing[a, b], "share": (n - missing[a, b]) / n}
        for (a, b), n in every.items()
    ]
    return pd.DataFrame(rows, columns=["axis", "other", "valid", "covered", "share"])


def _axes(pair: Pair) -> tuple[str, str]:
    return pair[0][0], pair[1][0]


def uncovered_table(uncovered: Iterable[Pair]) -> pd.DataFrame:
    """The valid pairs that no environment of the corpus has."""
    import pandas as pd

    rows = [[a[0], a[1], b[0], b[1]] for a, b in uncovered]
    return pd.DataFrame(rows, columns=["axis", "value", "other", "other_value"])


def coverage_figure(table: pd.DataFrame, axes: Sequence[str]) -> tuple[Figure, pd.DataFrame]:
    """The share of covered pairs for each two axes; axes without an observed value (they need rollouts) stay blank."""
    covered, valid = int(table["covered"].sum()), int(table["valid"].sum())
    fig, ax = new_figure(f"Strength-2 coverage: {covered} of {valid} valid pairs", "", "")
    fig.set_size_inches(6.4, 5.6)
    place = {axis: n for n, axis in enumerate(axes)}
    cells = [[math.nan] * len(axes) for _ in axes]
    for row in table.to_dict("records"):
        a, b = sorted((place[row["axis"]], place[row["other"]]))
        cells[b][a] = row["share"]
        ax.text(a, b, str(row["valid"]), ha="center", va="center", fontsize=4.5)
    shown = ax.imshow(cells, vmin=0, vmax=1, cmap="YlGn", aspect="auto")
    fig.colorbar(shown, ax=ax, label="share covered (number: valid pairs)")
    names = [axis.replace("_", " ") for axis in axes]
    ax.set_xticks(range(len(axes)), names, rotation=90, fontsize=6)
    ax.set_yticks(range(len(axes)), names, fontsize=6)
    ax.grid(False)
    return fig, table


def gates_table(
    gates: Sequence[str], generators: Mapping[str, Mapping[str, Any]], environments: Rows, rejected: Rows
) -> pd.DataFrame:
    """A row for each generator and gate: how often it ran, how often it passed. Rows are those of a corpus' journal.

    Gates of a generator run once for it, or once a tier; gates of an environment once for each that was tried. A rejected
    environment whose construction failed was asked nothing else."""
    import pandas as pd

    ran, passed = Counter(), Counter()
    for name, row in generators.items():
        for result in row.get("gates", ()):
            ran[name, result["gate"]] += 1
            passed[name, result["gate"]] += bool(result["passed"])
    for row in [*environments, *rejected]:
        name = row.get("generator") or row["id"].rsplit("-r", 1)[0]
        for gate, good in (row.get("gates") or {"construction": False}).items():
            ran[name, gate] += 1
            passed[name, gate] += bool(good)
    order = {gate: n for n, gate in enumerate([*gates, "construction"])}
    keys = sorted(ran, key=lambda key: (key[0], order.get(key[1], len(order))))
    rows = [{"generator": g, "gate": gate, "passed": passed[g, gate], "of": ran[g, gate]} for g, gate in keys]
    return pd.DataFrame(rows, columns=["generator", "gate", "passed", "of"])


def gates_figure(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Generator by gate: passed/of in each cell."""
    generators, gates = list(dict.fromkeys(table["generator"])), list(dict.fromkeys(table["gate"]))
    fig, ax = new_figure("Qualification gates: passed of run", "", "")
    fig.set_size_inches(6.6, 1.6 + 0.26 * len(generators))
    cells = [[math.nan] * len(gates) for _ in generators]
    for row in table.to_dict("records"):
        y, x = generators.index(row["generator"]), gates.index(row["gate"])
        cells[y][x] = row["passed"] / row["of"]
        ax.text(x, y, f"{row['passed']}/{row['of']}", ha="center", va="center", fontsize=6)
    ax.imshow(cells, vmin=0, vmax=1, cmap="RdYlGn", alpha=0.6, aspect="auto")
    ax.set_xticks(
        range(len(gates)), [gate.replace("_", "\n", 1).replace("_", " ") for gate in gates], fontsize=6, rotation=30
    )
    ax.set_yticks(range(len(generators)), [label(name) for name in generators], fontsize=6.5)
    ax.grid(False)
    return fig, table


def balance_table(balances: Mapping[str, Any]) -> pd.DataFrame:
    """Counts by category and by domain, and exp(H)/K of each. balances: of workbench.worlds.tables.balances."""
    import pandas as pd

    rows = []
    for grouping, found in balances.items():
        rows += [{"by": grouping, "bucket": name, "environments": n} for name, n in found["counts"].items()]
        rows.append({"by": grouping, "bucket": "balance", "balance": found["balance"]})
    return pd.DataFrame(rows, columns=["by", "bucket", "environments", "balance"])


def balance_figure(table: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Environments by domain."""
    part = table[(table["by"] == "domain") & (table["bucket"] != "balance")]
    score = float(table[(table["by"] == "domain") & (table["bucket"] == "balance")]["balance"].iloc[0])
    fig, ax = new_figure(f"By domain: balance {score:.2f}", "environments", "")
    bars = ax.barh([label(name) for name in part["bucket"]], part["environments"].astype(int), color="#0072B2")
    ax.bar_label(bars, fontsize=7)
    ax.invert_yaxis()
    return fig, table


def overlap_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Table 10: ours above the paper's. rows: of workbench.worlds.overlap.overlap_table."""
    import pandas as pd

    columns = {"tasks": "tasks", "hits_13_gram": "13-gram hits", "hits_8_gram": "8-gram hits", "max_token_coverage": "max token coverage",
               "nearest_jaccard_median": "nearest Jaccard median", "nearest_jaccard_max": "nearest Jaccard max"}  # fmt: skip
    ours = []
    for row in rows:
        name = f"calibration | {row['evaluation_set']} vs. itself" if row["calibration"] else row["evaluation_set"]
        cells = {told: row[key] for key, told in columns.items()}
        cells["max token coverage"] = round(100 * row["max_token_coverage"], 1)
        cells |= {k: round(cells[k], 2) for k in ("nearest Jaccard median", "nearest Jaccard max")}
        ours.append({"corpus": "this corpus", "row": name, **cells})
    theirs = grid("tev_table_10")
    return pd.concat([pd.DataFrame(ours), theirs.assign(corpus="Tev-Gym")], ignore_index=True)
