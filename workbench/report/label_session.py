"""Labelling without a screen: what one annotator says of turns, its undo, and the queues in which turns are visited.

Every change is a record in the journal before it counts, so that a process may die at any moment and lose nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from workbench.traces.classify import classify
from workbench.traces.labels import Key, Label, LabelError, LabelJournal, current, read_labels
from workbench.traces.turns import TurnView

LABELLING = ("all", "unlabelled", "unsure", "disagreements")
ADJUDICATION = ("disputed", "all")
# Okabe and Ito's palette: told apart by all common kinds of colour vision, on light and on dark.
COLOURS = {"read": "#0072B2", "build": "#E69F00", "write": "#009E73", "test": "#CC79A7"}


class Said(NamedTuple):
    """What is said of a turn; NOTHING when nothing is. saw_guess: the label was given in sight of the classifier's."""

    label: str = ""
    note: str = ""
    unsure: bool = False
    saw_guess: bool = False


NOTHING = Said()


class Codebook(NamedTuple):
    """What the labels mean. version: goes into every record."""

    version: str = ""
    text: str = ""

    @classmethod
    def read(cls, path: Path | str) -> Codebook:
        """A text file. Its version: a line `version: …` when it has one, else a digest of the text."""
        text = Path(path).read_text(encoding="utf-8")
        stated = re.search(r"^\W*version\W+(\w[\w.-]*)", text, re.I | re.M)
        return cls(stated[1] if stated else f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:12]}", text)


@dataclass(frozen=True)
class Action:
    """One thing that can be undone. A skip changes nothing, and undoing it goes back to the turn."""

    index: int
    before: Said
    after: Said


