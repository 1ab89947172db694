"""A model's reply as a turn of an episode."""

from __future__ import annotations

from typing import Any

from workbench.models import Reply
from workbench.traces import Turn


def turn_of(reply: Reply, index: int = 0, **more: Any) -> Turn:
    """The turn in which a model said `reply`: its text, tokens, price and seconds. more: fields of Turn that it does not tell."""
    return Turn(
        index=index,
        text=reply.text,
        prompt_ids=reply.prompt_ids,
        sampled_ids=reply.sampled_ids,
        logprobs=reply.logprobs,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        usd=reply.usd,
        model_seconds=reply.seconds,
        **more,
    )
