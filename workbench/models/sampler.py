"""Draw one token a row, with its log-probability under the distribution that was drawn from (imports torch)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from workbench.models import Sampling


def shaped(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Log-probabilities (..., vocabulary) of the distribution that `sampling` draws from: logits over temperature, then
    top-k, then top-p (the smallest set of likeliest tokens whose mass reaches top_p), renormalised; cut tokens are -inf.

    Temperature 0 means the likeliest token; its log-probability is then that of the untempered, uncut distribution
    (the cut one would always say 0), so this returns the plain log-softmax.
    """
    logits = logits.float()
    if sampling.temperature <= 0:
        return torch.log_softmax(logits, -1)
    logprobs = torch.log_softmax(logits / sampling.temperature, -1)
    if 0 < sampling.top_k < logprobs.shape[-1]:
        floor = logprobs.topk(sampling.top_k, -1).values[..., -1:]
        logprobs = torch.log_softmax(logprobs.masked_fill(logprobs < floor, -torch.inf), -1)
    if sampling.top_p < 1:
        ordered, order = logprobs.sort(-1, descending=True)
        before = ordered.exp().cumsum(-1) - ordered.exp()  # mass of the likelier ones: the first is always kept
        cut = (before >= sampling.top_p).scatter(-1, order, before >= sampling.top_p)
        logprobs = torch.log_softmax(logprobs.masked_fill(cut, -torch.inf), -1)
    return logprobs


def draw(logits: torch.Tensor, samplings: Sequence[Sampling], uniforms: Sequence[float]) -> list[tuple[int, float]]:
    """(token, log-probability) for each row of `logits` (rows, vocabulary).

    uniforms: one number in [0, 1) a row, from the request's own generator. The token is the one at which the cumulative
    probability passes it, so a row's draw depends on its own seed and logits, not on its neighbours.
    """
    if len({(s.temperature, s.top_k, s.top_p) for s in samplings}) == 1:  # the usual case: one pass for all rows
        logprobs = shaped(logits, samplings[0])
    else:
        logprobs = torch.stack([shaped(row, s) for row, s in zip(logits, samplings, strict=True)])
    cumulative = logprobs.double().exp().cumsum(-1)
    targets = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, targets, right=True)[:, 0]
    greedy = torch.tensor([s.temperature <= 0 for s in samplings], device=logits.device)
    tokens = torch.where(greedy, logits.argmax(-1), tokens.clamp(max=logits.shape[-1] - 1))
    chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
    return list(zip(tokens.tolist(), chosen.tolist(), strict=True))
