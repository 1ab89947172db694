"""One optimizer step: what it moves, that it is the plain and TRL's gradient where it must be, and that it resumes bit for bit."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch", reason="the learner needs torch (extra `train`)")
pytest.importorskip("accelerate", reason="the learner needs accelerate (extra `train`)")

from tests.training.tiny_policy import own_logprobs, sampled_rollouts, tiny_policy  # noqa: E402
from workbench.training import pprs  # noqa: E402
from workbench.training.advantages import by_group, token_advantages  # noqa: E402
from workbench.training.batches import samples_of  # noqa: E402
from workbench.training.settings import UpdateSettings, settings_from  # noqa: E402
from workbench.training.trainer import PLAIN, Learner  # noqa: E402

# a test that looks at the gradient instead of stepping makes torch suspect a wrong order
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
PPRS = {"solver": pprs.credit(), "proposer": PLAIN["proposer"]}


def settings(**changes):
    return UpdateSettings(**{"denominator": 100.0, "learning_rate": 1e-3, "token_budget": 120} | changes)


def learner(seed=0, **changes):
    return Learner(tiny_policy(seed), settings(**changes), cpu=True)


def vector(model):
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def chance(model, samples):
    """Σ A log π over the sampled tokens: what a step on on-policy data raises."""
    total = 0.0
    for s in samples:
        logprobs = own_logprobs(model, list(s.segment.ids))
        total += sum(a * lp for a, lp in zip(s.advantages, logprobs, strict=True))
    return total


def test_a_step_raises_what_was_better_and_reports_what_it_did():
    one = learner()
    rollouts = sampled_rollouts(one.policy, 3, 5)
    samples = samples_of(token_advantages(by_group(rollouts), PPRS))
    before, weights = chance(one.policy, samples), vector(one.policy)
    done, chosen = one.update(rollouts, PPRS)
    assert done.stepped
    assert (done.version, done.groups, done.dropped, done.staleness) == (1, 3, 0, 0)
    assert chance(one.policy, samples) > before
    assert not torch.equal(vector(one.policy), weights)
    assert done.ratio == pytest.approx(1.0, abs=1e-4)  # on-policy
    assert (done.divergence, done.masked) == (pytest.approx(0.0, abs=1e-4), 0.0)
    assert done.tokens == sum(sum(s.segment.sampled) for s in samples)
    assert done.solver_tokens + done.proposer_tokens == sum(r.tokens for r in rollouts)
    assert 0 < done.lone_share < 1
    assert set(chosen.kept) == {"g0", "g1", "g2"}
    assert math.isfinite(done.to_row()["grad_norm"])


def test_both_roles_share_the_step_and_a_token_weighs_the_same_in_either():
    base = learner(max_grad_norm=0)
    rollouts = sampled_rollouts(base.policy, 2, 4)

    def gradient(which):
        one = learner(max_grad_norm=0)
        found = {}
        one.optimizer.step = lambda: found.update(g=torch.cat([p.grad.flatten() for p in one.policy.parameters()]))
        one.update(which)
        return found["g"]

    both = gradient(rollouts)
    apart = [gradient([r for r in rollouts if r.role == role]) for role in ("solver", "proposer")]
    torch.testing.assert_close(both, apart[0] + apart[1], atol=1e-7, rtol=1e-4)
    renamed = gradient([replace(r, role="solver") for r in rollouts if r.role == "proposer"])
    torch.testing.assert_close(apart[1], renamed)


def test_nothing_to_learn_from_moves_nothing():
    one = learner()
    weights = vector(one.policy)
    flat = [replace(r, reward=0.5) for r in sampled_rollouts(one.policy, 2, 3)]
    done, chosen = one.update(flat)
    assert not done.stepped
    assert "no group varies" in done.reason
    assert chosen.dropped == {"g0": "no-variation", "g1": "no-variation"}
    assert torch.equal(vector(one.policy), weights)
    assert one.version == 0


def test_a_gradient_that_is_not_finite_moves_nothing():
    one = learner()
    weights = vector(one.policy)
    broken = [replace(r, reward=r.reward * 1e38) for r in sampled_rollouts(one.policy, 2, 3)]
    done, _ = one.update(broken)
    assert not done.stepped
    assert "norm" in done.reason
    assert torch.equal(vector(one.policy), weights)


def test_tokens_that_went_too_far_are_withheld():
    one = learner(seed=1, learning_rate=3e-2)
    rollouts = sampled_rollouts(one.policy, 2, 6)
    masked = [
        one.update(rollouts)[0].masked for _ in range(4)
    ]  # the same batch again and again is ever more off-policy
    assert masked[0] == 0.0
    assert masked[-1] > 0.05


@pytest.mark.parametrize("scheme", ["terminal", "pooled", "direct"])
def test_every_shaping_variant_trains(scheme):
    one = learner()
    rollouts = [replace(r, passed=i % 2 == 0) for i, r in enumerate(sampled_rollouts(one.policy, 2, 4))]
    credit = {role: pprs.credit(scheme) for role in ("solver", "proposer")}
    done, _ = one.update(rollouts, credit, pprs.group_value(scheme))
    assert done.stepped


def test_temperature_is_that_of_the_rollouts():
    one = learner(temperature=0.7)
    done, _ = one.update(sampled_rollouts(one.policy, 2, 4, temperature=0.7))
    assert done.ratio == pytest.approx(1.0, abs=1e-4)
    other = learner(temperature=1.0)
    done, _ = other.update(sampled_rollouts(other.policy, 2, 4, temperature=0.7))
    assert done.divergence > 0.003


def test_weights_stay_float32_and_bf16_is_arithmetic_only():
    one = Learner(tiny_policy(0).bfloat16(), settings(precision="bf16", learning_rate=1e-6), cpu=True)
    before = vector(one.policy)
    done, _ = one.update(sampled_rollouts(tiny_policy(0), 2, 4))
    assert before.dtype == torch.float32
    assert done.divergence < 0.05
    moved = (vector(one.policy) - before).abs()
    assert 0 < moved.max() <= 2e-6  # steps that bf16 weights would have lost


def test_recomputed_activations_and_packing_change_nothing():
    rollouts = sampled_rollouts(tiny_policy(0), 2, 4)
    plain = learner()
    wanted = plain.update(rollouts)[0]
    for changes in ({"gradient_checkpointing": True}, {"layout": "packed"}):
        one = learner(**changes)
        got = one.update(rollouts)[0]
        assert (got.loss, got.grad_norm) == (
            pytest.approx(wanted.loss, abs=1e-5),
            pytest.approx(wanted.grad_norm, rel=1e-4),
        )
        torch.testing.assert_close(vector(one.policy), vector(plain.policy), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"top_p": 0.9}, "top_p=1"), ({"top_k": 20}, "top_k=0"), ({"temperature": 0.0}, "greedy"),
        ({"denominator": 0.0}, "positive"), ({"warmup_steps": 5}, "no effect"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        settings(**wrong)


def test_settings_come_from_a_profile():
    got = settings_from({"denominator": 5, "betas": [0.9, 0.95], "solver": "x"})
    assert (got.denominator, got.betas) == (5, (0.9, 0.95))
    with pytest.raises(ValueError, match="needs `denominator`"):
        settings_from({"learning_rate": 1e-6})


# -- resuming ---------------------------------------------------------------------------------------------------------


def draws():
    return random.random(), np.random.random(), torch.rand(1).item()


def serial_updates(one, count):
    """Rollouts are drawn from the global generators, as a serial deterministic run draws them."""
    for _ in range(count):
        one.update(sampled_rollouts(one.policy, 2, 4, seed=int(random.random() * 1e9), version=one.version))


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_a_resumed_run_takes_the_same_next_step_bit_for_bit(tmp_path, precision):
    random.seed(7), np.random.seed(7), torch.manual_seed(7)
    one = learner(schedule="constant_with_warmup", warmup_steps=5, precision=precision)
    serial_updates(one, 2)
    pool = {"active": ["a", "b"], "mean": 0.1 + 0.2}
    one.save(tmp_path, {"pool": pool, "curriculum": [1, 2]})
    serial_updates(one, 2)
    wanted, told = vector(one.policy), draws()
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    other = learner(seed=5, schedule="constant_with_warmup", warmup_steps=5, precision=precision)
    blobs = other.load(tmp_path)
    assert blobs == {"pool": pool, "curriculum": [1, 2]}
    assert other.version == 2
    serial_updates(other, 2)
    assert torch.equal(vector(other.policy), wanted)
    assert draws() == told
    mine, theirs = one.optimizer.state_dict()["state"], other.optimizer.state_dict()["state"]
    assert all(torch.equal(mine[k][n], theirs[k][n]) for k in mine for n in ("exp_avg", "exp_avg_sq", "step"))
    assert other.optimizer.param_groups[0]["lr"] == one.optimizer.param_groups[0]["lr"]


def test_nothing_to_resume_from_is_none(tmp_path):
    assert learner().load(tmp_path) is None


def test_the_saved_model_is_a_transformers_folder(tmp_path):
    from transformers import AutoModelForCausalLM

    one = learner()
    one.update(sampled_rollouts(one.policy, 2, 4))
    folder = one.save_model(tmp_path / "policy")
    back = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.equal(vector(back), vector(one.policy))
    assert one.weights().keys() >= {"model.norm.weight"}


# -- TRL ----------------------------------------------------------------------------------------------------------------


def trl_trainer(model, folder):
    """TRL's own trainer on the same weights; its loss is called with tensors, its generation is never used."""
    import logging

    from tests.models.tiny import tiny_tokenizer

    grpo = pytest.importorskip("trl", reason="compared with TRL (extra `train`)")
    from datasets import Dataset

    logging.getLogger("trl").setLevel(logging.ERROR)
    config = grpo.GRPOConfig(
        output_dir=str(folder), loss_type="dr_grpo", scale_rewards=False, beta=0.0, temperature=1.0,
        per_device_train_batch_size=4, num_generations=4, max_completion_length=25, use_cpu=True, bf16=False,
        report_to=[], save_strategy="no",
    )  # fmt: skip
    return grpo.GRPOTrainer(
        model=model, args=config, processing_class=tiny_tokenizer(), reward_funcs=lambda completions, **_: [0.0],
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 4),
    )  # fmt: skip


