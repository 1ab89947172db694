"""What a call costs, from its tokens. A price that nobody stated is NaN, never guessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.models import Message

MESSAGE_TOKENS = 16  # more than any template in use puts around one message


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens. cached: of prompt tokens that the provider read from its cache (None: as input)."""

    input: float = math.nan
    output: float = math.nan
    cached: float | None = None

    @property
    def known(self) -> bool:
        return not (math.isnan(self.input) or math.isnan(self.output))

    def usd(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Price of one call. prompt: all prompt tokens, the cached ones among them. NaN when the price is unknown."""
        rate = self.input if self.cached is None else self.cached
        return ((prompt - cached) * self.input + cached * rate + completion * self.output) / 1e6


def read_prices(source: Mapping[str, object] | str | Path) -> dict[str, Price]:
    """Model name → Price, from a mapping or a YAML file of `NAME: {input: …, output: …, cached: …}`.

    Raises ValueError that names the entry at fault."""
    if not isinstance(source, Mapping):
        import yaml

        where = str(source)
        source = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
        if not isinstance(source, Mapping):
            raise ValueError(
                f"{where}: expected NAME: {{input: USD, output: USD}} per million tokens, one entry a model"
            )
    return {str(name): _price(str(name), entry) for name, entry in source.items()}


def _price(name: str, entry: object) -> Price:
    if isinstance(entry, Price):
        return entry
    fields = {"input", "output", "cached"}
    if not isinstance(entry, Mapping) or not {"input", "output"} <= set(entry) <= fields:
        raise ValueError(
            f"price of {name}: expected input, output and perhaps cached (USD per million tokens), found {entry!r}"
        )
    for key, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"price of {name}, {key}: expected a number of USD per million tokens, found {value!r}")
    return Price(**entry)


def most_prompt_tokens(messages: list[Message] | tuple[Message, ...]) -> int:
    """More tokens than these messages can have: a token is at least one byte, and templates add a few a message."""
    return MESSAGE_TOKENS + sum(len(m["content"].encode("utf-8", "replace")) + MESSAGE_TOKENS for m in messages)
