"""What the labelling widget shows, as plain text and numbers: the turn, a few around it, and how far the work is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.report.label_session import COLOURS, Codebook, LabelSession
from workbench.report.turn_text import FOLDED, GLANCE, OPEN, blocks, fold, head, instruction, one_line, title
from workbench.report.widget import visible
from workbench.traces.labels import LABELS
from workbench.traces.trace import Trace

KEYS = {label[0]: label for label in LABELS}
BEFORE, AFTER = 4, 2  # turns of context


class LabelPicture:
    """traces: by digest, where the turns come from traces. names: of their files, by digest."""

    def __init__(self, session: LabelSession, traces: Mapping[str, Trace], names: Mapping[str, str]):
        self.session, self._traces = session, traces
        self._titles = {digest: title(trace, names.get(digest, "")) for digest, trace in traces.items()}

    def fixed(self, codebook: Codebook) -> dict[str, Any]:
        """What does not change while the widget lives."""
        return {
            "keys": [[key, label, COLOURS[label]] for key, label in KEYS.items()],
            "queues": list(self.session.queues),
            "annotator": visible(self.session.annotator),
            "adjudicate": self.session.adjudicate,
            "version": visible(codebook.version),
            "codebook": visible(codebook.text),
        }

    def view(self, index: int, queue: str, expanded: bool, guess: bool) -> dict[str, Any]:
        """guess: show the classifier's label. marks: of all turns of the trace, "." where there is none."""
        session = self.session
        start, end = session.span(index)
        said, places = session.said(index), session.queue(queue)
        return {
            "index": index,
            "start": start,
            "title": self._titles.get(session.turns[index].trace) or session.turns[index].trace[:12],
            "place": f"turn {index - start + 1} of {end - start}",
            "task": self._task(index, expanded),
            "counts": session.counts(),
            "queue": queue,
            "queued": [places.index(index) + 1 if index in places else 0, len(places)],
            "marks": "".join(session.said(i).label[:1] or "." for i in range(start, end)),
            "turn": self._turn(index, OPEN if expanded else FOLDED),
            "expanded": expanded,
            "note": visible(said.note),
            "unsure": said.unsure,
            "guess": session.guesses[index] if guess else "",
            "votes": self._votes(index) if session.adjudicate else [],
            "before": [self._turn(i, GLANCE) for i in range(max(start, index - BEFORE), index)],
            "after": [self._turn(i, GLANCE) for i in range(index + 1, min(end, index + 1 + AFTER))],
        }

    def number(self, index: int) -> int:
        """Of the turn in its trace, from 1."""
        return index - self.session.span(index)[0] + 1

    def row(self, index: int) -> dict[str, Any]:
        """The turn in a table."""
        turn, said = self.session.turns[index], self.session.said(index)
        label = f"{said.label} (unsure)" if said.unsure and said.label else said.label
        kind = turn.tool or turn.kind
        row = {"trace": turn.trace[:8], "turn": self.number(index), "kind": kind, "what": one_line(turn)}
        return {**row, "label": label, "note": said.note}

    def _turn(self, index: int, most: tuple[int, int]) -> dict[str, Any]:
        turn, said = self.session.turns[index], self.session.said(index)
        return {
            "index": index,
            "head": f"{self.number(index)} · {head(turn)}",
            "blocks": blocks(turn, most),
            "label": said.label,
            "unsure": said.unsure,
            "failed": bool(turn.error),
        }

    def _task(self, index: int, expanded: bool) -> str:
        trace = self._traces.get(self.session.turns[index].trace)
        return fold(instruction(trace), OPEN if expanded else (40, 4_000))["text"] if trace else ""

    def _votes(self, index: int) -> list[list[str]]:
        found = sorted(self.session.votes(index).items())
        return [[visible(name), v.label, visible(v.note), "unsure" if v.unsure else ""] for name, v in found]
