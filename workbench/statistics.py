"""Pure functions of numbers: intervals, posteriors, pass@k, the calibration gate's operating curve.

Any room may import this module. It reads no record, draws nothing and keeps no state; what is random takes a seed.
Arguments that make no sense raise ValueError with the value in the message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

EDGE = 1e-9  # a mean of 4 or 8 fractions must not miss an edge of the band by a rounding error


def wilson(k: int, n: int, conf: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion: k successes of n. (0, 1) when n is 0: nothing is known."""
    _check_counts(k, n)
    _check_share("conf", conf)
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + conf / 2)
    p, z2 = k / n, z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # at k = 0 and k = n the interval ends at 0 and 1 exactly; rounding must not hide that
    return (0.0 if k == 0 else max(0.0, centre - half)), (1.0 if k == n else min(1.0, centre + half))


def beta_probability_in_band(k: int, n: int, low: float, high: float, a: float = 1.0, b: float = 1.0) -> float:
    """Posterior probability that the true pass rate lies in [low, high], after k passes in n binary rollouts.

    The prior is Beta(a, b); the default is uniform. The posterior is Beta(a + k, b + n − k).
    """
    _check_counts(k, n)
    _check_band(low, high)
    if not (a > 0 and b > 0):
        raise ValueError(f"a Beta prior needs a > 0 and b > 0, not a={a}, b={b}")
    alpha, beta = a + k, b + n - k
    return max(0.0, beta_cdf(high, alpha, beta) - beta_cdf(low, alpha, beta))


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X ≤ x) for X ~ Beta(a, b): the regularized incomplete beta function (continued fraction, modified Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side of the mode
        return 1.0 - beta_cdf(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / (a * _beta_fraction(x, a, b))


def _beta_fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, 10_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or tiny)
        c = (1 + term / c) or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value
    raise ArithmeticError(f"the incomplete beta function did not converge at x={x}, a={a}, b={b}")


def bayesian_bootstrap_in_band(
    rewards: Sequence[float],
    low: float,
    high: float,
    draws: int = 4000,
    seed: int = 0,
    *,
    at_one: float = 1.0,
    at_zero: float = 1.0,
) -> float:
    """Posterior probability that the true mean of rewards in [0, 1] lies in [low, high] (Bayesian bootstrap).

    Weights over the observed rewards are Dirichlet(1, …, 1) as in Rubin (1981). His prior is the limit of no
    prior weight at all, under which four equal rewards leave no doubt. The prior stated here adds `at_one` worth of
    observations at reward 1 and `at_zero` at reward 0 (1 each by default), so that with binary rewards the posterior
    is exactly the one of `beta_probability_in_band(k, n, low, high, at_one, at_zero)`. 0 and 0 give Rubin's.
    Monte Carlo error of the answer: at most 0.5 / sqrt(draws).
    """
    import numpy as np

    _check_band(low, high)
    values = _finite(rewards, "rewards")
    if values.size and (values.min() < 0 or values.max() > 1):
        raise ValueError(f"rewards must lie in [0, 1], not {values.tolist()}")
    if at_one < 0 or at_zero < 0 or values.size + at_one + at_zero == 0:
        raise ValueError("the Bayesian bootstrap needs a reward or a prior (at_one, at_zero ≥ 0)")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, not {draws}")
    atoms = np.concatenate([values, [1.0] * (at_one > 0), [0.0] * (at_zero > 0)])
    weights = [1.0] * values.size + [w for w in (at_one, at_zero) if w > 0]
    gammas = np.random.default_rng(seed).gamma(weights, size=(draws, len(weights)))
    means = gammas @ atoms / gammas.sum(axis=1)
    return float(np.mean((means >= low - EDGE) & (means <= high + EDGE)))


def bootstrap_interval(
    values: Sequence[float],
    fn: Callable[[np.ndarray], float] | None = None,
    conf: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval of `fn(values)` (the mean by default). (nan, nan) when there are no values.

    `fn` takes a one-dimensional array. With fewer than about ten values such an interval is too narrow.
    """
    import numpy as np

    _check_share("conf", conf)
    data = _finite(values, "values")
    if data.size == 0:
        return math.nan, math.nan
    if draws < 1:
        raise ValueError(f"draws must be at least 1, not {draws}")
    picks = np.random.default_rng(seed).integers(data.size, size=(draws, data.size))
    stats = data[picks].mean(axis=1) if fn is None else np.array([fn(data[row]) for row in picks], dtype=float)
    low, high = np.quantile(stats, [(1 - conf) / 2, (1 + conf) / 2])
    return float(low), float(high)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate that at least one of k attempts passes, from n attempts of which c passed: 1 − C(n−c, k)/C(n, k)."""
    _check_counts(c, n)
    if not 1 <= k <= n:
        raise ValueError(f"pass@{k} cannot be estimated from {n} attempts: k must be between 1 and n")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation (ddof 0) of at least one finite value."""
    if not values:
        raise ValueError("no values: a mean needs at least one")
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def near_edge(mean: float, low: float = 0.25, high: float = 0.75, margin: float = 0.15) -> bool:
    """Whether a mean of the first rollouts lies within `margin` of an edge of the band, so that more are drawn."""
    return min(abs(mean - low), abs(mean - high)) <= margin + EDGE


def in_band(mean: float, std: float, low: float = 0.25, high: float = 0.75, min_std: float = 0.1) -> bool:
    """The gate's last word: mean in [low, high] and population standard deviation at least `min_std`."""
    return low - EDGE <= mean <= high + EDGE and std >= min_std - EDGE


def admission_probability(
    true_mean: float,
    *,
    first: int = 4,
    total: int = 8,
    low: float = 0.25,
    high: float = 0.75,
    margin: float = 0.15,
    min_std: float = 0.1,
) -> float:
    """Probability that calibration keeps a task of this true pass rate, binary rewards, by exact enumeration.

    The staged rule: `first` rollouts; up to `total` when their mean is `near_edge`; keep when `in_band`.
    With the defaults, 0.10, 0.25, 0.5 and 0.9 are kept with probability 0.15, 0.55, 0.84 and 0.15.
    """
    if not 0 <= true_mean <= 1:
        raise ValueError(f"a true pass rate lies in [0, 1], not {true_mean}")
    if not 1 <= first <= total:
        raise ValueError(f"first={first} rollouts cannot come out of total={total}")
    _check_band(low, high)

    def keep(passes: int, n: int) -> bool:
        rate = passes / n
        return in_band(rate, math.sqrt(rate * (1 - rate)), low, high, min_std)

    def binomial(k: int, n: int) -> float:
        return math.comb(n, k) * true_mean**k * (1 - true_mean) ** (n - k)

    answer, more = 0.0, total - first
    for k in range(first + 1):
        if more and near_edge(k / first, low, high, margin):
            kept = math.fsum(binomial(j, more) for j in range(more + 1) if keep(k + j, total))
        else:
            kept = float(keep(k, first))
        answer += binomial(k, first) * kept
    return answer


def _check_counts(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count: 0 ≤ k ≤ n is needed")


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1 (0.95 for 95 %), not {value}")


def _check_band(low: float, high: float) -> None:
    if not 0 <= low <= high <= 1:
        raise ValueError(f"a band needs 0 ≤ low ≤ high ≤ 1, not [{low}, {high}]")


def _finite(values: Sequence[float], name: str) -> np.ndarray:
    import numpy as np

    data = np.asarray(list(values), dtype=float)
    if not np.isfinite(data).all():
        raise ValueError(f"{name} must be finite numbers, not {data.tolist()}")
    return data
