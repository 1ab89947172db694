"""The loss by hand, against the float64 reference, and where it must be something well known."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the loss needs torch (extra `train`)")

from tests.training import float64_reference as reference  # noqa: E402
from tests.training.rollouts import rollout  # noqa: E402
from workbench.training.advantages import centred  # noqa: E402
from workbench.training.dppo import TrustRegion, binary_divergence, dppo_loss, kept  # noqa: E402
from workbench.training.pprs import turn_advantages  # noqa: E402


def one(pi, mu, advantage, **region):
    """(loss, gradient by log π) of one token."""
    logprob = torch.tensor([math.log(pi)], requires_grad=True)
    loss = dppo_loss(
        logprob, torch.tensor([math.log(mu)]), torch.tensor([advantage]), torch.tensor([True]), denominator=1.0,
        region=TrustRegion(**region),
    )  # fmt: skip
    loss.value.backward()
    return loss.value.item(), logprob.grad.item()


@pytest.mark.parametrize(
    ("pi", "mu", "advantage", "withheld"),
    [
        (0.45, 0.30, 1.0, True),  # 0.15 above and pushed up
        (0.45, 0.30, -1.0, False),  # 0.15 above, but pushed back
        (0.30, 0.45, -1.0, True),
        (0.30, 0.45, 1.0, False),
        (0.39, 0.30, 1.0, False),  # within δ = 0.1
        (0.0901, 0.0001, 1.0, False),  # a ratio of 901, within δ: PPO's clip would stop it, DPPO does not
    ],
)
def test_only_updates_that_lead_further_away_are_withheld(pi, mu, advantage, withheld):
    loss, gradient = one(pi, mu, advantage)
    wanted = 0.0 if withheld else -pi / mu * advantage
    assert loss == pytest.approx(wanted, rel=1e-4)
    assert gradient == pytest.approx(wanted, rel=1e-4)


def test_binary_kl_by_hand():
    got = binary_divergence(torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)]), "kl").item()
    assert got == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5), abs=1e-6)  # 0.1308
    assert one(0.5, 0.25, 1.0, divergence="kl")[1] == 0.0
    assert one(0.5, 0.25, 1.0, divergence="kl", delta=0.14)[1] == pytest.approx(-2.0)
    assert one(0.5, 0.25, -1.0, divergence="kl")[1] == pytest.approx(2.0)


@pytest.mark.parametrize("divergence", ["tv", "kl"])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_reference_to_a_millionth(divergence, seed):
    rng = np.random.default_rng(seed)
    n, vocabulary, temperature = 400, 11, 0.7
    delta = {"tv": 0.1, "kl": 0.05}[divergence]
    ids = rng.integers(0, vocabulary, n)
    now, then = (rng.normal(0, 2, (n, vocabulary)) for _ in range(2))
    sampling = reference.log_softmax_of(0.6 * now + 0.4 * then, ids, temperature)
    advantages, sampled = rng.normal(0, 1, n), rng.random(n) < 0.7
    logits = torch.tensor(now, dtype=torch.float32)
    logprobs = (logits / temperature).log_softmax(-1)[torch.arange(n), torch.tensor(ids)].detach().requires_grad_()
    loss = dppo_loss(
        logprobs, torch.tensor(sampling, dtype=torch.float32), torch.tensor(advantages), torch.tensor(sampled),
        denominator=250.0, region=TrustRegion(divergence=divergence),
    )  # fmt: skip
    loss.value.backward()
    exact = reference.log_softmax_of(now, ids, temperature)
    wanted, gradient, withheld = reference.dppo(exact, sampling, advantages, sampled, 250.0, divergence, delta)
    assert withheld > 5
    assert loss.masked.item() == withheld
    assert loss.tokens.item() == sampled.sum()
    scale = max(1.0, np.abs(gradient).max())
    assert loss.value.item() == pytest.approx(wanted, abs=1e-6 * scale)
    np.testing.assert_allclose(logprobs.grad.numpy(), gradient, atol=1e-6 * scale)


def test_advantages_agree_with_the_reference():
    rng = np.random.default_rng(3)
    rewards = rng.random(16)
    np.testing.assert_allclose(centred(rewards.tolist()), reference.equation_3(rewards), atol=1e-12)
    group = []
    for number in range(9):
        phi = tuple(np.round(rng.random(rng.integers(1, 7)), 3).tolist())
        group.append(rollout(str(number), turns=len(phi), progress=phi, passed=number % 3 == 0, submitted=True))
    got = turn_advantages(group)
    wanted = reference.per_turn_index([(r.progress, r.passed) for r in group], 0.25)
    for member, values in zip(group, wanted, strict=True):
        np.testing.assert_allclose(got[member.id], values, atol=1e-12)


def batch(seed=0, shape=(4, 9), vocabulary=13):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*shape, vocabulary, generator=generator)
    ids = torch.randint(0, vocabulary, shape, generator=generator)
    sampled = torch.rand(shape, generator=generator) < 0.6
    advantages = torch.randn(shape[0], 1, generator=generator).expand(shape)
    return logits, ids, sampled, advantages


def logprobs_of(logits, ids):
    return logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]


@pytest.mark.parametrize("delta", [0.1, math.inf])
def test_on_policy_data_gives_the_plain_policy_gradient(delta):
    logits, ids, sampled, advantages = batch()
    ours = logits.clone().requires_grad_()
    now = logprobs_of(ours, ids)
    region = TrustRegion(delta=delta)
    dppo_loss(now, now.detach(), advantages, sampled, denominator=7.0, region=region).value.backward()
    plain = logits.clone().requires_grad_()
    (-(logprobs_of(plain, ids) * advantages * sampled).sum() / 7.0).backward()
    torch.testing.assert_close(ours.grad, plain.grad, atol=1e-7, rtol=1e-6)


def test_an_infinite_delta_off_policy_is_importance_weighting_alone():
    logits, ids, _sampled, advantages = batch()
    sampling = logprobs_of(batch(seed=1)[0], ids)
    keep, _ = kept(logprobs_of(logits, ids), sampling, advantages, TrustRegion(delta=math.inf))
    assert keep.all()


def test_what_was_not_sampled_never_matters():
    logprobs = torch.tensor([-1.0, float("nan"), -float("inf")], requires_grad=True)
    sampling, advantages = torch.tensor([-1.0, 0.0, float("nan")]), torch.tensor([2.0, float("nan"), 1e9])
    loss = dppo_loss(logprobs, sampling, advantages, torch.tensor([True, False, False]), denominator=1.0)
    loss.value.backward()
    assert loss.value.item() == -2.0
    assert logprobs.grad.tolist() == [-2.0, 0.0, 0.0]


def test_the_loss_of_parts_sums_to_the_loss_of_the_whole():
    logits, ids, sampled, advantages = batch(shape=(6, 20))
    now, sampling = logprobs_of(logits, ids), logprobs_of(batch(seed=2, shape=(6, 20))[0], ids)
    whole = dppo_loss(now, sampling, advantages, sampled, denominator=33.0).value
    parts = sum(dppo_loss(now[i], sampling[i], advantages[i], sampled[i], denominator=33.0).value for i in range(6))
    torch.testing.assert_close(whole, parts)


def test_a_ratio_cap_weighs_less_and_still_pushes():
    assert one(0.09, 0.001, 1.0)[1] == pytest.approx(-90.0, rel=1e-4)
    assert one(0.09, 0.001, 1.0, ratio_cap=20.0)[1] == pytest.approx(-20.0, rel=1e-4)


@pytest.mark.parametrize("wrong", [{"divergence": "js"}, {"delta": -0.1}, {"ratio_cap": 0.5}])
def test_regions_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TrustRegion(**wrong)
