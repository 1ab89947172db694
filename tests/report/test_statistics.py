"""Every number here was worked out by hand or follows from a closed form named beside it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.statistics import (
    admission_probability,
    bayesian_bootstrap_in_band,
    beta_cdf,
    beta_probability_in_band,
    bootstrap_interval,
    in_band,
    mean_std,
    near_edge,
    pass_at_k,
    wilson,
)


def test_wilson_published_example():
    # 5 of 10 at z = 1.959964: centre 0.5, half = z/(1+z²/10)·sqrt(0.025+z²/400) = 0.26341
    low, high = wilson(5, 10)
    assert (low, high) == pytest.approx((0.236593, 0.763407), abs=1e-6)


def test_wilson_ends():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(0, 10)  # high = z²/(n+z²)
    assert low == 0.0
    assert high == pytest.approx(3.841459 / 13.841459, abs=1e-6)
    assert wilson(10, 10)[1] == 1.0
    assert wilson(10, 10)[0] == pytest.approx(1 - high)


@pytest.mark.parametrize(("k", "n"), [(-1, 4), (5, 4), (0, -1)])
def test_counts_are_checked(k, n):
    with pytest.raises(ValueError, match="no count"):
        wilson(k, n)


def test_beta_without_data_is_the_uniform_prior():
    assert beta_probability_in_band(0, 0, 0.25, 0.75) == pytest.approx(0.5)


def test_beta_posterior_closed_form():
    # Beta(3, 3): cdf(x) = 10x³ − 15x⁴ + 6x⁵; symmetric, so P(0.25..0.75) = 1 − 2·cdf(0.25)
    cdf = 10 * 0.25**3 - 15 * 0.25**4 + 6 * 0.25**5
    assert beta_probability_in_band(2, 4, 0.25, 0.75) == pytest.approx(1 - 2 * cdf)
    # Beta(1, 5): cdf(x) = 1 − (1−x)^5
    assert beta_probability_in_band(0, 4, 0.25, 0.75) == pytest.approx(0.75**5 - 0.25**5)


def test_beta_cdf_half_integer_is_the_arcsine_law():
    for x in (0.01, 0.2, 0.5, 0.9, 0.999):
        assert beta_cdf(x, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)), abs=1e-12)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.001, 0.999))
def test_beta_cdf_equals_a_binomial_tail(a, b, x):
    n = a + b - 1
    tail = math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert beta_cdf(x, a, b) == pytest.approx(tail, abs=1e-10)


def test_beta_cdf_large_counts():
    assert beta_cdf(0.5, 5000, 5000) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("passes", [0, 1, 2, 3, 4])
def test_bayesian_bootstrap_of_binary_rewards_is_the_beta_posterior(passes):
    rewards = [1.0] * passes + [0.0] * (4 - passes)
    exact = beta_probability_in_band(passes, 4, 0.25, 0.75)
    assert bayesian_bootstrap_in_band(rewards, 0.25, 0.75, draws=40_000) == pytest.approx(exact, abs=0.01)


def test_bayesian_bootstrap_without_prior_is_certain_of_equal_rewards():
    assert bayesian_bootstrap_in_band([0.5] * 4, 0.25, 0.75, at_one=0, at_zero=0) == 1.0
    assert bayesian_bootstrap_in_band([0.5] * 4, 0.25, 0.75) < 1.0  # the stated prior leaves a doubt


def test_bayesian_bootstrap_is_seeded():
    rewards = [0.2, 0.4, 0.9]
    assert bayesian_bootstrap_in_band(rewards, 0, 0.5, seed=3) == bayesian_bootstrap_in_band(rewards, 0, 0.5, seed=3)
    assert bayesian_bootstrap_in_band(rewards, 0, 0.5, seed=3) != bayesian_bootstrap_in_band(rewards, 0, 0.5, seed=4)


@pytest.mark.parametrize("bad", [[1.5], [-0.1], [math.nan], [math.inf]])
def test_bayesian_bootstrap_refuses_what_is_no_reward(bad):
    with pytest.raises(ValueError, match="must"):
        bayesian_bootstrap_in_band(bad, 0.25, 0.75)


def test_bootstrap_interval():
    assert bootstrap_interval([0.5] * 10) == (0.5, 0.5)
    low, high = bootstrap_interval([0.0, 1.0] * 50)
    # standard error 0.05, so about 0.5 ± 0.098
    assert low == pytest.approx(0.402, abs=0.02)
    assert high == pytest.approx(0.598, abs=0.02)
    assert bootstrap_interval([1, 2, 3], fn=max) == (1.0, 3.0)
    assert all(math.isnan(v) for v in bootstrap_interval([]))


def test_pass_at_k():
    assert pass_at_k(4, 1, 1) == 0.25
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6)  # both failures drawn: 1 of 6 pairs
    assert pass_at_k(4, 0, 4) == 0.0
    assert pass_at_k(4, 4, 1) == 1.0
    with pytest.raises(ValueError, match="pass@5 cannot be estimated from 4"):
        pass_at_k(4, 2, 5)


@given(st.integers(1, 12), st.data())
def test_pass_at_k_is_the_mean_over_subsets(n, data):
    from itertools import combinations

    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, min(n, 4)))
    outcomes = [1] * c + [0] * (n - c)
    subsets = list(combinations(outcomes, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_mean_std_is_the_populations():
    assert mean_std([0.0, 1.0]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="at least one"):
        mean_std([])


def test_edges_of_the_band_are_inside():
    assert in_band(0.25, 0.1)
    assert in_band(0.75, 0.1)
    assert not in_band(0.2499, 0.2)
    assert not in_band(0.5, 0.0999)
    assert near_edge(0.4)  # 0.4 − 0.25 is 0.15000000000000002 in floating point
    assert near_edge(0.1)
    assert not near_edge(0.5)
    assert not near_edge(0.0)


@pytest.mark.parametrize(("rate", "expected"), [(0.10, 0.15), (0.25, 0.55), (0.5, 0.84), (0.9, 0.15)])
def test_operating_curve_of_the_gate(rate, expected):
    assert admission_probability(rate) == pytest.approx(expected, abs=0.006)


def test_operating_curve_by_hand():
    # p = 0.5: k=2 kept (6/16); k=1 and k=3 (8/16) go on, and are lost only when all four more fail or pass (1/16)
    assert admission_probability(0.5) == pytest.approx(6 / 16 + 8 / 16 * 15 / 16)
    assert admission_probability(0.0) == 0.0
    assert admission_probability(1.0) == 0.0
    assert admission_probability(0.3) == pytest.approx(admission_probability(0.7))


def test_operating_curve_agrees_with_simulation():
    import numpy as np

    rng, n, kept = np.random.default_rng(0), 20_000, 0
    for row in rng.random((n, 8)) < 0.3:
        used = row[:4] if not near_edge(row[:4].mean()) else row
        kept += in_band(used.mean(), used.std())
    assert kept / n == pytest.approx(admission_probability(0.3), abs=0.012)
