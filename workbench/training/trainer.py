"""The learner: one optimizer step from rollouts of both roles. Imports torch and accelerate: load lazily.

Why a plain accelerate loop, and neither TRL's GRPOTrainer nor transformers' Trainer: rollouts are collected elsewhere and
come in step by step, with advantages per token. GRPOTrainer takes those only through private methods that change from
release to release, and generates inside its own loop; Trainer.train() owns the loop, and a new call makes a new optimizer.
What is left of them here is forty lines. accelerate carries processes, FSDP and DeepSpeed, so those are a launch setting.

Both roles share an optimizer step: solver groups, and proposer groups in the updates that have them, are one sum with one
denominator and no weight by role (AutoEnvScaling G.1). One pass over the batch; call `step` again for more.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from transformers import get_scheduler

from workbench.training.advantages import Credit, Selection, select_groups, token_advantages, whole_rollout
from workbench.training.batches import Batch, Sample, deal, micro_batches, samples_of, token_logprobs
from workbench.training.checkpoint import read_blobs, save_folder, usable
from workbench.training.dppo import Loss, TrustRegion, dppo_loss
from workbench.training.head import Head, without_dropout
from workbench.training.pprs import lone_share
from workbench.training.records import Rollout
from workbench.training.settings import UpdateSettings

PLAIN: dict[str, Credit] = {"solver": whole_rollout, "proposer": whole_rollout}


@dataclass(frozen=True)
class Update:
    """One optimizer step. version: of the policy after it. stepped: False when nothing could be learned, or the gradient
    was not finite (`reason` says which; the weights did not move). masked, ratio, divergence: shares and means over the
    sampled tokens. padding: share of the tokens read that is padding. grad_norm: before clipping."""

    version: int
    stepped: bool
    reason: str = ""
    loss: float = 0.0
    grad_norm: float = 0.0
    tokens: int = 0
    masked: float = 0.0
    ratio: float = 1.0
    divergence: float = 0.0
    padding: float = 0.0
    micro_batches: int = 0
    learning_rate: float = 0.0
    seconds: float = 0.0
    tokens_a_second: float = 0.0
    groups: int = 0
    dropped: int = 0
    solver_tokens: int = 0
    proposer_tokens: int = 0
    staleness: int = 0
    lone_share: float = 0.0

    def to_row(self) -> dict[str, Any]:
        return asdict(self)


class Learner:
    """Holds the trained weights, the optimizer and the count of updates.

    model: a `transformers` causal model; moved to the accelerator's device and to float32. accelerator: None makes one
    (cpu=True keeps it off a GPU). Every process of a launch makes its own Learner and calls the same methods.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        settings: UpdateSettings,
        *,
        accelerator: Accelerator | None = None,
        cpu: bool = False,
    ):
        self.settings, self.version = settings, 0
        self.accelerator = accelerator or Accelerator(cpu=cpu)
        launched = self.accelerator.mixed_precision
        if launched != "no" and launched != settings.precision:
            raise ValueError(
                f"accelerate runs this process in {launched}, the settings say precision={settings.precision!r}: "
                "make them agree, or start a fresh process (its state lasts as long as the process)"
            )
        self.region = TrustRegion(settings.divergence, settings.delta, settings.ratio_cap)
        without_dropout(model.float())
        self.head = Head(model, float32=settings.float32_head)
        if settings.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        optimizer = torch.optim.AdamW(
            model.parameters(), settings.learning_rate, settings.betas, weight_decay=settings.weight_decay
        )
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        # not prepared: an accelerated scheduler steps once a process. "constant" takes no warm-up argument
        warmup = settings.warmup_steps if settings.schedule == "constant_with_warmup" else None
        self.schedule = get_scheduler(settings.schedule, optimizer, num_warmup_steps=warmup)
        self.accelerator.register_for_checkpointing(self.schedule)

    # -- updates ----------------------------------------------------------------------------------------------------

    def update(
        self,
        rollouts: Sequence[Rollout],
        credit: Mapping[str, Credit] = PLAIN,
        value: Callable[[Rollout], float] | Mapping[str, Callable[[Rollout], float]] | None = None,
    ) -> tuple[Update, Selection]:
        """Select the groups that train, credit their tokens, take one step. credit: by role. value: what must vary
        (default: the reward). In a launch of several processes the rollouts of the first one count."""
        chosen = select_groups(
            rollouts,
            self.settings.minimum_group,
            **({"value": value} if value else {}),
            version=self.version,
            max_staleness=self.settings.max_staleness,
        )
        members = [r for group in chosen.kept.values() for r in group]
        done = self.step(samples_of(token_advantages(chosen.kept, credit)))
        by_role = {role: sum(r.tokens for r in members if r.role == role) for role in ("solver", "proposer")}
        lone = [lone_share(g) * sum(r.tokens for r in g) for g in chosen.kept.values() if any(r.tokens for r in g)]
        extra = {
            "groups": len(chosen.kept),
            "dropped": len(chosen.dropped),
            "solver_tokens": by_role["solver"],
            "proposer_tokens": by_role["proposer"],
            "staleness": max((r.staleness(self.version - done.stepped) for r in members), default=0),
            "lone_share": sum(lone) / max(1, sum(by_role.values())),
        }
        return replace(done, **extra), chosen

    def step(self, samples: Sequence[Sample]) -> Update:
        """One optimizer step on samples, all of them whatever their number; the same on every process."""
        started = time.perf_counter()
        samples = self._shared(samples)
        if not samples:
            return Update(self.version, False, "no group varies: nothing to learn from; collect more rollouts")
        batches = micro_batches(samples, self.settings.token_budget, self.settings.layout)
        mine = deal(batches, self.accelerator.process_index, self.accelerator.num_processes)
        self.model.train()
        sums = torch.zeros(5, dtype=torch.float64, device=self.accelerator.device)
        for number, batch in enumerate(mine):
            loss = self._backward(batch, last=number == len(mine) - 1)
            found = (loss.value.detach(), loss.tokens, loss.masked, loss.ratio, loss.divergence)
            sums += torch.stack([torch.as_tensor(v, dtype=torch.float64, device=sums.device) for v in found])
        rate = self.optimizer.param_groups[0]["lr"]
        norm = self._clip()
        if math.isfinite(norm):
            self.optimizer.step()
            self.schedule.step()
            self.version += 1
        self.optimizer.zero_grad()
        value, tokens, masked, ratio, far = self.accelerator.reduce(sums, "sum").tolist()
        seconds = time.perf_counter() - started
        read = sum(b.size for b in batches)
        return Update(
            version=self.version, stepped=math.isfinite(norm),
            reason="" if math.isfinite(norm) else f"the gradient's norm is {norm}: nothing was changed",
            loss=value, grad_norm=norm, tokens=int(tokens), masked=masked / tokens, ratio=ratio / tokens,
            divergence=far / tokens, padding=1 - sum(map(len, samples)) / read, micro_batches=len(batches),
            learning_rate=rate, seconds=seconds, tokens_a_second=sum(map(len, samples)) / seconds,
        )  # fmt: skip

    def _shared(self, samples: Sequence[Sample]) -> list[Sample]:
        """The first process's samples, everywhere: each process takes its share of one list."""
        if self.accelerator.num_processes == 1:
            return list(samples)
        return broadcast_object_list([list(samples)], from_process=0)[0]

    def _backward(self, batch: Batch, last: bool) -> Loss:
        batch = batch.to(self.accelerator.device)
        self.accelerator.sync_gradients = last
        with nullcontext() if last else self.accelerator.no_sync(self.model):
            with self._arithmetic():
                logprobs = token_logprobs(self.model, batch, self.settings.temperature, self.head)
            loss = dppo_loss(
                logprobs, batch.logprobs, batch.advantages, batch.sampled,
                denominator=self.settings.denominator, region=self.region,
            )  # fmt: skip
            # a silent batch's loss is constant: the sum of its logits, times 0, keeps it in the collective calls
            value = loss.value + 0.0 * logprobs.sum() if not loss.tokens else loss.value
            self.accelerator.backward(value * self.accelerator.num_processes)  # gradients are averaged over processes
        return loss

    def _arithmetic(self) -> torch.autocast:
        """Ours and not accelerate's, whose precision can't be chosen twice in one process (a notebook's kernel)."""
        return torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16")

    def _clip(self) -> float:
        bound = self.settings.max_grad_norm or math.inf
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), bound)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # sharded by FSDP2
        return 0.0 if norm is None else float(norm)  # DeepSpeed clips by itself, and may not tell

    # -- weights and checkpoints ----------------------------------------------------------------------------------------

    @property
    def policy(self) -> torch.nn.Module:
        """The model without the wrappers of a launch."""
        return self.accelerator.unwrap_model(self.model)

    def weights(self) -> dict[str, torch.Tensor]:
        """Full state dict for an engine (gathered from all processes: call it on each of them)."""
        return self.accelerator.get_state_dict(self.model)

    def save_model(self, folder: str | Path, tokenizer: Any = None) -> Path:
        """A `transformers` folder that other programs load: weights, config, tokenizer. Written whole or not at all."""
        weights = self.weights()

        def write(target: Path) -> None:
            self.policy.save_pretrained(target, state_dict=weights)
            if tokenizer is not None:
                tokenizer.save_pretrained(target)

        folder = Path(folder)
        if self.accelerator.is_main_process:
            save_folder(folder.parent, folder.name, write)
        self.accelerator.wait_for_everyone()
        return folder

    def save(self, folder: str | Path, blobs: Mapping[str, Any] | None = None, *, keep: int = 2) -> Path:
        """A checkpoint `folder/step-<version>` of weights, optimizer, schedule, random generators (Python, NumPy, torch)
        and counters, with JSON `blobs` (pool, curriculum) beside; `folder/latest` names it once it is whole."""
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)  # it warns of tied weights at every step
        return save_folder(
            Path(folder),
            f"step-{self.version:08d}",
            lambda target: self.accelerator.save_state(str(target)),
            blobs={**(blobs or {}), "learner": {"version": self.version, "settings": asdict(self.settings)}},
            keep=keep,
            latest=True,
            alone=self.accelerator.is_main_process,
            together=self.accelerator.wait_for_everyone,
        )

    def load(self, folder: str | Path) -> dict[str, Any] | None:
        """Go on from the newest whole checkpoint in `folder`; returns its blobs, or None when there is none. The number
        of processes must be the one it was saved with, since each has random generators of its own."""
        found = usable(Path(folder))
        if found is None:
            return None
        blobs = read_blobs(found)
        self.accelerator.load_state(str(found))
        self.version = blobs.pop("learner")["version"]
        return blobs
