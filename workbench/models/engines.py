"""Who samples. One Protocol for the engines of training: token ids in, sampled ids and their log-probabilities out.

`TransformersEngine` works in this process, `VllmEngine` talks to one or several vLLM servers; the sampler is the same
contract: log-probabilities are those of the distribution that was sampled from, or the call is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from workbench.models import ModelError, Sampling


class Refused(ModelError):
    """The engine will not sample so, since it could not say the log-probabilities of what it samples from."""


@dataclass(frozen=True)
class Generation:
    """What one prompt was answered with.

    ids: sampled token ids, the end token included when it was sampled. logprobs: natural log, one an id, under the
    distribution that was sampled from (temperature, then top-k, then top-p); () at temperature 0, where there is none
    to train on. versions: policy version of each id: a weight update in the middle changes it from one id to the next.
    finish: "stop" (an end token or a stop string) or "length" (max_tokens, the context or the caller's seconds).
    reused: prompt tokens that a prefix cache held already, -1 when the engine does not say.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    finish: Literal["stop", "length"]
    reused: int = -1
    seconds: float = 0.0


@dataclass(frozen=True)
class Health:
    """Whether an engine can answer now. detail: what is wrong, or which servers answer."""

    ok: bool
    version: int
    paused: bool
    detail: str = ""


@runtime_checkable
class Engine(Protocol):
    """Samples for many threads at once, batched. Weights change while requests are live.

    version: of the weights that the next token is sampled with; 0 at the start. end_ids: tokens that end an answer.
    """

    name: str
    version: int
    max_context: int
    end_ids: frozenset[int]

    def generate(self, prompt: Sequence[int], sampling: Sampling = Sampling()) -> Generation:
        """Sample an answer to a prompt of token ids. Safe from many threads.
        Raises ContextFull (no room for one token), Refused, or ModelError (engine closed, server gone)."""

    def load_weights(self, folder: Path, version: int | None = None) -> int:
        """Take the weights of a `transformers` folder (safetensors), and forget every key, value and prefix of the old
        ones. version: None counts on by one. Running requests read their prefix again and go on with the new weights.
        Returns the version. Raises ModelError and keeps the old weights when the folder does not fit the model."""

    def pause(self) -> None:
        """Sample nothing more until `resume`; requests wait."""

    def resume(self) -> None:
        """Go on after `pause`."""

    def health(self) -> Health:
        """Whether it can answer; never raises."""

    def close(self) -> None:
        """End every request with ModelError and let go of what it holds. May be called twice."""


def get_engine(spec: str, *, template: str | None = None, **options: object):
    """(engine, chat format) from one string: "smollm2", "transformers:PATH_OR_ID" or "vllm:URL[,URL...]".

    template, options, errors: see workbench.models.catalog.open_engine."""
    from workbench.models.catalog import open_engine

    return open_engine(spec, template=template, **options)
