"""Numbers that the papers print, from `data/published`, and a run's own beside them. An empty value was not in the text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.paths import DATA

if TYPE_CHECKING:
    import pandas as pd

FOLDER = DATA / "published"
COLUMNS = ("source", "place", "row", "column", "value", "unit", "note")


def names(folder: Path = FOLDER) -> list[str]:
    """Every published table and figure, say "tev_table_05"."""
    return sorted(path.stem for path in folder.glob("*.csv"))


def load(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """One table or figure: columns COLUMNS, all text ("" where the text of the paper gives none), and `number`: the value as
    a float, NaN when it is empty or words. Raises ValueError when there is no such file or it has other columns."""
    return _load(name, folder).copy()


@cache
def _load(name: str, folder: Path) -> pd.DataFrame:
    import pandas as pd

    path = folder / f"{name}.csv"
    if not path.is_file():
        raise ValueError(f"no published table {name!r} in {folder}: there are {', '.join(names(folder)) or 'none'}")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if tuple(table.columns) != COLUMNS:
        raise ValueError(f"{path}: its columns are {', '.join(table.columns)}, not {', '.join(COLUMNS)}")
    return table.assign(number=pd.to_numeric(table["value"], errors="coerce"))


def value(name: str, row: str, column: str) -> float:
    """One number; NaN when the text gives none. Raises ValueError when the table has no such cell."""
    table = load(name)
    found = table[(table["row"] == row) & (table["column"] == column)]
    if found.empty:
        raise ValueError(f"{name} has no cell {row!r}, {column!r}")
    return float(found["number"].iloc[0])


def grid(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """The table as it is printed: a line for each `row`, a column for each `column`, values as text, in the file's order."""
    table = load(name, folder)
    wide = table.pivot(index="row", columns="column", values="value").fillna("")
    wide = wide.reindex(index=list(dict.fromkeys(table["row"])), columns=list(dict.fromkeys(table["column"])))
    return wide.rename_axis(columns=None).reset_index()


def beside(name: str, ours: pd.DataFrame, folder: Path = FOLDER) -> pd.DataFrame:
    """Published values and ours in one table: columns row, column, unit, published, ours, note.

    ours: columns row, column, value, with the published names where a cell has a counterpart; other cells follow below the
    published ones. Ours is "" where the run has none. When `ours` has a column `note` it is added to the published one.
    """
    import pandas as pd

    printed = load(name, folder)[["row", "column", "unit", "value", "note"]].rename(columns={"value": "published"})
    mine = pd.DataFrame(ours, columns=["row", "column", "value", "note"]).rename(
        columns={"value": "ours", "note": "told"}
    )
    table = printed.merge(mine, on=["row", "column"], how="outer", sort=False)
    order = {key: i for i, key in enumerate(zip(printed["row"], printed["column"], strict=True))}
    place = [order.get(key, len(order)) for key in zip(table["row"], table["column"], strict=True)]
    table = table.iloc[sorted(range(len(table)), key=place.__getitem__)].reset_index(drop=True)
    for column in ("unit", "published", "note", "told"):
        table[column] = table[column].fillna("")
    table["ours"] = ["" if pd.isna(v) else v for v in table["ours"]]
    table["note"] = ["; ".join(t for t in pair if t) for pair in zip(table["note"], table["told"], strict=True)]
    return table[["row", "column", "unit", "published", "ours", "note"]]
