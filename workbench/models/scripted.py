"""A model that answers from a script: for tests, demonstrations and solutions that are known beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.models import Message, ModelError, Reply, Sampling


class Scripted:
    """Answers from a list, or from a function of the messages.

    A list is followed by each conversation on its own: the reply after k of them is number k, found by comparing the last
    assistant messages with the script, so many threads may follow it at once. Past its end: ModelError.
    Its "tokens" are words (there is no tokenizer), its price is 0, and `calls` keeps (messages, sampling) of every call.
    """

    def __init__(
        self, replies: Sequence[str | Reply] | Callable[[Sequence[Message]], str | Reply], *, name: str = "scripted"
    ):
        self.name = name
        self.calls: list[tuple[tuple[Message, ...], Sampling]] = []
        self._answer = replies if callable(replies) else _Script([*replies])
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: str | Path) -> Scripted:
        """A JSON list; each item a text, or an object with `text` and `finish`. Raises ModelError that names the file."""
        try:
            items = json.loads(Path(path).read_text(encoding="utf-8"))
            replies = [i if isinstance(i, str) else Reply(**i) for i in items]
        except (OSError, ValueError, TypeError) as error:
            raise ModelError(
                f"{path}: not a JSON list of replies (texts, or objects with text and finish): {error}"
            ) from error
        return cls(replies, name=f"scripted:{Path(path).name}")

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """The script's answer. Raises ModelError when the script is at its end."""
        with self._lock:
            self.calls.append((tuple(messages), sampling))
        answer = self._answer(messages)
        if isinstance(answer, Reply):
            return answer
        words = sum(len(m["content"].split()) for m in messages)
        return Reply(text=answer, prompt_tokens=words, completion_tokens=len(answer.split()), usd=0.0)

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0


class _Script:
    def __init__(self, replies: list[str | Reply]):
        self.replies = replies
        self.texts = [r.text if isinstance(r, Reply) else r for r in replies]

    def __call__(self, messages: Sequence[Message]) -> str | Reply:
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        limit = min(len(said), len(self.texts))
        at = next((k for k in range(limit, 0, -1) if said[-k:] == self.texts[:k]), 0)
        if at >= len(self.replies):
            raise ModelError(f"the script has {len(self.replies)} replies, and reply {at + 1} was asked for")
        return self.replies[at]
