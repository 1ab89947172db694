"""What importers share: messages that are still growing, and trees of entries of which one branch is alive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from workbench.traces.trace import Report, Result, Source, ToolCall, TraceStep, Usage

WAITING = 256  # messages that may wait for results; older ones are given out without


@dataclass(frozen=True)
class UnknownEntry:
    """An entry of a type that this version does not know, as it stood in the file."""

    type: str
    raw: Any


@dataclass
class Draft:
    """A step to which text, calls and results are still added. key: what later pieces of the message are known by."""

    source: Source
    key: str = ""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    model: str = ""
    timestamp: str = ""
    id: str = ""
    usage: Usage | None = None
    branch: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def call(self, id: Any, name: Any, arguments: str, **extra: Any) -> ToolCall:
        """Add a call; without an id it gets one, and an id that this message has already gets a suffix."""
        taken = {c.id for c in self.calls}
        wanted = str(id) if id else f"call-{len(self.calls) + 1}"
        while wanted in taken:
            wanted += "+"
        made = ToolCall(wanted, str(name or "unknown"), arguments, {k: v for k, v in extra.items() if v is not None})
        self.calls.append(made)
        return made

    def waits(self) -> bool:
        answered = {r.call for r in self.results}
        return any(c.id not in answered for c in self.calls)

    def step(self) -> TraceStep:
        return TraceStep(
            source=self.source,
            text="\n".join(t for t in self.texts if t),
            thinking="\n".join(t for t in self.thoughts if t),
            calls=tuple(self.calls),
            results=tuple(self.results),
            model=self.model,
            timestamp=self.timestamp,
            id=self.id,
            usage=self.usage,
            branch=self.branch,
            extra=self.extra,
        )


class Drafts:
    """Steps in the order in which they began. One is finished when a later one has begun and its calls are answered."""

    def __init__(self) -> None:
        self._waiting: deque[Draft] = deque()
        self._callers: dict[str, Draft] = {}

    def begin(self, draft: Draft) -> Draft:
        self._waiting.append(draft)
        return draft

    @property
    def last(self) -> Draft | None:
        return self._waiting[-1] if self._waiting else None

    def find(self, key: str) -> Draft | None:
        """The waiting draft with this key."""
        return next((d for d in reversed(self._waiting) if key and d.key == key), None)

    def called(self, draft: Draft, call: ToolCall) -> None:
        self._callers[call.id] = draft

    def result(self, result: Result, timestamp: str = "", branch: str = "") -> None:
        """Give a result to the message that called. One whose caller is not there becomes a user message of its own."""
        caller = self._callers.get(result.call)
        if caller is not None:
            caller.results.append(result)
            return
        extra = {"orphan_result_of": result.call} | ({"error": result.error} if result.error else {})
        self.begin(Draft("user", texts=[result.text], timestamp=timestamp, branch=branch, extra=extra))

    def finished(self) -> Iterator[TraceStep]:
        while len(self._waiting) > 1 and (not self._waiting[0].waits() or len(self._waiting) > WAITING):
            yield self._give_out()

    def rest(self) -> Iterator[TraceStep]:
        while self._waiting:
            yield self._give_out()

    def _give_out(self) -> TraceStep:
        draft = self._waiting.popleft()
        for call in draft.calls:
            if self._callers.get(call.id) is draft:
                del self._callers[call.id]
        return draft.step()


class Tree:
    """Entries and their parents. Memory: about 200 bytes an entry."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._parent: list[int] = []  # −1: none
        self._live: set[int] = set()

    def add(self, id: str, parent: str | None) -> None:
        """A parent that is not in the file stands for the entry before: files are cut, and types come and go."""
        if id in self._number:
            return
        here = len(self._parent)
        self._parent.append(-1 if parent is None else self._number.get(parent, here - 1))
        self._number[id] = here  # after its parent was looked up: an entry that names itself must not make a circle

    def settle(self, leaf: str) -> None:
        """Make the path from `leaf` to its root the live branch."""
        at = self._number.get(leaf, -1)
        while at >= 0:  # parents come before their children, so there is no circle
            self._live.add(at)
            at = self._parent[at]

    def live(self, id: str) -> bool:
        return self._number.get(id, -1) in self._live

    def side(self, id: str) -> str:
        """Name of the side branch that an entry is on: "" on the live one, else "side-" and the number of the first
        entry that left it."""
        at = self._number.get(id, -1)
        if at < 0 or at in self._live:
            return ""
        while self._parent[at] >= 0 and self._parent[at] not in self._live:
            at = self._parent[at]
        return f"side-{at}"


def count(report: Report, type: str) -> None:
    report.entries[type] = report.entries.get(type, 0) + 1


def ignore(report: Report, type: str) -> None:
    report.ignored[type] = report.ignored.get(type, 0) + 1


def unknown(report: Report, type: str, raw: Any) -> UnknownEntry:
    report.unknown[type] = report.unknown.get(type, 0) + 1
    return UnknownEntry(type, raw)


def plain_text(content: Any) -> tuple[str, list[Any]]:
    """(text, other parts) of a message's content: a string, or a list of parts with a type and a text."""
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        return "", [] if content is None else [content]
    texts, others = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            others.append(part)
    return "\n".join(texts), others


def blocks(content: Any) -> list[dict[str, Any]]:
    """A message's content as blocks with a type; a string is one text block. What is no block is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def flag(value: Any) -> bool | None:
    """A yes or no that the source may not have given."""
    return value if isinstance(value, bool) else None


def iso(value: Any) -> str:
    """A time as ISO 8601: strings as they are, numbers as seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    seconds = value / 1000 if value > 1e11 else value
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def total(*values: Any) -> int | None:
    """Sum of those that are numbers; None when none is."""
    found = [v for v in map(whole, values) if v is not None]
    return sum(found) if found else None


def record(value: Any) -> dict[str, Any]:
    """`value` when it is an object, else {}: fields of hostile files hold anything."""
    return value if isinstance(value, dict) else {}
