"""However tokens are laid out and cut, the model reads the same sequences and the gradient is the same sum."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="batches need torch (extra `train`)")
pytest.importorskip("transformers", reason="the policy is a transformers model (extra `train`)")

from tests.training.tiny_policy import own_logprobs, sampled_rollouts, tiny_policy  # noqa: E402
from workbench.training.advantages import by_group, token_advantages, whole_rollout  # noqa: E402
from workbench.training.batches import (  # noqa: E402
    Sample,
    deal,
    micro_batches,
    packed,
    padded,
    samples_of,
    token_logprobs,
)
from workbench.training.dppo import dppo_loss  # noqa: E402
from workbench.training.head import Head  # noqa: E402

CREDIT = {"solver": whole_rollout, "proposer": whole_rollout}


@pytest.fixture(scope="module")
def policy():
    return tiny_policy(3)


@pytest.fixture(scope="module")
def samples(policy):
    return samples_of(token_advantages(by_group(sampled_rollouts(policy, 3, 5, seed=1, temperature=0.8)), CREDIT))


@pytest.mark.parametrize("lay", [padded, packed])
def test_every_sampled_token_gets_the_log_probability_it_has_alone(policy, samples, lay):
    for temperature in (1.0, 0.8):
        batch = lay(samples[:6])
        got = token_logprobs(policy, batch, temperature)
        assert got.shape == batch.input_ids.shape
        values = got[batch.sampled].tolist()  # row by row, hence in the order of the samples
        wanted = [
            lp
            for s in samples[:6]
            for lp, drawn in zip(own_logprobs(policy, list(s.segment.ids), temperature), s.segment.sampled, strict=True)
            if drawn
        ]
        assert values == pytest.approx(wanted, abs=2e-5)
        if temperature == 0.8:  # and that is what it was sampled with
            assert values == pytest.approx(batch.logprobs[batch.sampled].tolist(), abs=2e-5)


def gradient(policy, batches, head=None):
    policy.zero_grad()
    for batch in batches:
        logprobs = token_logprobs(policy, batch, 0.8, head)
        loss = dppo_loss(logprobs, batch.logprobs - 0.3, batch.advantages, batch.sampled, denominator=50.0)
        loss.value.backward()
    return torch.cat([p.grad.flatten().clone() for p in policy.parameters()])


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_the_gradient_does_not_depend_on_the_micro_batches(policy, samples, layout):
    whole = gradient(policy, [padded(samples)])
    assert whole.abs().max() > 1e-3
    for budget in (1, 64, 100, 10_000):
        batches = micro_batches(samples, budget, layout)
        torch.testing.assert_close(gradient(policy, batches), whole, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_batches_keep_to_the_budget_and_hold_each_token_once(samples, layout):
    for budget in (40, 100, 333):
        batches = micro_batches(samples, budget, layout)
        assert all(b.size <= budget or b.size == max(map(len, samples)) or b.input_ids.shape[0] == 1 for b in batches)
        assert sum(int(b.sampled.sum()) for b in batches) == sum(sum(s.segment.sampled) for s in samples)
        total = sum(float(b.advantages.double().sum()) for b in batches)
        assert total == pytest.approx(sum(sum(s.advantages) for s in samples), abs=1e-4)
    assert len(micro_batches(samples, 1)) == len(samples)  # longer than the budget: a batch of its own
    if layout == "packed":
        assert sum(b.size for b in micro_batches(samples, 100, layout)) == sum(map(len, samples))  # no padding


def test_position_ids_start_again_with_each_segment(samples):
    row = packed(samples[:2]).position_ids[0].tolist()
    assert row == [*range(len(samples[0])), *range(len(samples[1]))]
    short = padded(samples)
    assert (short.position_ids[0].diff()[: len(samples[0]) - 1] == 1).all()
    assert short.attention_mask.sum().item() == sum(map(len, samples))


def test_every_process_has_as_many_batches_and_together_they_have_all(policy, samples):
    batches = micro_batches(samples, 64)
    whole = gradient(policy, batches)
    for processes in (2, 3, len(batches) + 1):
        shares = [deal(batches, rank, processes) for rank in range(processes)]
        assert len({len(s) for s in shares}) == 1
        torch.testing.assert_close(
            gradient(policy, [b for share in shares for b in share]), whole, atol=1e-6, rtol=1e-4
        )


def test_segments_without_advantage_are_left_out(policy):
    rollouts = sampled_rollouts(policy, 1, 3)
    credited = [(r, [[0.0] * len(s.ids) for s in r.segments]) for r in rollouts]
    assert samples_of(credited) == []
    with pytest.raises(ValueError, match="3 advantages"):
        Sample(rollouts[0].segments[0], (0.0, 1.0, 2.0))


def test_logits_are_float32_whatever_the_rest_runs_in():
    policy = tiny_policy(3).bfloat16()
    plain = policy(input_ids=torch.tensor([[1, 2, 3]])).logits
    assert plain.dtype == torch.bfloat16
    Head(policy)
    better = policy(input_ids=torch.tensor([[1, 2, 3]])).logits
    assert better.dtype == torch.float32
    torch.testing.assert_close(better, plain.float(), atol=0.1, rtol=0.02)
    with torch.autocast("cpu", torch.bfloat16):
        assert policy(input_ids=torch.tensor([[1, 2, 3]])).logits.dtype == torch.float32


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_a_head_that_is_asked_for_the_sampled_tokens_alone_gives_the_same_gradient(samples, tied, chunk):
    policy = tiny_policy(4, tied=tied)
    wanted = gradient(policy, micro_batches(samples, 100))
    head = Head(policy, chunk=chunk)
    for batches in (micro_batches(samples, 100), [b.silent() for b in micro_batches(samples, 100)]):
        found = gradient(policy, batches, head)
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-4)
        wanted = torch.zeros_like(wanted)  # silent batches take part and move nothing
    assert policy(input_ids=torch.tensor([[1, 2]])).logits.shape == (1, 2, 48)  # and afterwards it is a head again


def test_models_that_bend_their_logits_behind_the_head_keep_them(samples):
    policy = tiny_policy(4)
    policy.config.final_logit_softcapping = 5.0
    head = Head(policy)
    assert head.plain
    got = token_logprobs(policy, padded(samples[:3]), head=head)
    torch.testing.assert_close(got, token_logprobs(tiny_policy(4), padded(samples[:3])), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("wrong", "said"), [({"token_budget": 0}, "token_budget"), ({"layout": "ragged"}, "padded")])
def test_wrong_settings_are_named(samples, wrong, said):
    with pytest.raises(ValueError, match=said):
        micro_batches(samples, **{"token_budget": 10} | wrong)
