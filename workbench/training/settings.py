"""What an update is made with: plain values, no torch. Published values are named; the rest is ours and says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

CHUNK = 4096  # positions whose logits exist at once


@dataclass(frozen=True)
class UpdateSettings:
    """Every number of one optimizer step.

    denominator: Z of the loss, in tokens; the same for both roles and all steps. No paper gives it. Rollouts of a step
        times the tokens of a typical one keeps the gradient's size near that of a mean.
    learning_rate, schedule: AdamW, 1e-6, constant (Tev Table 11). betas, weight_decay, warmup_steps, max_grad_norm:
        unpublished; PyTorch's betas, no decay, no warm-up, clipping of the global norm at 1.0. max_grad_norm 0 = none.
    divergence, delta, ratio_cap: see dppo.TrustRegion. minimum_group: rollouts that must count for a group to train.
    max_staleness: updates after which a token is too old (its group is dropped); unpublished, ours.
    temperature: that of the rollouts, so that π and μ are of one distribution; 1.0 in Tev. top_p, top_k: must be off,
        since probabilities renormalised over a cut vocabulary depend on weights that are no longer there.
    token_budget: tokens of a micro-batch, padding included. layout: see batches.py.
    precision: arithmetic of the forward pass, "no" (float32) or "bf16"; the weights that AdamW moves are float32
        always, since steps of 1e-6 vanish in bf16. float32_head: logits in float32 (Tev: "bf16 with fp32 LM head").
    gradient_checkpointing: recompute activations, for long sequences.
    """

    denominator: float
    learning_rate: float = 1e-6
    schedule: Literal["constant", "constant_with_warmup"] = "constant"
    warmup_steps: int = 0
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    divergence: Literal["tv", "kl"] = "tv"
    delta: float | None = None
    ratio_cap: float | None = None
    minimum_group: int = 2
    max_staleness: int | None = 8
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    token_budget: int = 16_384
    layout: Literal["padded", "packed"] = "padded"
    precision: Literal["no", "bf16"] = "no"
    float32_head: bool = True
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        if not (self.denominator > 0 and math.isfinite(self.denominator)):
            raise ValueError(f"denominator is a positive number of tokens, not {self.denominator}")
        if not self.temperature > 0:
            raise ValueError(
                f"temperature {self.temperature}: greedy rollouts have no gradient; sample with more than 0"
            )
        if self.top_p < 1 or self.top_k > 0:
            raise ValueError(
                f"top_p={self.top_p}, top_k={self.top_k}: the trainer can recompute log-probabilities of the whole "
                "distribution only; sample training rollouts with top_p=1 and top_k=0 (temperature is fine)"
            )
        if self.warmup_steps and self.schedule == "constant":
            raise ValueError(f"warmup_steps={self.warmup_steps} has no effect with schedule 'constant'")


def settings_from(values: Mapping[str, Any]) -> UpdateSettings:
    """Settings from a profile or parameters; names that are no settings are left alone, missing ones keep their default.
    Raises ValueError when the denominator is missing."""
    known = {f.name for f in fields(UpdateSettings)} & set(values)
    if "denominator" not in known:
        raise ValueError("an update needs `denominator`, in tokens: no paper gives one, so the profile has to")
    chosen = {name: values[name] for name in known}
    if "betas" in chosen:
        chosen["betas"] = tuple(chosen["betas"])
    return UpdateSettings(**chosen)
