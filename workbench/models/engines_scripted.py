"""An engine that says what a script says, for tests and demonstrations: real ids, no weights."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.models import ContextFull, ModelError, Sampling
from workbench.models.engines import Generation, Health


class ScriptedEngine:
    """Answers with texts in order (the last for ever), or with what `script(prompt ids)` returns.

    Texts are written one character a token and closed with the tokenizer's end token: ids that a tokenizer would never
    give for the text, so whoever tokenizes an answer again is found out. Its log-probabilities are 0: it has no choice.
    prompts: what it was asked.
    """

    name = "scripted"

    def __init__(
        self, tokenizer: object, script: Sequence[str] | Callable[[list[int]], str], *, max_context: int = 65536
    ):
        self.tokenizer, self.script, self.max_context = tokenizer, script, max_context
        self.version, self.end_ids = 0, frozenset({tokenizer.eos_token_id})
        self.prompts: list[tuple[int, ...]] = []
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._closed = False

    def generate(self, prompt: Sequence[int], sampling: Sampling = Sampling()) -> Generation:
        self._open.wait()
        if self._closed:
            raise ModelError("scripted: the engine is closed")
        if len(prompt) >= self.max_context:
            raise ContextFull(f"prompt of {len(prompt)} tokens, context of {self.max_context}")
        with self._lock:
            number = len(self.prompts)
            self.prompts.append(tuple(prompt))
            text = (
                self.script(list(prompt)) if callable(self.script) else self.script[min(number, len(self.script) - 1)]
            )
            ids = [i for c in text for i in self.tokenizer.encode(c, add_special_tokens=False)]
        ids = [*ids, self.tokenizer.eos_token_id]
        finish = "stop" if len(ids) <= sampling.max_tokens else "length"
        ids = ids[: sampling.max_tokens]
        return Generation(tuple(ids), (0.0,) * len(ids), (self.version,) * len(ids), finish)

    def load_weights(self, folder: Path, version: int | None = None) -> int:
        self.version = self.version + 1 if version is None else version
        return self.version

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def health(self) -> Health:
        return Health(not self._closed, self.version, not self._open.is_set())

    def close(self) -> None:
        self._closed = True
        self._open.set()
