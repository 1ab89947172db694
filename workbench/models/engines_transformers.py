"""The engine in this process: continuous batching on a CPU or one GPU (imports torch: load it lazily)."""

from __future__ import annotations

import atexit
import json
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from workbench.models import ModelError, Sampling
from workbench.models.engine import Batching
from workbench.models.engines import Generation, Health


class TransformersEngine:
    """An Engine over a `transformers` causal model in eval mode, which it does not copy.

    model: full attention in every layer. tokenizer: needed for stop strings only. end_ids: None takes the model's and the
    tokenizer's. max_batch: requests decoded at once, and slots whose prefixes are kept: with at least as many slots as
    live trajectories, each next turn reads only its new tokens. max_context: prompt and answer together.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: object | None = None,
        *,
        name: str = "transformers",
        end_ids: Sequence[int] | None = None,
        max_batch: int = 32,
        max_context: int | None = None,
    ):
        from workbench.models.transformers_model import end_ids_of

        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 8192
        self.name, self.model, self.tokenizer = name, model.eval(), tokenizer
        self.end_ids = frozenset(end_ids if end_ids is not None else end_ids_of(model, tokenizer))
        self.max_context = min(max_context or 8192, longest)
        self.batching = Batching(model, self.end_ids, max_batch=max_batch, max_context=self.max_context)
        self._lock = threading.Lock()  # fast tokenizers must not be entered by two threads at once
        closing = weakref.WeakMethod(self.close)
        atexit.register(lambda: (c := closing()) and c())  # a thread inside torch at interpreter exit would abort

    @property
    def version(self) -> int:
        return self.batching.version

    def generate(self, prompt: Sequence[int], sampling: Sampling = Sampling()) -> Generation:
        started = time.monotonic()
        request = self.batching.submit(prompt, sampling, self._stopper(sampling.stop)).result()
        return Generation(
            ids=tuple(request.ids),
            logprobs=tuple(request.logprobs) if sampling.temperature > 0 else (),
            versions=tuple(request.versions),
            finish=request.finish,
            reused=request.reused,
            seconds=time.monotonic() - started,
        )

    def load_weights(self, folder: Path, version: int | None = None) -> int:
        return self.update_weights(read_safetensors(Path(folder)), version)

    def update_weights(
        self, source: Mapping[str, torch.Tensor] | Callable[[], None], version: int | None = None
    ) -> int:
        """Weights from memory: a state dict (copied in), or a function that writes the model's own parameters, such as
        an optimizer's step when learner and engine share the model. Nothing is decoded meanwhile. See load_weights."""
        if callable(source):
            return self.batching.update(source, version)
        pairs = self._pairs(source)
        return self.batching.update(lambda: _copy(pairs), version)

    def pause(self) -> None:
        self.batching.pause()

    def resume(self) -> None:
        self.batching.resume()

    def health(self) -> Health:
        closed = self.batching.closed
        return Health(not closed, self.version, self.batching.paused, "closed" if closed else "")

    def close(self) -> None:
        self.batching.close()

    def _pairs(self, source: Mapping[str, torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(own, new) for every weight, checked before any is written."""
        own = self.model.state_dict()
        strange = sorted(source.keys() - own.keys())
        given = {own[k].data_ptr() for k in source.keys() & own.keys()}
        missing = sorted(k for k in own.keys() - source.keys() if own[k].data_ptr() not in given)  # tied ones are not
        wrong = [f"{k} {tuple(t.shape)}" for k, t in source.items() if k in own and own[k].shape != t.shape]
        if strange or missing or wrong:
            raise ModelError(
                f"{self.name}: these weights are of another model: unknown {strange[:3]}, missing {missing[:3]}, of "
                f"another shape {wrong[:3]}. The old weights stay"
            )
        return [(own[k], t) for k, t in source.items()]

    def _stopper(self, stop: Sequence[str]) -> Callable[[list[int]], bool] | None:
        stop = [s for s in stop if s]
        if not stop:
            return None
        if self.tokenizer is None:
            raise ModelError(f"{self.name}: stop strings need a tokenizer: give the engine one, or no stop strings")
        tail = max(map(len, stop)) + 8  # a token is at least one character, but for a few bytes of a split one

        def stopped(ids: list[int]) -> bool:
            with self._lock:
                text = self.tokenizer.decode(ids[-tail:], skip_special_tokens=False, clean_up_tokenization_spaces=False)
            return any(s in text for s in stop)

        return stopped


def read_safetensors(folder: Path) -> dict[str, torch.Tensor]:
    """All weights of a folder, sharded or not. Raises ModelError when there are none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    index = folder / "model.safetensors.index.json"
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else ["model.safetensors"]  # fmt: skip
        return {k: t for name in names for k, t in load_file(folder / Path(name).name).items()}
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(
            f"cannot read weights from {folder}: {error}. It needs model.safetensors or its index"
        ) from error


def _copy(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    with torch.no_grad():
        for own, new in pairs:
            own.copy_(new)
