"""The table of docs/reproduction.md, made from the list of figures, the published numbers and the runs in results/published.

`python scripts/make_reproduction.py` writes it; a test checks that it is current.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from workbench import paths
from workbench.report import published
from workbench.report.paper_figures import Artefact, artefacts

BEGIN = "<!-- made by scripts/make_reproduction.py: do not edit below -->"
END = "<!-- end of what is made -->"
HEAD = (
    "figure, table",
    "shows",
    "needs",
    "command",
    "published",
    "ours (micro)",
    "ours (other profiles)",
    "why not filled here",
)
_MOST = 220  # characters of a cell
_PLAIN = ("fraction", "reward", "correlation", "score", "total variation")  # units that go without saying


def table(results: Path | None = None) -> str:
    """The Markdown table. results: the folder whose `published/` holds summaries of 90_paper_figures; the checkout's by default."""
    ours = summaries(results or paths.results())
    lines = [_row(HEAD), _row(["---"] * len(HEAD))]
    for artefact in artefacts():
        told = {profile: found[artefact.name] for profile, found in ours.items() if artefact.name in found}
        lines.append(_row(_cells(artefact, told)))
    return "\n".join(lines)


def page(text: str, results: Path | None = None) -> str:
    """The page with its table made anew. ValueError when it lacks the two marks."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r} to write between")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return f"{before}\n\n{table(results)}\n\n{after}"


def summaries(results: Path) -> dict[str, dict[str, str]]:
    """{profile: {name: what our runs say}} of the runs of 90_paper_figures in results/published; "" where they say nothing."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(results.glob("published/*/tables/summary.csv")):
        params = json.loads((path.parent.parent / "params.json").read_text(encoding="utf-8"))
        if params["notebook"] == "90_paper_figures":
            with path.open(encoding="utf-8", newline="") as file:
                rows = {row["name"]: row["ours"] for row in csv.DictReader(file)}
            found.setdefault(str(params["parameters"].get("profile", "")), {}).update(rows)
    return found


def quoted(artefact: Artefact) -> Iterator[str]:
    """The published values that the page quotes: "row, column: value unit"."""
    for row, column in artefact.cells:
        cells = published.load(artefact.name)
        cell = cells[(cells["row"] == row) & (cells["column"] == column)].iloc[0]
        unit = "" if cell["unit"] in _PLAIN or cell["unit"] in column else cell["unit"]
        value = f"{cell['value']} {unit}".strip() if cell["value"] else "not in the text"
        yield f"{row if column == 'value' else f'{row}, {column}'}: {value}"


def _cells(artefact: Artefact, told: dict[str, str]) -> list[str]:
    link = f"{artefact.paper} {artefact.place}"
    larger = "; ".join(
        f"{profile}: {text}" for profile, text in told.items() if profile not in ("micro", "smoke") and text
    )
    command = artefact.command if artefact.command == "–" else f"`{artefact.command}`"
    said = "; ".join(quoted(artefact)) or "–"
    return [
        link,
        artefact.title,
        artefact.needs,
        command,
        said,
        _short(told.get("micro", "")),
        _short(larger),
        artefact.why,
    ]


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"
