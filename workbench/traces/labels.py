"""Labels of turns: read, build, write or test, given by hand, in an append-only journal that is flushed at every label.

A journal is JSONL, one label a line. Nothing in it is ever changed: a new label supersedes the old one, an undone one is
superseded by a record without a label. Journals of several people are read together, in any order.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

LABELS = ("read", "build", "write", "test")
Key = tuple[str, int, int]  # digest of the trace, step, call: see workbench.traces.turns.TurnView


class LabelError(ValueError):
    """A label or a journal is not what it should be; the message says where and why."""


@dataclass(frozen=True)
class Label:
    """One decision. trace, step, call: the turn. label: one of LABELS, or "" to take an earlier one back. annotator: who
    or what decided; never a person who did not. codebook: its version. time: seconds since 1970. supersedes: id of the
    record that this one replaces. unsure: the annotator's doubt. adjudicates: settles a dispute between others. saw_guess:
    the classifier's guess was on the screen, so this is no blind judgement. seconds: the turn was looked at."""

    trace: str
    step: int
    call: int
    label: str
    annotator: str
    codebook: str = ""
    time: float = field(default_factory=time.time)
    supersedes: str = ""
    note: str = ""
    unsure: bool = False
    adjudicates: bool = False
    seconds: float | None = None
    saw_guess: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])

    def __post_init__(self) -> None:
        if self.label and self.label not in LABELS:
            raise LabelError(f"label {self.label!r}: use one of {', '.join(LABELS)}, or '' to take one back")
        if not self.annotator or not self.trace:
            raise LabelError("a label needs an annotator and the digest of its trace")
        if self.step < 1 or self.call < 0:
            raise LabelError(f"step {self.step}, call {self.call}: steps count from 1, calls from 0 (the text)")

    @property
    def key(self) -> Key:
        return self.trace, self.step, self.call

    def to_row(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Label:
        """Fields that this version does not know are left out. Raises LabelError."""
        known = {f.name for f in fields(cls)}
        try:
            return cls(**{k: v for k, v in row.items() if k in known})
        except TypeError as error:
            raise LabelError(f"not a label: {error}") from error


class LabelJournal:
    """Appends labels to a file. Each is one write(2), and on the disk before `add` returns: a killed kernel loses none,
    and several processes may append at once."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def add(self, label: Label) -> Label:
        line = (json.dumps(label.to_row(), ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
        if self._torn():
            line = b"\n" + line
        while line:  # a full disk or a signal may cut a write short
            line = line[os.write(self._fd, line) :]
        os.fsync(self._fd)
        return label

    def read(self) -> list[Label]:
        return read_labels(self.path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _torn(self) -> bool:
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"


def read_labels(path: Path) -> list[Label]:
    """Every label of a journal, in order. Lines that a kill cut short are passed over. A folder: all its *.jsonl.
    Raises LabelError, with the line, for what is JSON and no label; FileNotFoundError."""
    if path.is_dir():
        return [label for file in sorted(path.glob("*.jsonl")) for label in read_labels(file)]
    labels = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line) if line.strip() else None
            except ValueError:
                continue  # no proper prefix of an object is an object: it was cut
            if row is None:
                continue
            try:
                if not isinstance(row, dict):
                    raise LabelError("not an object")
                labels.append(Label.from_row(row))
            except LabelError as error:
                raise LabelError(f"{path}:{number}: {error}") from error
    return labels


def current(labels: Iterable[Label]) -> dict[Key, dict[str, Label]]:
    """For each turn the label of each annotator that holds now: {key: {annotator: label}}. What was superseded or taken
    back is left out; of two that nothing supersedes the later one holds. Adjudications are not among them."""
    return _holding(label for label in labels if not label.adjudicates)


def _holding(labels: Iterable[Label]) -> dict[Key, dict[str, Label]]:
    labels = list(labels)
    gone = {label.supersedes for label in labels if label.supersedes}
    found: dict[Key, dict[str, Label]] = {}
    for label in sorted(labels, key=lambda label: label.time):  # stable: of one time, the later line
        if label.id not in gone:
            found.setdefault(label.key, {})[label.annotator] = label
    kept = {key: {a: x for a, x in votes.items() if x.label} for key, votes in found.items()}
    return {key: votes for key, votes in kept.items() if votes}


@dataclass(frozen=True)
class Resolved:
    """The label of a turn from all that was said. label: "" when it is disputed."""

    label: str
    status: Literal["single", "agreed", "disputed", "adjudicated"]
    votes: dict[str, str]


def resolve(labels: Iterable[Label]) -> dict[Key, Resolved]:
    """One label a turn: the adjudicated one, else the one that all annotators share."""
    labels = list(labels)
    votes = current(labels)
    settled = _holding(label for label in labels if label.adjudicates)
    return {key: _resolved(votes.get(key, {}), settled.get(key, {})) for key in {**votes, **settled}}


def _resolved(votes: dict[str, Label], settled: dict[str, Label]) -> Resolved:
    said = {annotator: label.label for annotator, label in votes.items()}
    if settled:
        last = max(settled.values(), key=lambda label: label.time)
        return Resolved(last.label, "adjudicated", said)
    if len(set(said.values())) > 1:
        return Resolved("", "disputed", said)
    return Resolved(next(iter(said.values())), "single" if len(said) == 1 else "agreed", said)


def by_annotator(labels: Iterable[Label]) -> dict[str, dict[Key, str]]:
    """{annotator: {key: label}} of the labels that hold now."""
    found: dict[str, dict[Key, str]] = {}
    for key, votes in current(labels).items():
        for annotator, label in votes.items():
            found.setdefault(annotator, {})[key] = label.label
    return found


def to_csv(labels: Iterable[Label]) -> str:
    """The records as CSV, one row each, in order."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(Label)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(label.to_row() for label in labels)
    return out.getvalue()
