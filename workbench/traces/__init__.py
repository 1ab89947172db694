"""What happened: the record of an episode, turn by turn, and its forms on disk.

Here belong turns, episodes, importers, labels and agreement; nothing here runs anything.
No other room is imported.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

EndedBy = Literal["submit", "turns", "tokens", "time", "context", "malformed", "error"]


@dataclass(frozen=True)
class Turn:
    """One public step of an agent: what it said, what it ran, what it saw.

    index: from 0. text: the model's reply as sampled. command: what was executed, None when nothing was.
    observation: what the agent was shown. seconds: model_seconds for the reply, command_seconds for the command.
    prompt_ids, sampled_ids, logprobs: see models.Reply. progress: Φ after the turn, for tasks that have one.
    """

    index: int
    text: str = ""
    command: str | None = None
    observation: str = ""
    exit_code: int | None = None
    prompt_ids: tuple[int, ...] = ()
    sampled_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    model_seconds: float = 0.0
    command_seconds: float = 0.0
    progress: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Episode:
    """All turns of one agent at one instruction. submitted: the agent said that it was done.
    ended_by: what ended it; `error` holds the message when that is "error"."""

    agent: str
    turns: tuple[Turn, ...] = ()
    model: str = ""
    submitted: bool = False
    ended_by: EndedBy = "submit"
    error: str = ""
    system: str = ""
    instruction: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Episode:
        turns = tuple(
            Turn(**{**t, **{k: tuple(t[k]) for k in ("prompt_ids", "sampled_ids", "logprobs")}}) for t in data["turns"]
        )
        return cls(**{**data, "turns": turns})
