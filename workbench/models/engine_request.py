"""What the batching engine keeps: a request on its way, and a row of the cache."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.models import ModelError, Sampling


@dataclass
class Request:
    """One prompt on its way to an answer. `ids`, `logprobs`, `versions`: sampled so far, and with which weights. reused:
    tokens of the prompt that a slot held. finish: "stop", "length", or "error" when it was cancelled. Ends are seen
    through `result`, which waits."""

    prompt: list[int]
    sampling: Sampling
    stopped: Callable[[list[int]], bool]
    deadline: float
    max_tokens: int
    rng: random.Random
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    reused: int = 0
    finish: str = ""
    error: ModelError | None = None
    cancelled: bool = False
    done: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Leave the batch at its next step."""
        self.cancelled = True

    def result(self) -> Request:
        """Wait for the end. A caller that is interrupted while waiting cancels the request. Raises ModelError."""
        try:
            self.done.wait()
        except BaseException:
            self.cancel()
            raise
        if self.error is not None:
            raise self.error
        return self

    def end(self, finish: str, error: ModelError | None = None) -> None:
        self.finish, self.error = finish, error
        self.done.set()


@dataclass
class Slot:
    """A row of the cache: the ids whose keys and values it holds, and who uses it now."""

    ids: list[int] = field(default_factory=list)
    used: float = 0.0
    request: Request | None = None


def common(a: list[int], b: list[int]) -> int:
    """Length of the longest common prefix."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:  # the usual case, at C speed
        return n
    return next(i for i in range(n) if a[i] != b[i])


def check_attention(model: object) -> None:
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise ModelError(
            f"the built-in engine decodes full attention only, and this {config.model_type} model has {sorted(kinds)}: "
            "serve it with vLLM and name it litellm:openai/NAME with api_base"
        )
