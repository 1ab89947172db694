"""Where arithmetic must not differ from what was sampled: logits in float32, no dropout. Imports torch: load lazily."""

from __future__ import annotations

import torch


def float32_head(model: torch.nn.Module) -> None:
    """Compute logits in float32 from here on, whatever the rest runs in (Tev Table 11: "bf16 with fp32 LM head").

    The weight stays where and what it is, so that tied embeddings and sharding are untouched; only the product is float32.
    """
    head = model.get_output_embeddings()
    if head is None:
        raise ValueError(f"{type(model).__name__} has no output embeddings: a causal language model is needed")

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            bias = None if head.bias is None else head.bias.float()
            return torch.nn.functional.linear(hidden.float(), head.weight.float(), bias)

    head.forward = forward


def without_dropout(model: torch.nn.Module) -> None:
    """Switch dropout off for good: it would make π differ from μ on the very data that μ sampled."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if getattr(module, "attention_dropout", 0.0):
            module.attention_dropout = 0.0
