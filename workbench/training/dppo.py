"""The loss: Divergence Proximal Policy Optimization (Qi et al. 2026, as AutoEnvScaling §3.3 and Tev C.1 use it).

For each sampled token, with π its probability now, μ its probability under the distribution that it was *sampled* from,
r = π/μ and A its advantage:  loss = − (1/Z) Σ M · r · A, where M = 0 when the update would carry the policy further away
than it may be (A > 0 and π above μ, or A < 0 and π below μ, by a divergence over δ), else 1. No KL anchor, no clipping.
The mask is no function of the weights: no gradient passes through it.

Choices: δ = 0.1 for binary total variation is Tev's (AutoEnvScaling gives none), 0.05 for binary KL is that of TRL 1.8's
trainer, which later releases dropped. Z is one stated constant, the same for both roles and every step, so that a token
weighs the same wherever it stands. `ratio_cap` is off: neither paper mentions one. (A rare token, μ = 1e-6, can reach a
ratio of 1e5 within δ; TRL 1.8 and the DPPO authors truncate at a constant, which is offered.) Imports torch: load lazily.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

Divergence = Literal["tv", "kl"]
DELTA: dict[Divergence, float] = {"tv": 0.1, "kl": 0.05}


@dataclass(frozen=True)
class TrustRegion:
    """How far a token's probability may move. divergence: "tv" |π − μ|, or "kl" the binary KL(μ‖π), in nats. delta: None =
    the default of its divergence; math.inf = no mask. ratio_cap: largest π/μ that weighs an update; None = none."""

    divergence: Divergence = "tv"
    delta: float | None = None
    ratio_cap: float | None = None

    def __post_init__(self) -> None:
        if self.divergence not in DELTA:
            raise ValueError(f"no divergence {self.divergence!r}: there are {', '.join(DELTA)}")
        if self.bound < 0 or math.isnan(self.bound):
            raise ValueError(f"delta must not be negative, and is {self.delta}")
        if self.ratio_cap is not None and not self.ratio_cap >= 1:
            raise ValueError(f"ratio_cap must be at least 1 (on-policy data has ratio 1), and is {self.ratio_cap}")

    @property
    def bound(self) -> float:
        return DELTA[self.divergence] if self.delta is None else self.delta


@dataclass(frozen=True)
class Loss:
    """value: scalar tensor with a gradient. masked: tokens whose update was withheld. divergence, ratio: sums over the
    sampled tokens of |π − μ| (or KL) and of π/μ; divide by `tokens` for means."""

    value: torch.Tensor
    tokens: torch.Tensor
    masked: torch.Tensor
    divergence: torch.Tensor
    ratio: torch.Tensor


def binary_divergence(logprobs: torch.Tensor, sampling: torch.Tensor, kind: Divergence = "tv") -> torch.Tensor:
    """The divergence of "this token" against "any other" (two-outcome approximation of the whole vocabulary).

    logprobs, sampling: natural logs of π and μ, one shape. "tv": |π − μ|, in [0, 1]. "kl": μ log(μ/π) + (1 − μ)
    log((1 − μ)/(1 − π)), in nats; probabilities of 1 are read as 1 − 1e-7, or the logarithm would be infinite.
    """
    pi, mu = logprobs.exp(), sampling.exp()
    if kind == "tv":
        return (pi - mu).abs()
    rest_pi, rest_mu = (1 - pi).clamp(min=1e-7), (1 - mu).clamp(min=1e-7)
    return mu * (sampling - logprobs) + rest_mu * (rest_mu.log() - rest_pi.log())


def kept(
    logprobs: torch.Tensor, sampling: torch.Tensor, advantages: torch.Tensor, region: TrustRegion
) -> tuple[torch.Tensor, torch.Tensor]:
    """(M as booleans, the divergence). False where the update would move a token further away that is over δ already."""
    with torch.no_grad():
        far = binary_divergence(logprobs, sampling, region.divergence)
        outward = torch.where(logprobs > sampling, advantages > 0, advantages < 0)
        return ~(outward & (far > region.bound)), far


def dppo_loss(
    logprobs: torch.Tensor,
    sampling: torch.Tensor,
    advantages: torch.Tensor,
    sampled: torch.Tensor,
    *,
    denominator: float,
    region: TrustRegion = TrustRegion(),
) -> Loss:
    """The loss of a batch; its sum over any split of the batch is the loss of the whole.

    logprobs: of each token under the policy now, with gradient, at the temperature it was sampled with. sampling: the
    same when it was sampled. advantages: per token. sampled: booleans, True where the policy sampled. All four have one
    shape. denominator: Z > 0, in tokens.
    """
    if not denominator > 0:
        raise ValueError(f"the denominator is a positive number of tokens, not {denominator}")
    # what was not sampled may hold anything, even NaN: it must not reach a product
    logprobs, sampling = logprobs.masked_fill(~sampled, 0.0).float(), sampling.masked_fill(~sampled, 0.0).float()
    advantages = advantages.masked_fill(~sampled, 0.0).float()
    keep, far = kept(logprobs, sampling, advantages, region)
    ratio = (logprobs - sampling).exp()
    weight = ratio if region.ratio_cap is None else capped(ratio, logprobs, region.ratio_cap)
    # a masked token's ratio may be infinite, and 0 · inf is NaN: leave it out rather than multiply by 0
    value = -torch.where(keep & sampled, weight * advantages, 0.0).sum() / denominator
    return Loss(
        value=value,
        tokens=sampled.sum(),
        masked=(sampled & ~keep).sum(),
        divergence=far.sum(),
        ratio=torch.where(sampled, ratio.detach(), 0.0).sum(),
    )


def capped(ratio: torch.Tensor, logprobs: torch.Tensor, cap: float) -> torch.Tensor:
    """min(r, cap) as the *weight* of ∇ log π: the gradient stays where a plain clamp would end it (cap · ∇ log π)."""
    weight = ratio.detach().clamp(max=cap)
    return weight * (1 + logprobs - logprobs.detach())
