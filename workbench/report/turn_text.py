"""A turn as texts to read: what was said, what was run, what came back, each folded to what fits."""

from __future__ import annotations

import json
from typing import Any

from workbench.report.widget import visible
from workbench.traces.trace import Trace
from workbench.traces.turns import TurnView

GLANCE = (4, 400)  # lines and characters of each text of a turn that is only context
FOLDED = (24, 3_000)  # of the turn in the middle
OPEN = (20_000, 400_000)  # of the turn in the middle, unfolded


def blocks(turn: TurnView, most: tuple[int, int]) -> list[dict[str, str]]:
    """[{"kind", "text", "more"}, …] with kind says, runs, arguments or shows; `more` tells what was folded away."""
    asked = ("runs", turn.command) if turn.command is not None else ("arguments", readable(turn.arguments))
    texts = [("says", turn.text), asked, ("shows", turn.observation)]
    return [{"kind": kind, **fold(text, most)} for kind, text in texts if text and text.strip()]


def fold(text: str, most: tuple[int, int]) -> dict[str, str]:
    """{"text": the beginning, "more": "" or how much is left out}. All control characters are made visible."""
    lines, characters = most
    text = text.strip("\n").replace("\r\n", "\n")
    kept = "\n".join(text[: characters + 1].split("\n")[:lines])[:characters]
    left = text[len(kept) :]
    more = ""
    if left.strip():
        hidden = left.count("\n")
        more = f"{hidden:,} more line{'s' * (hidden != 1)}" if hidden else f"{len(left):,} more characters"
    return {"text": _visible(kept), "more": more}


def _visible(text: str) -> str:
    """`visible` cuts long texts, which was done here."""
    size = 10_000
    return "".join(visible(text[i : i + size]) for i in range(0, len(text), size))


def head(turn: TurnView) -> str:
    """What kind of turn, and where it stands."""
    what = "text" if turn.kind == "text" else turn.tool or "tool call"
    return visible(f"{what} · step {turn.step}" + (f", call {turn.call}" if turn.call > 1 else ""))


def one_line(turn: TurnView, most: int = 120) -> str:
    """The turn in a table's cell."""
    text = turn.text or (turn.command if turn.command is not None else readable(turn.arguments))
    short = " ".join(text[: 4 * most].split())
    return visible(short if len(short) <= most else short[: most - 1] + "…")


def readable(arguments: str) -> str:
    """Arguments of a tool call, one a line, strings as they are (not as JSON escapes them)."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(value, dict):
        return arguments
    return "\n".join(f"{name}: {_value(v)}" for name, v in value.items())


def _value(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "\n" + value if "\n" in value else value


def title(trace: Trace, name: str = "") -> str:
    """Which agent, with which model, from which file."""
    return visible(" · ".join(part for part in (name, trace.info.agent, trace.info.model) if part))


def instruction(trace: Trace) -> str:
    """What the agent was asked: the user's words before its first message."""
    said = []
    for step in trace.main:
        if step.source == "agent":
            break
        if step.source == "user":
            said.append(step.text)
    return "\n\n".join(said)
