"""The calibration gate: the band, the spread, the second round of rollouts, and the error of the answer."""

from __future__ import annotations

import itertools

import pytest

from workbench.admission.calibration import Calibration, decide, posterior_in_band


def rule(**options):
    return Calibration(lambda i: None, **options)


@pytest.mark.parametrize(
    ("rewards", "keep", "kinds"),
    [
        ([0, 0, 1, 1], True, []),
        ([0.25, 0.5, 0.25, 0.5], True, []),
        ([0, 0, 0, 1], True, []),
        ([0, 0, 0, 0], False, ["too-hard"]),
        ([0, 0, 0, 0.9], False, ["too-hard"]),
        ([1, 1, 1, 1], False, ["too-easy"]),
        ([0.5, 0.5, 0.5, 0.5], False, ["no-spread"]),
        ([0.45, 0.55, 0.45, 0.55], False, ["no-spread"]),
        ([0.4, 0.6, 0.4, 0.6], True, []),
        ([0.1, 0.2, 0.3, 0.4] * 2, True, []),
    ],
)
def test_the_rule(rewards, keep, kinds):
    result = decide([float(r) for r in rewards], rule())
    assert result.keep is keep
    assert [reason.kind for reason in result.reasons] == kinds
    assert result.n == len(rewards)
    assert all(reason.stage == "calibration" and "mean" in reason.message for reason in result.reasons)


def test_the_standard_deviation_is_the_populations():
    assert decide([0.0, 1.0], rule(rollouts=2, more=2)).std == 0.5


def test_too_few_rewards_are_no_verdict():
    result = decide([1.0, 0.0], rule(), wanted=4, message="the host is gone")
    assert result.keep is None
    assert [reason.kind for reason in result.reasons] == ["too-few"]
    assert "2 of 4" in result.reasons[0].message
    assert "the host is gone" in result.reasons[0].message
    assert decide([], rule(), wanted=4).mean is None


def test_posterior_of_binary_rewards():
    sure = posterior_in_band([0.0, 1.0] * 50, rule())
    unsure = posterior_in_band([0.0, 1.0], rule())
    assert 0.99 < sure <= 1
    assert unsure == pytest.approx(11 / 16, abs=1e-6)  # ∫ 6p(1−p) over [1/4, 3/4]
    assert posterior_in_band([0.0] * 50, rule()) < 1e-4


def test_posterior_of_fractions_agrees_with_the_binary_one_in_its_limit():
    binary = posterior_in_band([0.0, 1.0, 0.0, 1.0], rule())
    nearly = posterior_in_band([0.0, 1.0, 0.0, 0.9999999], rule())
    assert nearly == pytest.approx(binary, abs=0.04)  # Monte Carlo error of 4,000 draws


def test_the_operating_curve_is_the_rules_own():
    calibration = rule()
    curve = calibration.operating_curve([0.10, 0.25, 0.5, 0.9])
    assert curve == pytest.approx([0.15, 0.55, 0.84, 0.15], abs=0.01)
    expected = sum(
        0.5**8 * bool(decide([float(b) for b in bits], rule(rollouts=8)).keep)
        for bits in itertools.product((0, 1), repeat=8)
    )
    assert rule(rollouts=8).operating_curve([0.5]) == pytest.approx([expected])


@pytest.mark.parametrize("options", [{"rollouts": 0}, {"rollouts": 9}, {"low": 0.8}, {"high": 1.2}])
def test_impossible_rules_are_refused(options):
    with pytest.raises(ValueError, match=r"rollouts|band"):
        rule(**options)
