"""What each process of a launch test does: updates, a checkpoint, an update after it, and the weights on file."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from tests.training.tiny_policy import sampled_rollouts, tiny_policy
from workbench.training.settings import UpdateSettings
from workbench.training.trainer import Learner


def shard_on_cpu() -> None:
    """accelerate turns FSDP on for accelerators only; torch's own FSDP2 also shards over gloo. Say that these are GPUs."""
    from accelerate import PartialState
    from accelerate.utils import DistributedType

    PartialState(cpu=True)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU


def main(out: str, checkpoint: str = "") -> None:
    torch.set_num_threads(1)
    if os.environ.get("ACCELERATE_USE_FSDP") == "true":
        shard_on_cpu()
    rollouts = sampled_rollouts(tiny_policy(0), 3, 5)  # off-policy after the first step, the same everywhere
    settings = UpdateSettings(denominator=100.0, learning_rate=1e-3, token_budget=90)
    one = Learner(tiny_policy(0), settings, cpu=True)
    rows = [one.update(rollouts)[0].to_row() for _ in range(2)]
    if checkpoint:
        one.save(checkpoint, {"pool": ["a"]})
    rows.append(one.update(rollouts)[0].to_row())
    if checkpoint:
        assert one.load(checkpoint) == {"pool": ["a"]}
        again = one.update(rollouts)[0]
        assert (again.version, again.loss) == (rows[2]["version"], rows[2]["loss"]), (again, rows[2])
    if checkpoint:
        one.save_model(Path(checkpoint).parent / "policy")
    weights = {k: v.cpu() for k, v in one.weights().items()}
    if one.accelerator.is_main_process:
        torch.save({"weights": weights, "rows": rows, "kind": one.accelerator.distributed_type.value}, Path(out))
    one.accelerator.wait_for_everyone()
    one.accelerator.end_training()