def test_on_policy_gradient_is_that_of_trl_with_centred_rewards(tmp_path):
    """dr_grpo is TRL's loss with a constant denominator (rows times max_completion_length), as ours; centred rewards
    are its scale_rewards=False. Single-turn rollouts: one group of four."""
    model = tiny_policy(2)
    rollouts = [r for r in sampled_rollouts(model, 1, 12) if len(r.segments) == 1][:4]
    samples = samples_of(token_advantages(by_group(rollouts), PLAIN))
    assert len(samples) == 4
    width = max(map(len, samples))
    ids, keep, tool = (torch.zeros(4, width - 1, dtype=torch.long) for _ in range(3))
    prompts = torch.tensor([[s.segment.ids[0]] for s in samples])
    for row, s in enumerate(samples):
        n = len(s) - 1
        ids[row, :n], keep[row, :n] = torch.tensor(s.segment.ids[1:]), 1
        tool[row, :n] = torch.tensor(s.segment.sampled[1:]).long()
    trainer = trl_trainer(model, tmp_path)
    trainer.current_gradient_accumulation_steps = 1
    advantages = torch.tensor([max(s.advantages, key=abs) for s in samples])
    rewards = torch.tensor([r.reward for r in rollouts])
    torch.testing.assert_close(advantages, rewards - rewards.mean())
    inputs = {
        "prompt_ids": prompts, "prompt_mask": torch.ones_like(prompts), "completion_ids": ids, "completion_mask": keep,
        "tool_mask": tool, "advantages": advantages,
    }  # fmt: skip
    trainer._compute_loss(trainer.model, inputs).backward()
    theirs = {n: p.grad.clone() for n, p in trainer.model.named_parameters()}
    found = {}
    one = Learner(tiny_policy(2), settings(denominator=4 * 25.0, max_grad_norm=0, delta=math.inf), cpu=True)
    one.optimizer.step = lambda: found.update({n: p.grad.clone() for n, p in one.policy.named_parameters()})
    one.step(samples)
    assert found.keys() == theirs.keys()
    assert max(g.abs().max() for g in theirs.values()) > 1e-4
    for name, gradient in theirs.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-6, rtol=1e-4)
