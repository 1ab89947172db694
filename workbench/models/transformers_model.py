"""A local `transformers` model: chat template, exact ids, log-probabilities, batching of concurrent calls.

Imports torch and transformers: load it lazily (open_model does).
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from workbench.models import Message, ModelError, Reply, Sampling
from workbench.models.engine import Batching, Request

REMEMBERED = 4096  # conversations whose exact ids are kept


class TransformersModel:
    """Answers chats with a causal model on this machine; `reply` may be called from many threads and is batched.

    model, tokenizer: the `transformers` objects, reachable for training. engine: see workbench.models.engine.
    Prompt ids of a later turn repeat the earlier turns' ids exactly as they were sampled: text that this model wrote is
    not tokenized again when it comes back in the history. Special tokens spelled out in system and user messages
    (`<|im_end|>` printed by a command, say) are broken up, so that nobody but the template can open or close a message.
    Calls cost nothing: Reply.usd is 0.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: object,
        *,
        name: str,
        max_batch: int = 16,
        max_context: int | None = None,
    ):
        self.name, self.model, self.tokenizer = name, model.eval(), tokenizer
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                f"{name}: its tokenizer has no chat template: use an instruct model, or set tokenizer.chat_template"
            )
        config = model.config.get_text_config()
        context = min(max_context or 8192, getattr(config, "max_position_embeddings", None) or 8192)
        self.engine = Batching(model, end_ids_of(model, tokenizer), max_batch=max_batch, max_context=context)
        self._special = [t for t in tokenizer.all_special_tokens if len(t) > 1]
        self._known: OrderedDict[tuple, list[int]] = OrderedDict()  # messages → ids through the last answer
        self._lock = threading.Lock()  # fast tokenizers must not be entered by two threads at once
        closing = weakref.WeakMethod(self.close)
        atexit.register(lambda: (c := closing()) and c())  # a thread inside torch at interpreter exit would abort

    @property
    def max_context(self) -> int:
        """Tokens of prompt and answer together."""
        return self.engine.max_context

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Answer a chat. Raises ContextFull when the prompt fills the context, ModelError when the engine failed."""
        started = time.monotonic()
        prompt = self.prompt_ids(messages)
        request = self.engine.submit(prompt, sampling, self._stopper(sampling.stop)).result()
        text = self._text(request, sampling.stop)
        if request.ids:
            self._remember(messages, text, [*prompt, *request.ids])
        return Reply(
            text=text,
            finish=request.finish,
            prompt_ids=tuple(prompt),
            sampled_ids=tuple(request.ids),
            logprobs=tuple(request.logprobs),
            prompt_tokens=len(prompt),
            completion_tokens=len(request.ids),
            usd=0.0,
            seconds=time.monotonic() - started,
        )

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """The ids that `reply` would give to the engine for these messages."""
        text = self._render(messages)
        with self._lock:
            for end in range(len(messages) - 1, 0, -1):
                known = self._known.get(_key(messages[:end])) if messages[end - 1]["role"] == "assistant" else None
                if known is None:
                    continue
                before = self.tokenizer.decode(known, skip_special_tokens=False, clean_up_tokenization_spaces=False)
                if text.startswith(before):
                    return known + self._encode(text[len(before) :])
            return self._encode(text)

    def close(self) -> None:
        """Stop the engine's thread. Running calls end with ModelError."""
        self.engine.close()

    def _render(self, messages: Sequence[Message]) -> str:
        safe = [m if m["role"] == "assistant" else {**m, "content": self._defuse(m["content"])} for m in messages]
        try:
            return self.tokenizer.apply_chat_template(safe, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates raise their own jinja errors, on roles they do not take
            raise ModelError(f"{self.name}: its chat template refused the messages: {error}") from error

    def _defuse(self, text: str) -> str:
        for token in self._special:
            if token in text:
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _decode(self, ids: Sequence[int]) -> str:
        with self._lock:
            return self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def _text(self, request: Request, stop: Sequence[str]) -> str:
        ids = request.ids[:-1] if request.ids and request.ids[-1] in self.engine.end_ids else request.ids
        text = self._decode(ids)
        cuts = [at for s in stop if s and (at := text.find(s)) >= 0]
        return text[: min(cuts)] if cuts else text

    def _stopper(self, stop: Sequence[str]):
        stop = [s for s in stop if s]
        if not stop:
            return None
        tail = max(map(len, stop)) + 8  # a token is at least one character, but for a few bytes of a split one
        return lambda ids: any(s in self._decode(ids[-tail:]) for s in stop)

    def _remember(self, messages: Sequence[Message], text: str, ids: list[int]) -> None:
        with self._lock:
            self._known[_key([*messages, {"role": "assistant", "content": text}])] = ids
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


def load_transformers(path: str | Path, *, name: str = "", **options: object) -> TransformersModel:
    """Load a local folder or a hub model. options: those of `load` and of TransformersModel (max_batch, max_context).
    Raises ModelError that says what to do."""
    loading = {k: options.pop(k) for k in ("dtype", "device", "threads", "offline") if k in options}
    return TransformersModel(*load(path, **loading), name=name or f"transformers:{path}", **options)


def load(
    path: str | Path, *, dtype: str = "auto", device: str = "auto", threads: int | None = None, offline: bool = False
) -> tuple[torch.nn.Module, object]:
    """(model, tokenizer) of a local folder or a hub model. dtype: "auto" = bfloat16 on a GPU and on a CPU that multiplies
    it natively, else float32. threads: torch's in this process, on a CPU; None = all cores but one, at least one.
    (Sandboxes work on the same machine: two threads on two busy cores were seen to decode 15 times slower than one,
    since each matrix product waits for its slowest thread.) Raises ModelError that says what to do."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    dtype = _best_dtype(device) if dtype == "auto" else dtype
    if device == "cpu":
        torch.set_num_threads(threads or max(1, _cores() - 1))
    local = {"local_files_only": True} if offline or Path(path).is_dir() else {}
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, **local)
            model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype), **local)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot load {path}: {error}. Name a folder with config.json, weights and tokenizer, or a hub model that this "
            "machine can reach (gated models need HF_TOKEN)"
        ) from error
    return model.to(device), tokenizer


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars of transformers: a load of a second needs none, and they fill the logs of batch runs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _best_dtype(device: str) -> str:
    if device != "cpu":
        return "bfloat16"
    flags = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""  # noqa: PTH110
    return "bfloat16" if "avx512_bf16" in flags or "amx_bf16" in flags else "float32"


def end_ids_of(model: torch.nn.Module, tokenizer: object | None) -> set[int]:
    """Ids that end an answer: the model's own, and the tokenizer's end token."""
    ends = getattr(model.generation_config, "eos_token_id", None)
    ends = set(ends) if isinstance(ends, list | tuple) else {ends}
    return (ends | {getattr(tokenizer, "eos_token_id", None)}) - {None}


def _key(messages: Sequence[Message]) -> tuple:
    return tuple((m["role"], m["content"]) for m in messages)
