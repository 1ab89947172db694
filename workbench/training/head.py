"""The output head in training: float32, and only where the policy sampled. Imports torch: load lazily.

Logits are the largest tensor of an update: 131,072 tokens times a vocabulary of 248,320 are 121 GiB in float32. So the
head is asked for log-probabilities of the sampled tokens instead, some thousand at a time, and recomputes them in the
backward pass. It happens inside the head's own forward, where FSDP and DeepSpeed have its weight at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy, linear
from torch.utils.checkpoint import checkpoint

from workbench.training.settings import CHUNK

AFTER = {"final_logit_softcapping": None, "logit_scale": 1, "logits_scaling": 1}  # what models do behind their head


@dataclass(frozen=True)
class Wanted:
    """Which log-probabilities: of `targets` (n,) at `rows` and `columns` (n,) of the hidden states the head is given."""

    rows: torch.Tensor
    columns: torch.Tensor
    targets: torch.Tensor
    temperature: float


class Head:
    """Takes over the forward of a model's output embeddings. By itself it gives logits in float32 (Tev Table 11: "bf16
    with fp32 LM head"; the weight keeps its type and place, so tying and sharding are untouched). While `wanted` is set
    it gives the (n,) log-probabilities that are wanted. Raises ValueError for models without such a head."""

    def __init__(self, model: torch.nn.Module, *, float32: bool = True, chunk: int = CHUNK):
        self.module = model.get_output_embeddings()
        if not isinstance(self.module, torch.nn.Linear):
            raise ValueError(
                f"{type(model).__name__} has no linear output embeddings: a causal language model is needed"
            )
        config = model.config.get_text_config()
        self.plain = any(getattr(config, name, none) not in (none, None) for name, none in AFTER.items())
        self.float32, self.chunk = float32, chunk
        self.wanted: Wanted | None = None
        self.module.forward = self._forward

    def _forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.wanted is None:
            return self._logits(hidden, self.module.weight, self.module.bias)
        want = self.wanted
        hidden = hidden[want.rows, want.columns]
        parts = [slice(at, at + self.chunk) for at in range(0, max(1, len(hidden)), self.chunk)]
        if len(parts) == 1:
            return self._logprobs(hidden, self.module.weight, self.module.bias, want.targets, want.temperature)
        found = [
            checkpoint(
                self._logprobs, hidden[part], self.module.weight, self.module.bias, want.targets[part], want.temperature,
                use_reentrant=False,
            )
            for part in parts
        ]  # fmt: skip
        return torch.cat(found)

    def _logits(self, hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if not self.float32:
            return linear(hidden, weight, bias)
        with torch.autocast(hidden.device.type, enabled=False):
            return linear(hidden.float(), weight.float(), None if bias is None else bias.float())

    def _logprobs(self, hidden, weight, bias, targets, temperature) -> torch.Tensor:
        logits = self._logits(hidden, weight, bias).float()
        return -cross_entropy(logits if temperature == 1 else logits / temperature, targets, reduction="none")


def without_dropout(model: torch.nn.Module) -> None:
    """Switch dropout off for good: it would make π differ from μ on the very data that μ sampled."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if getattr(module, "attention_dropout", 0.0):
            module.attention_dropout = 0.0
