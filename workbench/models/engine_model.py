"""A Model over an Engine that knows what each conversation really sampled: for rollouts that are trained on."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from workbench.models import Message, Reply, Sampling
from workbench.models.chat_format import ChatFormat
from workbench.models.engines import Engine
from workbench.models.recording import Recording
from workbench.models.segments import Segment


class EngineModel:
    """Answers chats from an engine. `conversation(key)` is a Model for one trajectory, which keeps its record.

    The prompt of turn k + 1 is the prompt of turn k, its sampled ids and a bridge for the new messages: what the policy
    wrote is never tokenized again. A history that does not extend what was sampled starts a new segment and is counted
    in the recording's `breaks`. `reply` itself answers without a record, for callers that train on nothing.
    """

    def __init__(self, engine: Engine, format: ChatFormat, *, name: str = ""):
        self.engine, self.format, self.name = engine, format, name or engine.name
        self._recordings: dict[str, Recording] = {}
        self._lock = threading.Lock()

    def conversation(self, key: str) -> Conversation:
        """The Model of one trajectory; the same key gives the same record. Keep it until `forget`."""
        with self._lock:
            recording = self._recordings.setdefault(key, Recording(self.format))
        return Conversation(self, recording)

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        return Conversation(self, Recording(self.format)).reply(messages, sampling)

    def recording(self, key: str) -> Recording:
        """Raises KeyError for a conversation that was never opened."""
        with self._lock:
            return self._recordings[key]

    def segments(self, key: str) -> list[Segment]:
        """What a conversation sampled, to train on. Raises KeyError, or Refused (it was sampled at temperature 0)."""
        return self.recording(key).segments()

    def forget(self, key: str) -> None:
        """Let go of a conversation's record."""
        with self._lock:
            self._recordings.pop(key, None)

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0


class Conversation:
    """One trajectory's Model. recording: its calls, breaks and segments."""

    def __init__(self, model: EngineModel, recording: Recording):
        self.name, self.recording, self._model = model.name, recording, model

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Answer a chat. Raises ContextFull, Refused or ModelError."""
        started = time.monotonic()
        prepared = self.recording.prepare(messages)
        got = self._model.engine.generate(prepared.ids, sampling)
        text = self._model.format.text(got.ids, sampling.stop)
        self.recording.record(prepared, got, {"role": "assistant", "content": text})
        return Reply(
            text=text,
            finish=got.finish,
            prompt_ids=prepared.ids,
            sampled_ids=got.ids,
            logprobs=got.logprobs,
            prompt_tokens=len(prepared.ids),
            completion_tokens=len(got.ids),
            usd=0.0,
            seconds=time.monotonic() - started,
        )

    def segments(self) -> list[Segment]:
        return self.recording.segments()

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0
