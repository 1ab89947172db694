"""A real but tiny policy, and rollouts that it sampled itself (every log-probability is its own, at a temperature)."""

from __future__ import annotations

import random

import torch

from workbench.models.segments import Segment
from workbench.training.records import Rollout

VOCABULARY = 48


def tiny_policy(seed: int = 0, *, tied: bool = True, hidden: int = 32, layers: int = 2):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return LlamaForCausalLM(config)


@torch.no_grad()
def own_logprobs(model, ids, temperature: float = 1.0) -> list[float]:
    """Of each id given those before it; 0.0 for the first. One sequence at a time, no padding, all logits."""
    logits = model(input_ids=torch.tensor([ids])).logits[0].double() / temperature
    rows = logits.log_softmax(-1)
    return [0.0, *(rows[i - 1, ids[i]].item() for i in range(1, len(ids)))]


def sampled_segment(
    model, rng: random.Random, turns: int, *, temperature: float = 1.0, version: int = 0, first: int = 0
):
    """Prompt and answer by turns; answers of random length, random ids, with the model's own log-probabilities."""
    ids, sampled, index = [], [], []
    for turn in range(first, first + turns):
        for drawn, count in ((False, rng.randint(2, 6)), (True, rng.randint(1, 7))):
            ids += [rng.randrange(VOCABULARY) for _ in range(count)]
            sampled += [drawn] * count
            index += [turn if drawn else -1] * count
    logprobs = [lp if drawn else 0.0 for lp, drawn in zip(own_logprobs(model, ids, temperature), sampled, strict=True)]
    versions = [version if drawn else -1 for drawn in sampled]
    return Segment(tuple(ids), tuple(sampled), tuple(logprobs), tuple(index), tuple(versions))


def sampled_rollouts(
    model, groups: int = 2, size: int = 4, *, seed: int = 0, temperature: float = 1.0, version: int = 0
):
    """Solver groups, the last one a proposer's; 1–4 turns; every third rollout in two segments."""
    rng = random.Random(seed)
    out = []
    for group in range(groups):
        role = "proposer" if group == groups - 1 else "solver"
        for number in range(size):
            turns = rng.randint(1, 4)
            parts = [(0, turns)] if number % 3 or turns < 2 else [(0, 1), (1, turns - 1)]
            segments = [
                sampled_segment(model, rng, count, temperature=temperature, version=version, first=first)
                for first, count in parts
            ]
            out.append(
                Rollout(
                    id=f"g{group}-{number}",
                    group=f"g{group}",
                    role=role,
                    segments=tuple(segments),
                    reward=round(rng.random(), 3),
                    submitted=True,
                    progress=tuple(round(rng.random(), 3) for _ in range(turns)),
                )
            )
    return out
