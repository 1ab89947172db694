"""Tokens a second in an update: ours against TRL's GRPOTrainer, one after the other on the same model and sequences.

    python -m benchmarks training

A model of the micro size (1.9 M weights), 64 rollouts of 2–4 turns, of which the policy samples about a third. TRL's side
is the GRPOTrainer's own loss, backward pass, clipping and optimizer step on tensors laid out as it lays them out (prompts
left-padded, completions right-padded to the longest of the batch, `tool_mask` on what was not sampled), without the rest
of its loop, so that its numbers are at their best; "trimmed" lets it pad each micro-batch to its own longest, which it
does not do. Tokens are those of the sequences, without padding. Medians of rounds that take turns.
"""

from __future__ import annotations

import logging
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from workbench.runs.progress import progress

VOCABULARY, ROLLOUTS, ROWS, ROUNDS = 1024, 64, 8, 5


def run() -> list[dict[str, object]]:
    """Rows with `what`, `tokens_a_second` and, for ours, the ratio to TRL."""
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) - 1))  # on a busy machine more threads wait for the slowest
    rows = []
    for precision in ("no", "bf16"):
        rollouts = made_up(random.Random(0))
        tokens = sum(len(s.ids) for r in rollouts for s in r.segments)
        steps = {"ours": ours(rollouts, precision)}
        with tempfile.TemporaryDirectory() as folder:
            for trimmed in (False, True):
                steps[f"TRL{', trimmed' if trimmed else ''}"] = trl(rollouts, precision, folder, trimmed)
            rate = {name: tokens / seconds for name, seconds in in_turns(steps).items()}
        for name, value in rate.items():
            ratio = {} if name == "ours" else {"ours_to_it": rate["ours"] / value}
            kind = "float32" if precision == "no" else precision
            rows.append({"what": f"update, {kind}: {name}", "tokens_a_second": value, **ratio})
    return rows


