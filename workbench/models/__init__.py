"""Who answers. One Protocol for hosted, OpenAI-compatible, local `transformers`, `vllm` and scripted models.

Here belongs everything from a list of messages to a reply with its tokens and price; training adds only
the update of weights. No room above is imported here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict, runtime_checkable


class Message(TypedDict):
    """One chat message. Text only: the built-in agent uses a plain-text action protocol."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn. Log-probabilities are those of the distribution that was sampled from.

    seconds: wall clock that the caller has left for this reply; a local engine then returns what it has ("length"), a
    hosted model raises OutOfTime.
    """

    max_tokens: int = 512
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0  # 0: no cut
    stop: tuple[str, ...] = ()
    seed: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Reply:
    """One answer.

    prompt_ids, sampled_ids: token ids as the engine used them, never re-tokenized; () when the endpoint does not say.
    logprobs: of each sampled id, natural log; () when unknown. usd: price of this call, NaN when the price is unknown.
    finish: "stop", "length" or "error" (a truncated or refused answer; never an exception of transport).
    """

    text: str
    finish: Literal["stop", "length", "error"] = "stop"
    prompt_ids: tuple[int, ...] = ()
    sampled_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = math.nan
    seconds: float = 0.0


class ModelError(RuntimeError):
    """The model could not be asked (an `infra` outcome): server gone, refused key, retries used up."""


class ContextFull(ModelError):
    """The prompt does not fit the model's context (a `policy` outcome, not an infrastructure failure)."""


class OutOfTime(ModelError):
    """The caller's own time (Sampling.seconds) ran out before the model's time limit did (a `policy` outcome)."""


class BudgetExceeded(ModelError):
    """The next call could pass the spending cap; it was not made."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers chats. Safe to call from many threads at once; engines batch such calls."""

    name: str

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Answer a chat. Raises ModelError, ContextFull or BudgetExceeded."""


def get_model(spec: str, **options: object) -> Model:
    """A model from one string, so that a notebook parameter can name any:

    "smollm2"                 the embedded SmolLM2-135M-Instruct (no hub, no key)
    "transformers:PATH_OR_ID" a local folder or a hub model on this machine
    "litellm:PROVIDER/NAME"   any model that litellm knows ("litellm:openai/NAME" with api_base=… for compatible servers)
    "scripted:FILE"           replies from a JSON list, for tests and demonstrations
    """
    from workbench.models.catalog import open_model

    return open_model(spec, **options)
