"""Turns, as AutoEnvScaling counts them (appendix I.1): each public text step and each tool call is one; native thinking is none.

A message with text and three calls is four turns; without text it is three. All text blocks of one message are one
text step. Blank text is none. Text in <think> tags is thinking. A fenced block that only repeats a command that the
same message ran (agents whose tool is a block of text) is that call, not a text step.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from workbench.traces.trace import ToolCall, Trace, TraceStep

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S)
_CLOSED_ONLY = re.compile(r"\A.*?</think(?:ing)?>", re.S)  # a chat template may have put the opening tag in the prompt
_FENCED = re.compile(r"^[ ]{0,3}```[^\n`]*\n(.*?)^[ ]{0,3}```[ \t\r]*$\n?", re.S | re.M)


@dataclass(frozen=True)
class TurnView:
    """One turn, ready to be read and labelled.

    trace: digest of the trace. step: number of the message on the main branch, from 1 (ATIF's step_id). call: 0 is the
    message's text, 1, 2, … its tool calls. (trace, step, call) is the key of a label. index: of the turn in the trace,
    from 0. text: what was said (kind "text"). tool, arguments: as recorded; command: for shells (kind "call").
    observation: what the agent was shown. error: whether the source calls that a failure, None when it does not say.
    """

    trace: str
    step: int
    call: int
    index: int
    kind: Literal["text", "call"]
    text: str = ""
    tool: str = ""
    command: str | None = None
    arguments: str = ""
    observation: str = ""
    error: bool | None = None
    timestamp: str = ""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.trace, self.step, self.call

    def to_row(self) -> dict[str, Any]:
        return asdict(self)


def turns(trace: Trace) -> list[TurnView]:
    """All turns of the main branch, in order."""
    return list(iter_turns(trace.steps, trace_digest(trace.steps)))


def iter_turns(steps: Iterable[TraceStep], digest: str) -> Iterator[TurnView]:
    """The turns of the steps that are on the main branch, one at a time. `digest`: see trace_digest."""
    index = 0
    for number, step in enumerate((s for s in steps if not s.branch), 1):
        for turn in _of_step(step, number):
            yield TurnView(trace=digest, step=number, index=index, timestamp=step.timestamp, **turn)
            index += 1


def count_turns(steps: Iterable[TraceStep]) -> dict[str, int]:
    """{"turns", "text", "call"} of the main branch."""
    kinds = Counter(turn.kind for turn in iter_turns(steps, ""))
    return {"turns": kinds.total(), "text": kinds["text"], "call": kinds["call"]}


class Digest:
    """The digest of a trace, fed step by step. It covers what a person sees of its turns and nothing else, so that a
    trace keeps its labels when it is exported to ATIF and read back."""

    def __init__(self) -> None:
        self._sum, self._number = hashlib.sha256(), 0

    def add(self, step: TraceStep) -> None:
        if step.branch:
            return
        self._number += 1
        for t in _of_step(step, self._number):
            seen = [self._number, t["call"], t["kind"], t.get("text"), t.get("tool"), t.get("arguments")]
            line = json.dumps([*seen, t.get("observation")], separators=(",", ":"))  # ASCII: lone surrogates too
            self._sum.update(line.encode("ascii") + b"\n")

    def hexdigest(self) -> str:
        return self._sum.hexdigest()


def trace_digest(steps: Iterable[TraceStep]) -> str:
    """SHA-256 of the turns, in hexadecimal."""
    digest = Digest()
    for step in steps:
        digest.add(step)
    return digest.hexdigest()


def public_text(step: TraceStep) -> str:
    """What the agent said to be read, without thinking and without blocks that its calls repeat. Stripped."""
    text = step.text
    if "</think" in text and "<think" not in text:
        text = _CLOSED_ONLY.sub("", text, count=1)
    if "<think" in text:
        text = _THINK.sub("", text)
    ran = {c.strip() for call in step.calls if (c := call.command()) is not None}
    if ran and "```" in text:
        text = _FENCED.sub(lambda m: "" if m[1].replace("\r\n", "\n").strip() in ran else m[0], text)
    return text.strip()


def _of_step(step: TraceStep, number: int) -> Iterator[dict[str, Any]]:
    if step.source != "agent" or (step.extra.get("atif_fields") or {}).get("is_copied_context"):
        return  # copied context was a turn of the trace that it was copied from
    text = public_text(step)
    if text:
        shown = "" if step.calls else "\n".join(r.text for r in step.results)
        yield {"kind": "text", "call": 0, "text": text, "observation": shown}
    for place, call in enumerate(step.calls, 1):
        yield {"kind": "call", "call": place, **_of_call(step, call)}


def _of_call(step: TraceStep, call: ToolCall) -> dict[str, Any]:
    only = len(step.calls) == 1
    found = [r for r in step.results if r.call == call.id or (only and not r.call)]
    errors = [r.error for r in found if r.error is not None]
    return {
        "tool": call.name,
        "command": call.command(),
        "arguments": call.arguments,
        "observation": "\n".join(r.text for r in found),
        "error": any(errors) if errors else None,
    }
