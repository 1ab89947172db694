"""The plain-text action protocol: what counts as a turn's command, and how its result is told.

A turn is any text with exactly one fenced block marked `bash` (or `sh`, `shell`). The block's content is run. A block
whose whole content is the word `submit` runs nothing and ends the episode. Fences stand at the start of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.sandboxes import ExecResult

SUBMIT = "submit"
_BLOCK = re.compile(r"^[ ]{0,3}```[ ]*(?:bash|sh|shell)[ ]*\r?\n(.*?)^[ ]{0,3}```[ \t\r]*$", re.S | re.M)
_OPEN = re.compile(r"^[ ]{0,3}```[ ]*(?:bash|sh|shell)[ ]*\r?$", re.M)


@dataclass(frozen=True)
class Action:
    """What a turn asks for: a command, or the end (`submit`), or neither, and then `problem` says why."""

    command: str | None = None
    submit: bool = False
    problem: str = ""


def parse_action(text: str) -> Action:
    """Read one turn of a policy. Never raises."""
    blocks = _BLOCK.findall(text)
    if len(blocks) > 1:
        return Action(problem=f"your message has {len(blocks)} bash blocks")
    if not blocks:
        unclosed = _OPEN.search(text)
        return Action(problem="your bash block is not closed" if unclosed else "your message has no bash block")
    command = blocks[0].replace("\r\n", "\n").strip("\n")
    if command.strip() == SUBMIT:
        return Action(submit=True)
    if not command.strip():
        return Action(problem="your bash block is empty")
    if "\0" in command:
        return Action(problem="your bash block holds a NUL character")
    return Action(command=command)


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters: the head and the tail, and between them how much was left out."""
    if len(text) <= limit:
        return text
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[len(text) - tail :]}"


def observation(result: ExecResult, limit: int) -> str:
    """What the policy sees of a command: its exit code, then its output, at most about `limit` characters of it."""
    if result.killed_by == "time":
        head = f"[timed out after {result.seconds:.0f} s and was killed]"
    elif result.killed_by:
        head = f"[killed: it passed the {result.killed_by} limit; exit code {result.exit_code}]"
    else:
        head = f"[exit code {result.exit_code}]"
    output = shorten(result.output.rstrip("\n"), limit)
    return f"{head}\n{output}" if output else head
