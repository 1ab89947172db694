"""Every table and figure of the two papers that a run can answer: what it needs, the command for it, and how it is drawn.

`draw` draws all of them from run folders and says of each what became of it; nothing is drawn from invented data. A figure with
published values only says so. docs/reproduction.md is made from the same list (workbench.report.paper_figures_page).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.report.figures import HasPaths, Saved, save_figure, save_table
from workbench.report.paper_figures_sources import NoData, Sources

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Status = Literal["ours", "published only", "nothing"]


class Drawn(NamedTuple):
    """figure: None for a table. ours: what our runs say, in a few words; "" when only published values were there."""

    figure: Figure | None
    table: pd.DataFrame
    ours: str = ""


@dataclass(frozen=True)
class Artefact:
    """A table or figure of a paper. name: of its files, and of data/published where its numbers are. cells: (row, column) of the
    published values that the page quotes. draw: raises NoData. why: why a row can't be filled here, "" when it can."""

    name: str
    title: str
    needs: str
    command: str
    draw: Callable[[Sources], Drawn]
    cells: tuple[tuple[str, str], ...] = ()
    why: str = ""

    @property
    def paper(self) -> str:
        return "Tev" if self.name.startswith("tev") else "AutoEnvScaling"

    @property
    def place(self) -> str:
        """ "Figure 7", "Table 3", "Figure 1 middle"."""
        _, kind, number, *part = self.name.split("_")
        return " ".join([{"fig": "Figure", "table": "Table"}[kind], str(int(number)), *part])


@dataclass(frozen=True)
class Result:
    """What became of one. saved: the picture, or the CSV of a table; None when there is nothing. why: then, what is missing."""

    artefact: Artefact
    status: Status
    saved: Saved | Path | None = None
    ours: str = ""
    why: str = ""


def artefacts() -> tuple[Artefact, ...]:
    """All of them: AutoEnvScaling's, then Tev's, each in the paper's order."""
    from workbench.report.paper_figures_autoenvscaling_list import ARTEFACTS as FIRST
    from workbench.report.paper_figures_tev_list import ARTEFACTS as SECOND

    return (*FIRST, *SECOND)


def named(names: Sequence[str]) -> tuple[Artefact, ...]:
    """Some of them, by name; all when none is given. ValueError lists the names."""
    known = {a.name: a for a in artefacts()}
    if wrong := [n for n in names if n not in known]:
        raise ValueError(f"no figure or table {wrong[0]!r}: there are {', '.join(known)}")
    return tuple(known[n] for n in names) if names else tuple(known.values())


def draw(
    run: HasPaths, sources: Sources, wanted: Iterable[Artefact] | None = None, done: Callable[[], object] = lambda: None
) -> list[Result]:
    """Draw what can be drawn into the run's figures/ and tables/. done: called after each, for progress."""
    results = []
    for artefact in artefacts() if wanted is None else wanted:
        results.append(_draw(run, sources, artefact))
        done()
    return results


def _draw(run: HasPaths, sources: Sources, artefact: Artefact) -> Result:
    try:
        drawn = artefact.draw(sources)
    except NoData as missing:
        why = _why(artefact, f"{missing}. Needed: {artefact.needs}; `{artefact.command}`")
        return Result(artefact, "nothing", why=why)
    if drawn.figure is None:
        saved: Saved | Path = save_table(run, artefact.name, drawn.table)
    else:
        saved = save_figure(run, artefact.name, drawn.figure, drawn.table)
    if drawn.ours:
        return Result(artefact, "ours", saved, drawn.ours)
    why = _why(artefact, f"ours needs {artefact.needs}: `{artefact.command}`")
    return Result(artefact, "published only", saved, why=why)


def _why(artefact: Artefact, missing: str) -> str:
    """What is missing now, and what can't be had here at all; without a command only the latter."""
    return artefact.why if artefact.command == "–" else ". ".join(filter(None, (missing, artefact.why)))


def summary(results: Sequence[Result]) -> pd.DataFrame:
    """One row each: name, place, title, status, ours, why. Saved by 90_paper_figures as `summary`, from which the page is made."""
    import pandas as pd

    rows = [
        [r.artefact.name, f"{r.artefact.paper} {r.artefact.place}", r.artefact.title, r.status, r.ours, r.why]
        for r in results
    ]
    return pd.DataFrame(rows, columns=["name", "place", "title", "status", "ours", "why"])


def pictures(results: Sequence[Result]) -> list[Saved]:
    """The figures among them, to be shown."""
    return [r.saved for r in results if isinstance(r.saved, Saved)]


def tables(results: Sequence[Result]) -> dict[str, pd.DataFrame]:
    """{place: table} of those with cells of ours, to be shown: the lines that have one (the CSV has the others too)."""
    import pandas as pd

    found = {}
    for result in results:
        if result.status == "ours" and isinstance(result.saved, Path):
            table = pd.read_csv(result.saved, dtype=str, keep_default_na=False)
            shown = table[table["ours"] != ""] if "ours" in table else table
            found[f"{result.artefact.paper} {result.artefact.place}: {result.artefact.title}"] = shown.reset_index(
                drop=True
            )
    return found