def in_turns(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each, after one round that does not count."""
    took: dict[str, list[float]] = {name: [] for name in steps}
    with progress(label="updates", total=ROUNDS + 1) as done:
        for _ in range(ROUNDS + 1):
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                took[name].append(time.perf_counter() - start)
            done()
    return {name: statistics.median(times[1:]) for name, times in took.items()}


def policy() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1,
            pad_token_id=1,
        )
    )  # fmt: skip


def made_up(rng: random.Random) -> list[Any]:
    """Rollouts in four groups: a first prompt of 40–60 tokens, then 2–4 turns of 8–20 sampled tokens and 15–50 observed."""
    from workbench.models.segments import Segment
    from workbench.training.records import Rollout

    out = []
    for number in range(ROLLOUTS):
        ids, sampled, turns = [], [], []
        for turn in range(rng.randint(2, 4)):
            seen = rng.randint(15, 50) if turn else rng.randint(40, 60)
            for drawn, count in ((False, seen), (True, rng.randint(8, 20))):
                ids += [rng.randrange(VOCABULARY) for _ in range(count)]
                sampled += [drawn] * count
                turns += [turn if drawn else -1] * count
        logprobs = tuple(-6.9 if drawn else 0.0 for drawn in sampled)  # log(1/1024): that of an untrained model
        segment = Segment(tuple(ids), tuple(sampled), logprobs, tuple(turns), tuple(0 if s else -1 for s in sampled))
        out.append(Rollout(str(number), f"g{number % 4}", "solver", (segment,), reward=rng.random()))
    return out


def ours(rollouts: list[Any], precision: str) -> Callable[[], object]:
    """Everything from rollouts to moved weights: groups, advantages, batches, loss, step."""
    from workbench.training.settings import UpdateSettings
    from workbench.training.trainer import Learner

    width = max(len(s.ids) for r in rollouts for s in r.segments)
    settings = UpdateSettings(denominator=1000.0, token_budget=ROWS * width, precision=precision, max_staleness=None)
    learner = Learner(policy(), settings)
    return lambda: learner.update(rollouts)


def trl(rollouts: list[Any], precision: str, folder: str, trimmed: bool) -> Callable[[], object]:
    """GRPOTrainer's loss, backward, clipping and step on the same sequences, `ROWS` a micro-batch."""
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    logging.getLogger("trl").setLevel(logging.ERROR)
    config = GRPOConfig(
        output_dir=folder, loss_type="dr_grpo", scale_rewards=False, beta=0.0, per_device_train_batch_size=ROWS,
        num_generations=ROWS, max_completion_length=256, use_cpu=not torch.cuda.is_available(), bf16=precision == "bf16",
        gradient_checkpointing=False, learning_rate=1e-6, report_to=[], save_strategy="no",
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=policy(), args=config, processing_class=tokenizer(), reward_funcs=lambda completions, **_: [0.0],
        train_dataset=Dataset.from_list([{"prompt": "a"}] * ROWS),
    )  # fmt: skip
    trainer.current_gradient_accumulation_steps = len(rollouts) // ROWS
    optimizer = trainer.create_optimizer()
    model, optimizer = trainer.accelerator.prepare(trainer.model, optimizer)
    model.train()
    whole = tensors(rollouts)
    parts = [
        {k: v[at : at + ROWS].to(trainer.accelerator.device) for k, v in whole.items()}
        for at in range(0, len(rollouts), ROWS)
    ]
    parts = [trim(part) for part in parts] if trimmed else parts

    def step() -> None:
        for part in parts:
            trainer.accelerator.backward(trainer._compute_loss(model, part))
        trainer.accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def tensors(rollouts: list[Any]) -> dict[str, Any]:
    """What GRPOTrainer's own generation hands to its loss: the first prompt on the left, all the rest on the right."""
    import torch

    segments = [r.segments[0] for r in rollouts]
    first = [s.sampled.index(True) for s in segments]
    left, right = max(first), max(len(s.ids) - n for s, n in zip(segments, first, strict=True))
    prompts, prompt_mask = (
        torch.zeros(len(segments), left, dtype=torch.long),
        torch.zeros(len(segments), left, dtype=torch.long),
    )
    ids, mask, tool = (torch.zeros(len(segments), right, dtype=torch.long) for _ in range(3))
    for row, (s, n) in enumerate(zip(segments, first, strict=True)):
        prompts[row, left - n :], prompt_mask[row, left - n :] = torch.tensor(s.ids[:n]), 1
        rest = len(s.ids) - n
        ids[row, :rest], mask[row, :rest] = torch.tensor(s.ids[n:]), 1
        tool[row, :rest] = torch.tensor(s.sampled[n:]).long()
    groups = {r.group: [o.reward for o in rollouts if o.group == r.group] for r in rollouts}
    advantages = torch.tensor([r.reward - statistics.fmean(groups[r.group]) for r in rollouts])
    return {
        "prompt_ids": prompts, "prompt_mask": prompt_mask, "completion_ids": ids, "completion_mask": mask, "tool_mask": tool,
        "advantages": advantages,
    }  # fmt: skip


def trim(part: dict[str, Any]) -> dict[str, Any]:
    """Padding that all rows of a micro-batch share, cut off."""
    left = part["prompt_mask"].shape[1] - int(part["prompt_mask"].sum(1).max())
    right = int(part["completion_mask"].sum(1).max())
    cut = {k: v[:, left:] for k, v in part.items() if k.startswith("prompt")}
    return (
        cut
        | {k: v[:, :right] for k, v in part.items() if v.dim() == 2 and k not in cut}
        | {"advantages": part["advantages"]}
    )


def tokenizer() -> Any:
    """Any tokenizer: GRPOTrainer wants one, and never uses it here."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE(vocab={"a": 0, "<end>": 1}, merges=[]))
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<end>")


if __name__ == "__main__":
    for result in run():
        print(result)
