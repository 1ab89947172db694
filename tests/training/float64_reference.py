"""Everything between rewards and the loss once more, in float64 numpy, token by token, from the papers' equations alone.

Shares no code with the package. Gradients are by hand: d/dlogπ of −(1/Z) M (π/μ) A is −(1/Z) M (π/μ) A.
"""

from __future__ import annotations

import numpy as np


def equation_3(rewards):
    rewards = np.asarray(rewards, np.float64)
    return rewards - rewards.sum() / rewards.size


def equation_4_turns(phi, passes, lam):
    """r_t for t = 1…T: λ(Φ(s_t) − Φ(s_{t−1})), Φ(s_0) = 0, the terminal term on T (Tev C.1)."""
    rewards = lam * np.diff(np.concatenate([[0.0], np.asarray(phi, np.float64)]))
    rewards[-1] += float(passes)
    return rewards


def per_turn_index(rollouts, lam):
    """rollouts: (phi, passes) pairs. Return-to-go minus the group mean of that return at the same turn index."""
    returns = [np.cumsum(equation_4_turns(phi, ok, lam)[::-1])[::-1] for phi, ok in rollouts]
    out = [g.copy() for g in returns]
    for t in range(max(len(g) for g in returns)):
        reaching = [g[t] for g in returns if len(g) > t]
        for g, o in zip(returns, out, strict=True):
            if len(g) > t:
                o[t] = g[t] - np.mean(np.asarray(reaching, np.float64))
    return out


def log_softmax_of(logits, ids, temperature):
    """Log-probability of each id under softmax(logits / T). logits: (n, V)."""
    z = np.asarray(logits, np.float64) / temperature
    z = z - z.max(axis=-1, keepdims=True)
    return z[np.arange(len(ids)), ids] - np.log(np.exp(z).sum(axis=-1))


def dppo(logprobs, sampling, advantages, sampled, z, divergence="tv", delta=0.1):
    """(loss, gradient with respect to logprobs, tokens withheld)."""
    loss, gradient, withheld = 0.0, np.zeros(len(logprobs)), 0
    for i in range(len(logprobs)):
        if not sampled[i]:
            continue
        pi, mu, a = np.exp(np.float64(logprobs[i])), np.exp(np.float64(sampling[i])), np.float64(advantages[i])
        if divergence == "tv":
            beyond_up, beyond_down = pi - mu > delta, mu - pi > delta
        else:
            kl = mu * np.log(mu / pi) + (1 - mu) * np.log((1 - mu) / (1 - pi))
            beyond_up, beyond_down = (pi > mu) and kl > delta, (pi < mu) and kl > delta
        if (a > 0 and beyond_up) or (a < 0 and beyond_down):
            withheld += 1
            continue
        loss -= pi / mu * a / z
        gradient[i] = -pi / mu * a / z
    return loss, gradient, withheld
