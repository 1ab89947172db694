"""Writes the tables of data/labels/README.md anew from the episodes, the labels and the classifier as they are now.

For when a label, the codebook or the classifier's rules change: `python scripts/label_tables.py`. Prose is left alone:
read it against the new numbers.
"""

from __future__ import annotations

import math
import re
from typing import Any

from workbench.paths import DATA
from workbench.report import labelled
from workbench.traces.labels import LABELS, Label, current

README = DATA / "labels" / "README.md"
PAIRS = {  # heading of a table by episode and of its confusion: the two sides
    "The independent pass": ("claude-a", "claude-c"),
    "The two passes of one session": ("claude-a", "claude-b"),
    "The classifier": ("resolved", "classifier"),
}
SHORT = [*PAIRS.values(), ("claude-b", "claude-c"), ("resolved", "claude-c")]  # in the summary


def main() -> None:
    found = labelled.load_labelled(DATA / "labels" / "episodes", DATA / "labels" / "labels")
    text = replaced(README.read_text(encoding="utf-8"), "## The episodes", episodes(found))
    text = replaced(text, "## Agreement", summary(found))
    text = replaced(text, "### Where they differ", differences(found))
    for heading, sides in PAIRS.items():
        whole, table = labelled.compare(found, *sides)
        text = replaced(text, f"### {heading}", agreement(table))
        text = replaced(text, f"#### {heading}: confusion", confusion(whole, sides))
    README.write_text(text, encoding="utf-8")
    print(README)


def replaced(text: str, heading: str, table: list[list[str]]) -> str:
    """The text with the first table below a heading replaced. ValueError when there is none."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "|" + "---|" * len(table[0]))
    new, n = re.subn(
        rf"(\n{re.escape(heading)}\n(?:(?!\||#).*\n)*)(?:\|.*\n)+",
        lambda m: m[1] + "\n".join(lines) + "\n",
        text,
        count=1,
    )
    if not n:
        raise ValueError(f"{README}: no table below {heading!r}")
    return new


def episodes(found: labelled.Labelled) -> list[list[str]]:
    counts = labelled.turn_counts(found.turns).set_index("episode")
    numbers = ["turns", "text", "calls", *LABELS]
    rows = [["episode", "role", "started from", "asked to", "outcome", *numbers]]
    for e in found.episodes.to_dict("records"):
        about = [f"`{e['episode']}`", e["role"], f"`{e['case']}`", e["manner"] or "–", f"{e['outcome']}, {e['reward']}"]
        rows.append(about + [str(counts.loc[e["episode"], k]) for k in numbers])
    return rows


def summary(found: labelled.Labelled) -> list[list[str]]:
    rows = [["between", "same label", "share", "κ (95 % interval)"]]
    for sides in SHORT:
        _, table = labelled.compare(found, *sides)
        rows.append([" and ".join(f"`{s}`" for s in sides), *agreement(table.tail(1))[1][1:]])
    return rows


def differences(found: labelled.Labelled) -> list[list[str]]:
    """Every turn on which annotators differ: what each said, what was settled, and why."""
    said = current(found.labels)
    settled: dict[Any, Label] = {label.key: label for label in found.labels if label.adjudicates}
    who = found.annotators()
    rows = [["episode", "step, call", *who, "settled", "why"]]
    for turn in found.turns.to_dict("records"):
        key = turn["trace"], turn["step"], turn["call"]
        votes = [said[key][name].label for name in who]
        if len(set(votes)) > 1:
            where = [f"`{turn['episode']}`", f"{turn['step']}, {turn['call']}"]
            rows.append([*where, *votes, settled[key].label, settled[key].note])
    return rows


def agreement(table: Any) -> list[list[str]]:
    rows = [["episode", "same label", "share", "κ (95 % interval)"]]
    for r in table.to_dict("records"):
        name = r["episode"] if r["episode"] == "all" else f"`{r['episode']}`"
        kappa = f"{number(r['kappa'])} ({number(r['kappa_low'])} to {number(r['kappa_high'])})"
        rows.append([name, f"{r['equal']} of {r['n']}", f"{100 * r['share']:.0f} %", kappa])
    return rows


def confusion(whole: Any, sides: tuple[str, str]) -> list[list[str]]:
    rows = [[f"{sides[0]} \\ {sides[1]}", *LABELS, "found"]]
    for each, counts, shares in zip(LABELS, whole.confusion, whole.per_label(), strict=True):
        rows.append([each, *map(str, counts), f"{100 * shares['recall']:.0f} %"])
    return rows


def number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


if __name__ == "__main__":
    main()
