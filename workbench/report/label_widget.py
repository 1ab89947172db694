"""Label turns by hand: one key a label, nothing lost, the classifier's guess out of sight.

Python holds everything; the front end draws `view` and sends one small message a key. What it shows as labelled is on
the disk already. Without a front end this is a table, and every action is a method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import traitlets

from workbench.report.label_export import write_atif_folder, write_csv, write_jsonl
from workbench.report.label_picture import KEYS, LabelPicture
from workbench.report.label_session import Codebook, LabelSession, Said
from workbench.report.widget import STATIC, View, esc, html_table, visible
from workbench.runs.progress import progress
from workbench.traces.labels import LABELS, Key, Label, LabelError
from workbench.traces.trace import Trace
from workbench.traces.turns import TurnView, turns

STATIC_ROWS = 200


class LabelWidget(View):
    """Shows one turn with its context and takes labels for it.

    index: the turn on the screen, a position in `session.turns`; set it to go somewhere. queue: which turns are visited,
    one of `session.queues`. blind: the classifier's guess is hidden, except in the queue of disagreements. expanded: the
    turn is shown unfolded. view: all that the front end draws; only the turn on the screen and a few around it are sent.
    """

    _esm = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in ("label_parts.js", "label_widget.js"))
    _css = STATIC / "label_widget.css"
    index = traitlets.Int(0).tag(sync=True)
    queue = traitlets.Unicode("all").tag(sync=True)
    blind = traitlets.Bool(True).tag(sync=True)
    expanded = traitlets.Bool(False).tag(sync=True)
    fixed = traitlets.Dict().tag(sync=True)  # keys, queues, annotator, codebook: does not change
    view = traitlets.Dict().tag(sync=True)

    def __init__(
        self, source: Iterable[TurnView] | Iterable[Trace] | Trace, journal: Path | str, annotator: str, *,
        codebook: Codebook | Path | str = Codebook(), adjudicate: bool = False, blind: bool = True,
        only: Collection[Key] | None = None, names: Mapping[str, str] | None = None,
    ):  # fmt: skip
        """source: traces, or turns of whole traces. codebook: its file. names: of traces, by digest. Others: LabelSession."""
        self.traces, found = _turns_of(source)
        self.codebook = codebook if isinstance(codebook, Codebook) else Codebook.read(codebook)
        self.session = LabelSession(
            found, journal, annotator, codebook=self.codebook.version, adjudicate=adjudicate, only=only
        )
        self.picture = LabelPicture(self.session, self.traces, names or {})
        self._since, self._status, self._token, self._busy = time.monotonic(), "", "", True
        fixed = self.picture.fixed(self.codebook)
        super().__init__(index=self.session.first, queue=self.session.queues[0], blind=blind, fixed=fixed)
        self.on_msg(lambda _widget, content, _buffers: self.handle(content))
        self._busy = False
        self._show()

    @classmethod
    def of_files(cls, paths: Iterable[Path | str], journal: Path | str, annotator: str, **more: Any) -> LabelWidget:
        """From trace files of any known format. Raises TraceError."""
        from workbench.traces.reading import read_trace

        paths = [Path(p) for p in paths]
        found = [read_trace(p) for p in progress(paths, "read traces")]
        names = {next((t.trace for t in turns(trace)), ""): p.name for p, trace in zip(paths, found, strict=True)}
        return cls(found, journal, annotator, names=names, **more)

    # ---- what a person does

    def label(self, key: str, index: int | None = None) -> None:
        """Give the turn a label (its name or its key) and go on to the next one."""
        label = KEYS.get(key, key)
        if label not in LABELS:
            raise LabelError(f"label {key!r}: use one of {', '.join(LABELS)}, or {', '.join(KEYS)}")
        index = self.index if index is None else self._checked(index)
        self._say(index, self.session.said(index)._replace(label=label))
        self._status = f"turn {self.picture.number(index)}: {label}, saved"
        self._go(self._next(index))

    def clear(self) -> None:
        """Take the label of the turn back, and its note and doubt with it."""
        self._say(self.index, Said())
        self._status = f"turn {self.picture.number(self.index)}: no label"
        self._show()

    def unsure(self) -> None:
        """Say that the label is (or will be) a doubtful one, or that it is not."""
        said = self.session.said(self.index)
        self._say(self.index, said._replace(unsure=not said.unsure))
        self._status = f"turn {self.picture.number(self.index)}: {'sure' if said.unsure else 'unsure'}"
        self._show()

    def note(self, text: str) -> None:
        """Write a note to the turn; "" takes it away."""
        self._say(self.index, self.session.said(self.index)._replace(note=text.strip()))
        self._status = f"turn {self.picture.number(self.index)}: note saved"
        self._show()

    def skip(self) -> None:
        """Leave the turn as it is and go on."""
        self.session.skip(self.index)
        self._status = f"turn {self.picture.number(self.index)}: skipped"
        self._go(self._next(self.index))

    def undo(self) -> None:
        """Take the last label, note, doubt or skip back and go to its turn. No limit, also over earlier sessions."""
        self._back("undone", self.session.undo())

    def redo(self) -> None:
        """Do again what was undone."""
        self._back("done again", self.session.redo())

    def step(self, by: int) -> None:
        """`by` turns on (or back) in the queue."""
        self._status = ""
        for _ in range(min(abs(by), len(self.session.turns))):
            following = self._next(self.index, 1 if by > 0 else -1)
            if following == self.index:
                break
            self.index = following
        self._show()

    def next_unlabelled(self, by: int = 1) -> None:
        """The nearest turn without a label, going round at the end."""
        todo = [i for i in self.session.queue("all") if not self.session.said(i).label]
        self._status = "" if todo else "every turn has a label"
        ahead = [i for i in todo if (i - self.index) * by > 0]
        ends = ahead or todo or [self.index]
        self._go(ends[0] if by > 0 else ends[-1])

    def end(self, last: bool) -> None:
        """The first or the last turn of the queue."""
        places = self.session.queue(self.queue) or [self.index]
        self._go(places[-1 if last else 0])

    # ---- what comes out

    def labels(self) -> list[Label]:
        """This annotator's labels that hold now."""
        return self.session.labels()

    def export_jsonl(self, path: Path | str) -> Path:
        """The labels that hold now, one a line. (The journal has every change.)"""
        return write_jsonl(path, self.labels())

    def export_csv(self, path: Path | str) -> Path:
        """The same as a table."""
        return write_csv(path, self.labels())

    def export_atif(self, folder: Path | str) -> list[Path]:
        """Every trace as ATIF with the labels in each step's `extra`, one file a trace. Needs traces, not bare turns."""
        return write_atif_folder(folder, self.traces, self.labels())

    # ---- messages of the front end

    def handle(self, message: Mapping[str, Any]) -> None:
        """One message: {"do": name, "token": echoed in `view`, …}. What fails is told in the status line."""
        self._token, self._busy = str(message.get("token", ""))[:40], True
        with self.hold_sync():
            try:
                self._verbs[message["do"]](self, message)
            except (LabelError, OSError) as error:
                self._status = f"not saved: {error}"
            except (KeyError, TypeError, ValueError, traitlets.TraitError) as error:
                self._status = f"not understood: {error!r}"
            finally:
                self._busy = False
            self._show()

    def _about(self, message: Mapping[str, Any]) -> LabelWidget:
        """At the turn that the message is about: the one that was on the screen."""
        self.index = self._checked(message["index"])
        return self

    _verbs: Mapping[str, Callable[[LabelWidget, Mapping[str, Any]], object]] = {
        "label": lambda self, m: self.label(m["label"], m["index"]),
        "clear": lambda self, m: self._about(m).clear(),
        "unsure": lambda self, m: self._about(m).unsure(),
        "note": lambda self, m: self._about(m).note(str(m["text"])[:10_000]),
        "skip": lambda self, m: self._about(m).skip(),
        "go": lambda self, m: self._about(m),
        "undo": lambda self, m: self.undo(),
        "redo": lambda self, m: self.redo(),
        "step": lambda self, m: self.step(int(m["by"])),
        "unlabelled": lambda self, m: self.next_unlabelled(int(m["by"])),
        "end": lambda self, m: self.end(bool(m["last"])),
        "expand": lambda self, m: self.set_trait("expanded", not self.expanded),
        "queue": lambda self, m: self.set_trait("queue", m["queue"]),
    }

    # ---- state

    @traitlets.validate("index")
    def _valid_index(self, proposal: Any) -> int:
        return self._checked(proposal["value"])

    @traitlets.validate("queue")
    def _valid_queue(self, proposal: Any) -> str:
        if proposal["value"] not in self.session.queues:
            raise traitlets.TraitError(f"queue {proposal['value']!r}: use one of {', '.join(self.session.queues)}")
        return proposal["value"]

    @traitlets.observe("index")
    def _moved(self, _: Any) -> None:
        self._since, self.expanded = time.monotonic(), False
        self._show()

    @traitlets.observe("queue")
    def _queued(self, _: Any) -> None:
        self.session.refresh()
        places = self.session.queue(self.queue)
        self._status = "" if places else f"nothing in the queue {self.queue!r}"
        if places and self.index not in places:
            self.index = next((i for i in places if i > self.index), places[0])
        self._show()

    @traitlets.observe("blind", "expanded")
    def _looked(self, _: Any) -> None:
        self._show()

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self.session.turns):
            raise traitlets.TraitError(f"index {index}: there are {len(self.session.turns)} turns, from 0")
        return index

    def _say(self, index: int, said: Said) -> None:
        seconds = round(time.monotonic() - self._since, 3)
        self.session.say(index, said, seconds=seconds, saw_guess=self._guess_shown)

    def _back(self, what: str, index: int | None) -> None:
        if index is None:
            self._status = f"nothing to be {what}"
        else:
            self._status = f"turn {self.picture.number(index)}: {what}"
            self.index = index
        self._show()

    def _next(self, index: int, by: int = 1) -> int:
        following = self._following(index, by)
        if following == index:
            self._status = " · ".join(filter(None, [self._status, f"the {'last' if by > 0 else 'first'} turn"]))
        return following

    def _following(self, index: int, by: int = 1) -> int:
        """The turn of the queue after this one (by: 1) or before it (-1); this one when there is none."""
        queued = self.session.queue(self.queue)
        places = [i for i in queued if (i - index) * by > 0]
        if not places and by > 0 and self.queue == "unlabelled":
            places = [i for i in queued if i != index]  # round again: what was skipped
        return places[0 if by > 0 else -1] if places else index

    def _go(self, index: int) -> None:
        self.index = index
        self._show()

    # ---- what is drawn

    @property
    def _guess_shown(self) -> bool:
        return not self.blind or self.queue == "disagreements"

    def _show(self) -> None:
        if not self._busy:
            draw, guess, following = self.picture.view, self._guess_shown, self._following(self.index)
            view = draw(self.index, self.queue, self.expanded, guess)
            # What comes next goes along, so that a key shows it without waiting for this process.
            ahead = draw(following, self.queue, False, guess) if following != self.index else None
            self.view = {**view, "next": ahead, "token": self._token, "status": visible(self._status)}

    def summary(self) -> str:
        counts = self.session.counts()
        what = "settled" if self.session.adjudicate else "labelled"
        return f"{visible(self.session.annotator)}: {counts['labelled']} of {counts['total']} turns {what}"

    def static_html(self) -> str:
        places = self.session.queue(self.queue)
        rows = [self.picture.row(i) for i in places[:STATIC_ROWS]]
        rest = f"<p>{len(places) - STATIC_ROWS:,} more turns</p>" if len(places) > STATIC_ROWS else ""
        table = html_table(["trace", "turn", "kind", "what", "label", "note"], rows)
        return f'<div class="wb-view"><p>{esc(self.summary())}</p>{table}{rest}</div>'


def _turns_of(source: Any) -> tuple[dict[str, Trace], list[TurnView]]:
    """({digest: trace}, all turns) of traces; ({}, turns) of turns."""
    items = [source] if isinstance(source, Trace) else list(source)
    if not items or isinstance(items[0], TurnView):
        return {}, items
    found = [(trace, turns(trace)) for trace in items]
    by_digest = {views[0].trace: (trace, views) for trace, views in found if views}  # a copy is shown once
    views = [view for _, of_trace in by_digest.values() for view in of_trace]
    return {digest: trace for digest, (trace, _) in by_digest.items()}, views