class LabelSession:
    """The labels that `annotator` gives to `turns`.

    turns: whole traces one after the other (all turns of a trace together, in order). journal: a *.jsonl file, or a folder
    in which every annotator has a file. adjudicate: decide where others differ instead of labelling. only: keys of the
    turns to visit, when not all are. Raises LabelError when the journal holds something else, or a turn comes twice.
    """

    def __init__(
        self, turns: Iterable[TurnView], journal: Path | str, annotator: str, *, codebook: str = "",
        adjudicate: bool = False, only: Collection[Key] | None = None,
    ):  # fmt: skip
        self.turns, self.annotator = list(turns), annotator
        self.codebook, self.adjudicate = codebook, adjudicate
        self._place = {turn.key: i for i, turn in enumerate(self.turns)}
        if not self.turns or len(self._place) < len(self.turns):
            raise LabelError("there is no turn to label" if not self.turns else "the same trace was given twice")
        self._visited = [i for i, t in enumerate(self.turns) if only is None or t.key in only]
        if not annotator.strip():
            raise LabelError("say who labels: annotator must not be empty")
        if not self._visited:
            raise LabelError("`only` names no turn of these traces")
        self._spans = list(_spans(self.turns))
        self.folder = Path(journal)
        self.journal = LabelJournal(journal_file(self.folder, annotator))
        self._last: dict[int, Label] = {}
        self._history: list[Action] = []
        self._undone: list[Action] = []
        for label in self.journal.read():
            if label.annotator == annotator and label.adjudicates == adjudicate and label.key in self._place:
                self._replay(self._place[label.key], label)
        self.refresh()

    def refresh(self) -> None:
        """Read what the other annotators have said meanwhile: a judge has to see it, who labels must not."""
        self._votes: dict[int, dict[str, Label]] = {}
        if not self.adjudicate:
            return
        source = self.journal.path.parent if self.journal.path != self.folder else self.folder
        self._votes = {self._place[k]: v for k, v in current(read_labels(source)).items() if k in self._place}

    # ---- what is said

    def said(self, index: int) -> Said:
        last = self._last.get(index)
        return _said(last) if last else NOTHING

    def say(self, index: int, said: Said, *, seconds: float | None = None, saw_guess: bool = False) -> None:
        """Write it down. Saying the same again writes nothing. Raises LabelError, and OSError when the disk does not take it."""
        before = self.said(index)
        said = said._replace(saw_guess=before.saw_guess if said.label == before.label else saw_guess)
        if said != before:
            self._write(index, said, seconds)
            self._history.append(Action(index, before, said))
            self._undone.clear()

    def skip(self, index: int) -> None:
        self._history.append(Action(index, self.said(index), self.said(index)))
        self._undone.clear()

    def undo(self) -> int | None:
        """Take the last action back; returns its turn, None when there is none. Goes back as far as the journal does."""
        return self._move(self._history, self._undone, lambda action: action.before)

    def redo(self) -> int | None:
        return self._move(self._undone, self._history, lambda action: action.after)

    def _move(self, source: list[Action], target: list[Action], wanted: Callable[[Action], Said]) -> int | None:
        if not source:
            return None
        action = source[-1]
        if self.said(action.index) != wanted(action):
            self._write(action.index, wanted(action))
        target.append(source.pop())
        return action.index

    def _write(self, index: int, said: Said, seconds: float | None = None) -> None:
        turn, last = self.turns[index], self._last.get(index)
        label = Label(
            turn.trace, turn.step, turn.call, said.label, self.annotator, self.codebook, note=said.note,
            unsure=said.unsure, saw_guess=said.saw_guess, supersedes=last.id if last else "",
            adjudicates=self.adjudicate, seconds=seconds,
        )  # fmt: skip
        self._last[index] = self.journal.add(label)

    def _replay(self, index: int, label: Label) -> None:
        """A record of an earlier session. One that restores what the last action changed was its undoing."""
        before, self._last[index] = self.said(index), label
        top = self._history[-1] if self._history else None
        if top and top.index == index and (top.before, top.after) == (self.said(index), before):
            self._history.pop()
        else:
            self._history.append(Action(index, before, self.said(index)))

    # ---- where to go

    @property
    def first(self) -> int:
        """Where to go on: the first turn without a label after the last one that was touched."""
        todo = self.queue("disputed" if self.adjudicate else "all")
        open_turns = [i for i in todo if not self.said(i).label]
        touched = self._history[-1].index if self._history else -1
        return next((i for i in open_turns if i > touched), (open_turns or todo or self._visited)[0])

    def queue(self, name: str) -> list[int]:
        """The turns of a queue, in order."""
        if name not in self.queues:
            raise LabelError(f"queue {name!r}: use one of {', '.join(self.queues)}")
        keep = {
            "all": lambda i: True,
            "unlabelled": lambda i: not self.said(i).label,
            "unsure": lambda i: self.said(i).unsure,
            "disagreements": lambda i: bool(self.said(i).label) and self.said(i).label != self.guesses[i],
            "disputed": lambda i: len({label.label for label in self.votes(i).values()}) > 1,
        }[name]
        return [i for i in self._visited if keep(i)]

    @property
    def queues(self) -> tuple[str, ...]:
        return ADJUDICATION if self.adjudicate else LABELLING

    @cached_property
    def guesses(self) -> list[str]:
        """The classifier's label of every turn; computed when first asked for."""
        return [guess for start, end in self._spans for guess in classify(self.turns[start:end])]

    def votes(self, index: int) -> dict[str, Label]:
        """What each annotator said of the turn, adjudications aside."""
        return self._votes.get(index, {})

    def span(self, index: int) -> tuple[int, int]:
        """[start, end) of the trace that the turn is in."""
        return next(span for span in self._spans if span[0] <= index < span[1])

    # ---- what comes out

    def labels(self) -> list[Label]:
        """The annotator's labels that hold now, in order of the turns."""
        return [self._last[i] for i in sorted(self._last) if self._last[i].label]

    def counts(self) -> dict[str, int]:
        """labelled and unsure, of `total` turns to visit."""
        said = [self.said(i) for i in (self.queue("disputed") if self.adjudicate else self._visited)]
        return {
            "labelled": sum(bool(s.label) for s in said),
            "unsure": sum(s.unsure for s in said),
            "total": len(said),
        }


def _said(label: Label) -> Said:
    return Said(label.label, label.note, label.unsure, label.saw_guess)


def journal_file(journal: Path, annotator: str) -> Path:
    """The file that an annotator writes: the journal itself, or NAME.jsonl in it when it is a folder."""
    if journal.suffix == ".jsonl" and not journal.is_dir():
        return journal
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", annotator).strip("-.")
    if not name:
        raise LabelError(f"annotator {annotator!r} gives no file name: use letters or digits")
    return journal / f"{name}.jsonl"


def _spans(turns: Sequence[TurnView]) -> Iterable[tuple[int, int]]:
    start, seen = 0, set()
    for trace, group in groupby(turns, key=lambda turn: turn.trace):
        if trace in seen:
            raise LabelError(f"turns of trace {trace[:12]} do not stand together")
        seen.add(trace)
        end = start + sum(1 for _ in group)
        yield start, end
        start = end
