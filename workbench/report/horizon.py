"""Corpus statistics beside those of Tev-Gym: composition (Table 8), medians (A.7), scale (A.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from workbench.report.figures import label, new_figure
from workbench.report.published import beside

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# published column of Table 8 -> key of a row of workbench.worlds.tables.horizon_table
COMPOSITION = {
    "environments": "environments",
    "stages": "stages",
    "input files": "input_files",
    "corruptions": "corruptions",
    "formats": "formats",
    "base P@1": "base_pass_at_1",
    "frontier P@1": "frontier_pass_at_1",
}
Rows = Sequence[Mapping[str, Any]]


def composition(rows: Rows) -> pd.DataFrame:
    """Table 8, printed and ours, cell by cell. rows: of workbench.worlds.tables.horizon_table.

    Which domain is in which category is our reading, and so is what counts as a format (the end of a file's name)."""
    import pandas as pd

    cells = [
        {"row": row["category"], "column": column, "value": row[key]}
        for row in rows
        for column, key in COMPOSITION.items()
    ]
    return beside("tev_table_08", pd.DataFrame(cells).assign(note=""))


def statistics(rows: Rows, balances: Mapping[str, Any]) -> pd.DataFrame:
    """The numbers of A.7 and A.4, printed and ours. rows: a corpus' environments; balances: of workbench.worlds.tables.balances.

    Ours has no tokenizer, so prompts are counted in words, in a row of their own. What needs a model's rollouts stays empty.
    """
    import pandas as pd

    sizes = [row["input_bytes"] / 1000 for row in rows]
    cells: dict[str, Any] = {
        "balance of categories": round(balances["category"]["balance"], 3),
        "balance of domains": round(balances["domain"]["balance"], 3),
        **_spread("stages", [row["stages"] for row in rows]),
        **_spread("corruptions", [len(row["corruptions"]) for row in rows]),
        "progress nodes median": median(len(row["nodes"]) for row in rows),
        "reward components median": median(len(row["components"]) for row in rows),
        "input files median": median(row["input_files"] for row in rows),
        "input files max": max(row["input_files"] for row in rows),
        "input size median": round(median(sizes), 1),
        "input size max": round(max(sizes), 1),
        "file extensions": len({form for row in rows for form in row["formats"]}),
        "prompt words median": median(row["prompt_words"] for row in rows),
        "generation | CPU time median": round(median(row["seconds"] for row in rows), 2),
    }
    ours = [{"row": "Tev-Gym", "column": name, "value": value} for name, value in cells.items() if "|" not in name]
    ours += _scale(rows)
    for cell in ours:
        cell["note"] = _notes(balances).get(cell["column"], "")
    took = {
        "row": "generation",
        "column": "CPU time median",
        "value": cells["generation | CPU time median"],
        "note": "ours: with all gates and the export",
    }
    return beside("tev_table_08_statistics", pd.DataFrame([*ours, took])).replace({"row": {"Tev-Gym": "corpus"}})


def _notes(balances: Mapping[str, Any]) -> dict[str, str]:
    counted = {"balance of categories": "category", "balance of domains": "domain"}
    return {name: f"ours: K = {len(balances[key]['counts'])}" for name, key in counted.items()}


def _spread(name: str, values: Sequence[int]) -> dict[str, float]:
    return {f"{name} median": median(values), f"{name} min": min(values), f"{name} max": max(values)}


def _scale(rows: Rows) -> list[dict[str, Any]]:
    cells = []
    for tier in dict.fromkeys(row["tier"] for row in rows):
        found = [row for row in rows if row["tier"] == tier]
        files = median(row["input_files"] for row in found)
        size = round(median(row["input_bytes"] for row in found) / 1000, 1)
        cells += [
            {"row": tier, "column": "input files", "value": files},
            {"row": tier, "column": "input size", "value": size},
        ]
    return cells


def scale_figure(rows: Rows) -> tuple[Figure, pd.DataFrame]:
    """Input size against number of input files, one point an environment, by tier; on logarithmic axes (Tev A.4)."""
    import pandas as pd

    keys = ("id", "generator", "tier", "input_files", "input_bytes", "stages")
    table = pd.DataFrame([{key: row[key] for key in keys} for row in rows], columns=list(keys))
    fig, ax = new_figure("Scale", "input files", "input bytes")
    for tier, part in table.groupby("tier", sort=False):
        ax.scatter(part["input_files"], part["input_bytes"], s=16, alpha=0.7, label=f"{label(tier)} ({len(part)})")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.legend(fontsize=8, frameon=False)
    return fig, table
