"""One neutral record for the traces of all agents: messages, tool calls as they were asked for, and what came back.

An `Episode` is what our own agents write and what training reads; a `Trace` is what a person looks at and labels, from
any agent. Everything is text: images and audio stay in `extra` as the source recorded them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

_EDITOR = re.compile(r"edit|str_replace|notebook|memory", re.I)
Source = Literal["system", "user", "agent"]


@dataclass(frozen=True)
class ToolCall:
    """arguments: the string that the model gave, when the source kept it; else JSON of the object that it kept.
    id: unique within its step (made up when the source has none)."""

    id: str
    name: str
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def parsed(self) -> dict[str, Any]:
        """The arguments as an object; {} when they are none."""
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def command(self) -> str | None:
        """What a shell was given, or None when the tool takes no command (editors call what they do a command too)."""
        if _EDITOR.search(self.name):
            return None
        found = self.parsed()
        for name in ("command", "cmd", "keystrokes", "script"):
            value = found.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
                return _unwrapped(value)
        return None


@dataclass(frozen=True)
class Result:
    """What the agent was shown. call: id of the call that it answers, "" when the source does not say."""

    text: str
    call: str = ""
    error: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Of one model call. prompt_tokens counts cached ones too. None: unknown. usd: US dollars."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    usd: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TraceStep:
    """One message. thinking: the model's native reasoning, when the source shows it. branch: "" on the branch that was
    kept, else a name of the side branch (a conversation that was rewound, or a sub-agent). extra: what else is known."""

    source: Source
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    model: str = ""
    timestamp: str = ""
    id: str = ""
    usage: Usage | None = None
    branch: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Without the fields that are empty."""
        return _lean(asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TraceStep:
        """Raises TypeError, KeyError or ValueError when `data` is no step."""
        step = dict(data)
        step["calls"] = tuple(ToolCall(**c) for c in step.get("calls", ()))
        step["results"] = tuple(Result(**{"text": "", **r}) for r in step.get("results", ()))
        step["usage"] = Usage(**step["usage"]) if step.get("usage") else None
        if step["source"] not in ("system", "user", "agent"):
            raise ValueError(f"a step's source is system, user or agent, not {step['source']!r}")
        return cls(**step)


@dataclass(frozen=True)
class TraceInfo:
    """What is known of a trace as a whole. format: of the file that it was read from. cwd: where the agent began."""

    agent: str
    format: str
    model: str = ""
    version: str = ""
    session: str = ""
    cwd: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return _lean(asdict(self))


@dataclass
class Report:
    """What an importer met. entries: by type, all of them. ignored: known types that hold no message. unknown: types
    that this version does not know; they are kept as `extras`. torn: bytes of a cut last line. redacted: by rule."""

    entries: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    torn: int = 0
    redacted: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Trace:
    """A whole trace in memory. unknown_entries: what the importer did not know, as it stood in the file."""

    info: TraceInfo
    steps: tuple[TraceStep, ...] = ()
    report: Report = field(default_factory=Report)
    unknown_entries: tuple[Any, ...] = ()

    @property
    def main(self) -> tuple[TraceStep, ...]:
        """The steps of the branch that was kept."""
        return tuple(s for s in self.steps if not s.branch)

    def to_json(self) -> dict[str, Any]:
        return {
            "info": self.info.to_json(),
            "steps": [s.to_json() for s in self.steps],
            "report": self.report.to_json(),
            "unknown_entries": list(self.unknown_entries),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        return cls(
            info=TraceInfo(**data["info"]),
            steps=tuple(TraceStep.from_json(s) for s in data["steps"]),
            report=Report(**data.get("report", {})),
            unknown_entries=tuple(data.get("unknown_entries", ())),
        )


def arguments_text(value: Any) -> str:
    """Arguments as the source kept them: a string verbatim, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unwrapped(words: list[str]) -> str:
    """The script of ["bash", "-lc", SCRIPT]; other lists as one line that a shell would read the same way."""
    import shlex

    if len(words) == 3 and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _lean(value: Any) -> Any:
    """Without None, "" and empty containers among the fields of records; what stands in `extra` is left alone."""
    if isinstance(value, dict):
        return {k: (v if k == "extra" else _lean(v)) for k, v in value.items() if v not in (None, "", {}, (), [])}
    if isinstance(value, list | tuple):
        return [_lean(v) for v in value]
    return value
