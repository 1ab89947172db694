"""A model whose replies a run remembers, so that a killed comparison does not pay for the same call twice.

A reply is written to the journal as soon as it has arrived; whoever asks the same question in the same place again gets it
from there, at no cost. What is left is the call in flight at the moment of a kill: whether it was billed nobody here knows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from workbench.models import Message, Model, Reply, Sampling

_KEPT = ("text", "finish", "prompt_tokens", "completion_tokens", "usd", "seconds")


class Memory(Protocol):
    """The part of a run that is needed."""

    def once(self, kind: str, key: str, fn: Callable[[], Mapping[str, Any]]) -> dict[str, Any]: ...


class Remembered:
    """`model`, asked once for each (scope, messages, sampling). scope: who asks; two entries of a comparison that ask the
    same question are two questions. Token ids and log-probabilities are not kept: a comparison trains nothing."""

    def __init__(self, model: Model, run: Memory, scope: str):
        self.wrapped, self.run, self.scope, self.name = model, run, scope, model.name

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """As the model's, or as it was answered before this run was killed."""

        def ask() -> dict[str, Any]:
            reply = self.wrapped.reply(messages, sampling)
            return {**{name: getattr(reply, name) for name in _KEPT}, "scope": self.scope}

        row = self.run.once("reply", self._key(messages, sampling), ask)
        return Reply(**{name: row[name] for name in _KEPT})

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return self.wrapped.worst_usd(messages, sampling)  # type: ignore[attr-defined]

    def _key(self, messages: Sequence[Message], sampling: Sampling) -> str:
        drawn = {k: v for k, v in sampling.__dict__.items() if k != "seconds"}  # what is left of a clock is no question
        text = json.dumps([self.scope, self.name, list(messages), drawn], sort_keys=True)
        return f"{self.scope}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
