"""Cold-Start: supervised fine-tuning on trajectories, loss on the tokens that the model writes (AutoEnvScaling §4.3, H).

TRL's SFTTrainer does the training: its public surface takes token ids with labels of our own (a data set with the columns
`input_ids` and `labels`, −100 where nothing is learned), so nothing is tokenized or masked again. The paper gives no
learning rate, number of epochs or batch size: those here are ours. Imports transformers and TRL inside functions only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.models import Message
from workbench.models.segments import Segment
from workbench.training.records import Rollout

IGNORED = -100  # the label that TRL and transformers leave out of the loss


@dataclass(frozen=True)
class SftSettings:
    """learning_rate, schedule, warmup_ratio, epochs, batch: ours, unpublished. batch: sequences of an optimizer step.
    rows: of one micro-batch on each process. steps: at most so many optimizer steps, 0 = as many as the epochs have.
    precision: arithmetic, "no" or "bf16"; weights stay float32. max_tokens: longer examples are left out and counted
    (cut ones would teach endings that never come); 0 = no limit. beta2: Adam's. by_length: batches of about equal lengths, which saves
    padding; False mixes roles of different lengths in every batch, which a model from random weights needs."""

    learning_rate: float = 1e-5
    schedule: str = "cosine"
    warmup_ratio: float = 0.03
    epochs: float = 2.0
    batch: int = 32
    rows: int = 8
    steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    precision: str = "no"
    gradient_checkpointing: bool = False
    max_tokens: int = 0
    seed: int = 42
    beta2: float = 0.999
    by_length: bool = True


@dataclass(frozen=True)
class Example:
    """Token ids, and which of them are learned. Equal lengths; the first one is never learned."""

    ids: tuple[int, ...]
    learned: tuple[bool, ...]

    @property
    def labels(self) -> list[int]:
        return [i if yes else IGNORED for i, yes in zip(self.ids, self.learned, strict=True)]


def from_segments(segments: Iterable[Segment]) -> list[Example]:
    """The model's own tokens, as they were sampled: nothing is tokenized again."""
    return [Example(s.ids, s.sampled) for s in segments if any(s.sampled)]


def from_rollouts(rollouts: Iterable[Rollout]) -> list[Example]:
    return from_segments(s for r in rollouts for s in r.segments)


def from_chat(tokenizer: Any, messages: Sequence[Message]) -> Example:
    """Another model's chat in this model's template, cut where an engine cuts it: each assistant message is learned with
    the token that ends it, and everything else is not.

    Every piece is tokenized by itself, since an engine never sees a token that spans a prompt and its answer. Raises
    ValueError when the template writes a history differently from what was said (one that drops earlier thinking, say):
    what would be trained is then not what would be sampled.
    """
    ids: list[int] = []
    learned: list[bool] = []
    told = ""  # the text so far
    end = tokenizer.eos_token or ""
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = tokenizer.apply_chat_template(list(messages[:at]), tokenize=False, add_generation_prompt=True)
        if not prompt.startswith(told):
            raise ValueError(
                f"message {at}: the chat template rewrites the history, so answers would be trained after a text that no "
                f"engine sees. It has {_around(prompt, told)}"
            )
        for text, own in ((prompt[len(told) :], False), (message["content"] + end, True)):
            piece = tokenizer.encode(text, add_special_tokens=False)
            ids += piece
            learned += [own] * len(piece)
        told = prompt + message["content"] + end
    if not any(learned):
        raise ValueError("a chat without an answer of the assistant has nothing to learn")
    return Example(tuple(ids), tuple(learned))


def _around(prompt: str, told: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(prompt, told, strict=False)) if a != b), min(len(prompt), len(told)))
    return f"{prompt[at : at + 40]!r} where {told[at : at + 40]!r} was said (character {at})"


def train(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    settings: SftSettings = SftSettings(),
    *,
    folder: str | Path,
    stop: Callable[[int], bool] | None = None,
    every: int = 50,
) -> dict[str, Any]:
    """Fine-tune `model` in place; returns a row with losses ((step, loss) every ten steps), tokens and seconds.

    folder: where TRL puts its state (no checkpoints: save the model yourself). stop: asked after every `every` optimizer
    steps with their number; True ends the training (a solver's pass rate that is high enough, say). Raises ValueError
    without examples.
    """
    kept = [e for e in examples if not settings.max_tokens or len(e.ids) <= settings.max_tokens]
    if not kept:
        raise ValueError(
            f"none of {len(examples)} examples fits in max_tokens={settings.max_tokens}: nothing to train on"
        )
    started = time.perf_counter()
    trainer = _trainer(model.float(), tokenizer, kept, settings, folder, stop, every)
    result = trainer.train()
    history = [(row["step"], row["loss"]) for row in trainer.state.log_history if "loss" in row]
    losses = [loss for _, loss in history]
    return {
        "examples": len(kept), "left_out": len(examples) - len(kept), "tokens": sum(len(e.ids) for e in kept),
        "learned_tokens": sum(sum(e.learned) for e in kept), "steps": int(trainer.state.global_step),
        "first_loss": losses[0] if losses else None, "last_loss": losses[-1] if losses else None, "losses": history,
        "mean_loss": result.training_loss, "seconds": time.perf_counter() - started, "settings": asdict(settings),
    }  # fmt: skip


def dataset(examples: Sequence[Example]) -> Any:
    """The examples as a `datasets.Dataset` with the columns that SFTTrainer takes as they are."""
    from datasets import Dataset

    return Dataset.from_dict({"input_ids": [list(e.ids) for e in examples], "labels": [e.labels for e in examples]})


def _trainer(model, tokenizer, examples, settings: SftSettings, folder, stop, every) -> Any:
    import torch
    from transformers import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    config = SFTConfig(
        output_dir=str(folder),
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_ratio,  # below 1: a share of all steps
        num_train_epochs=settings.epochs,
        max_steps=settings.steps or -1,
        per_device_train_batch_size=min(settings.rows, settings.batch),
        gradient_accumulation_steps=max(1, settings.batch // settings.rows),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16",
        gradient_checkpointing=settings.gradient_checkpointing,
        use_cpu=not torch.cuda.is_available(),
        max_length=None,
        packing=False,
        train_sampling_strategy="group_by_length" if settings.by_length else "random",
        adam_beta2=settings.beta2,
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=settings.seed,
        logging_steps=10,
        logging_strategy="steps",
        logging_first_step=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model=model,
        args=config,
        processing_class=tokenizer,
        train_dataset=dataset(examples),
        callbacks=[_callback(stop, every)],
    )
    trainer.remove_callback(PrinterCallback)  # prints dictionaries to stdout; ours says a line now and then
    return trainer


def _callback(stop: Callable[[int], bool] | None, every: int) -> Any:
    from transformers import TrainerCallback

    from workbench.runs.progress import say

    class Watch(TrainerCallback):
        """Says where the training is, at most every five seconds, and asks whether it may end."""

        said = 0.0

        def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
            if "loss" in (logs or {}) and time.monotonic() - self.said > 5:
                self.said = time.monotonic()
                say(f"cold start: step {state.global_step} of {state.max_steps}, loss {float(logs['loss']):.3f}")

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if stop is not None and state.global_step % every == 0 and stop(state.global_step):
                control.should_training_stop = True

    return Watch()
