"""Continuous batching on one machine: many threads ask, one thread decodes (imports torch: load it lazily).

Requests join the running batch between two decoding steps and leave it when they end. A request first takes over the
longest prefix that any slot already holds: the next turn of a conversation, or another rollout of the same prompt, reads
only its new tokens (Zheng et al. 2024 keep such prefixes in a tree; here every slot is one branch).
"""

from __future__ import annotations

import inspect
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

from workbench.models import ContextFull, ModelError, Sampling
from workbench.models.engine_llama import LlamaDecoder, supports
from workbench.models.engine_request import Request, Slot, check_attention, common
from workbench.models.kvcache import SlotCache
from workbench.models.sampler import draw


class Batching:
    """Decodes for a causal language model with full attention in every layer.

    model: a `transformers` causal model in eval mode. end_ids: tokens that end an answer. max_batch: rows decoded at
    once, and slots kept. max_context: tokens of prompt and answer together.

    The same seed gives the same tokens whatever else is in the batch, as far as arithmetic allows: each request draws
    from a generator of its own, but matrix products of another batch size may round differently, and in bf16 a draw that
    falls on the seam between two tokens can then differ (use float32 where that matters more than speed).
    """

    def __init__(self, model: torch.nn.Module, end_ids: Sequence[int], *, max_batch: int = 16, max_context: int = 8192):
        check_attention(model)
        self.model, self.end_ids = model, frozenset(end_ids)
        self.max_batch, self.max_context = max_batch, max_context
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"  # renamed in transformers 5
        self._llama = LlamaDecoder(model, max_context) if supports(model) else None
        self._wake = threading.Condition()
        self._queue: deque[Request] = deque()
        self._closed = False
        self._flush = False
        self._paused = self._busy = False
        self.version = 0  # of the weights; counted by `update`
        self.steps = self.tokens = self.prefilled = self.reused = 0  # counters, for benchmarks
        self._reset()
        self._thread = threading.Thread(target=self._work, name="workbench-engine", daemon=True)
        self._thread.start()

    # -- asked from any thread ------------------------------------------------------------------------------------

    def submit(
        self, prompt: Sequence[int], sampling: Sampling, stopped: Callable[[list[int]], bool] | None = None
    ) -> Request:
        """Queue a prompt of token ids. stopped: called with the sampled ids after each one; True ends the answer.
        Raises ContextFull when not even one token would fit, ModelError when the engine is closed."""
        if not prompt:
            raise ModelError("the prompt has no tokens: an engine needs at least one")
        room = self.max_context - len(prompt)
        if room < 1:
            raise ContextFull(f"prompt of {len(prompt)} tokens, context of {self.max_context}: shorten the prompt")
        deadline = time.monotonic() + sampling.seconds if sampling.seconds is not None else float("inf")
        request = Request(
            list(prompt),
            sampling,
            stopped or (lambda ids: False),
            deadline,
            min(sampling.max_tokens, room),
            random.Random(sampling.seed),
        )
        if request.max_tokens < 1:
            request.end("length")
            return request
        with self._wake:
            if self._closed:
                raise ModelError("the engine is closed: open the model again")
            self._queue.append(request)
            self._wake.notify_all()
        return request

    def flush(self) -> None:
        """Forget every kept prefix (after the weights changed). Running requests finish first."""
        with self._wake:
            self._flush = True
            self._wake.notify_all()

    def pause(self) -> None:
        """Decode nothing more until `resume`. Returns when the running step is over; requests wait where they are."""
        with self._wake:
            self._paused = True
            self._wake.wait_for(lambda: not self._busy)

    def resume(self) -> None:
        with self._wake:
            self._paused = False
            self._wake.notify_all()

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def closed(self) -> bool:
        return self._closed

    def update(self, change: Callable[[], None], version: int | None = None) -> int:
        """Call `change`, which may write the model's parameters, between two steps; forget every kept prefix. Running
        requests stay: they read their prompt and what they have sampled again, with the new weights, and go on.
        version: of the new weights, one more than before when None. Returns it. When `change` raises, nothing is
        counted, but what it wrote is forgotten with the prefixes all the same."""
        paused = self._paused
        self.pause()
        try:
            change()
            self.version = self.version + 1 if version is None else version
        finally:
            with self._wake:
                running = [s.request for s in self._slots if s.request]
                self._queue.extendleft(reversed(running))
                self._reset()
            if not paused:
                self.resume()
        return self.version

    def close(self) -> None:
        """End every request with ModelError and stop the thread. May be called twice."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # -- the decoding thread --------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._cache = SlotCache(self.max_batch, self.max_context)
        self._slots = [Slot() for _ in range(self.max_batch)]
        self._running = 0  # slots [0, running) are in use: a batch is a plain slice of the cache

    def _work(self) -> None:
        # Every call into torch gives up Python's lock; with a busy thread beside it, getting it back takes as long as the
        # switch interval. At its default of 5 ms one such thread was seen to halve the speed of decoding.
        sys.setswitchinterval(min(sys.getswitchinterval(), 2e-4))
        while True:
            joining = self._wait()
            if joining is None:
                return
            try:
                with torch.inference_mode():
                    for request in joining:
                        self._join(request)
                    if self._running:
                        self._step()
            except Exception as error:  # whatever torch raises must reach the callers, not kill the thread
                self._fail(f"decoding failed: {type(error).__name__}: {error}", joining)

    def _wait(self) -> list[Request] | None:
        """Requests that fit now; None when closed."""
        with self._wake:
            self._busy = False
            self._wake.notify_all()
            while not self._closed and (self._paused or not (self._queue or self._running or self._flush)):
                self._wake.wait()
            if self._closed:
                self._fail("the engine was closed before the answer ended", list(self._queue))
                self._queue.clear()
                return None
            if self._flush and not self._running:
                self._reset()
                self._flush = False
            self._busy = True
            free = 0 if self._flush else self.max_batch - self._running
            return [self._queue.popleft() for _ in range(min(free, len(self._queue)))]

    def _fail(self, message: str, others: list[Request]) -> None:
        running = [s.request for s in self._slots if s.request]
        for request in [*running, *others]:
            if not request.done.is_set():
                request.end("error", ModelError(message))
        self._reset()

    def _join(self, request: Request) -> None:
        if self._ended_early(request):
            return
        known = request.prompt + request.ids  # some are sampled already when the weights changed in the middle
        row, kept = self._place(known)
        self.prefilled, self.reused = self.prefilled + len(known) - kept, self.reused + kept
        if not request.ids:
            request.reused = kept
        slot = self._slots[row]
        slot.request = request
        self._running += 1
        logits = self._forward(row, [known[kept:]], [kept])
        slot.ids = known
        self._accept([row], logits)

    def _place(self, prompt: list[int]) -> tuple[int, int]:
        """The row for a new request (the first idle one, after moving) and how many of its tokens are there already."""
        shared = [common(slot.ids, prompt) for slot in self._slots]
        source = max(range(self.max_batch), key=lambda i: (shared[i], -i))
        idle = range(self._running, self.max_batch)
        kept = min(shared[source], len(prompt) - 1)  # the last token is always read: its logits are needed
        row = source
        if source not in idle or shared[source] < len(self._slots[source].ids):
            row = min(idle, key=lambda i: (bool(self._slots[i].ids), self._slots[i].used))  # empty, else oldest
            if row != source and kept:
                self._cache.copy(source, row, kept)
        self._slots[row].ids = prompt[:kept]
        self._exchange(row, self._running)
        return self._running, kept

    def _exchange(self, a: int, b: int) -> None:
        if a != b:
            self._cache.swap(a, b, max(len(self._slots[a].ids), len(self._slots[b].ids)))
            self._slots[a], self._slots[b] = self._slots[b], self._slots[a]

    def _step(self) -> None:
        rows = list(range(self._running))
        requests = [self._slots[i].request for i in rows]
        starts = [len(self._slots[i].ids) for i in rows]
        logits = self._forward(0, [r.ids[-1:] for r in requests], starts)
        for i, request in zip(rows, requests, strict=True):
            self._slots[i].ids.append(request.ids[-1])
        self.steps += 1
        self._accept(rows, logits)

    def _forward(self, first: int, tokens: list[list[int]], starts: list[int]) -> torch.Tensor:
        """Logits (rows, vocabulary) after the last token of each row; all rows bring the same number of tokens."""
        device = self.model.device
        ids = torch.tensor(tokens, device=device)
        positions = torch.tensor(starts, device=device)[:, None] + torch.arange(ids.shape[1], device=device)
        if self._llama is not None:
            return self._llama(ids, positions, self._cache, first)
        mask = self._cache.aim(first, positions)
        extra = {self._cache_name: self._cache}
        out = self.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1, **extra
        )
        return out.logits[:, -1]

    def _accept(self, rows: list[int], logits: torch.Tensor) -> None:
        requests = [self._slots[i].request for i in rows]
        drawn = draw(logits, [r.sampling for r in requests], [r.rng.random() for r in requests])
        for request, (token, logprob) in zip(requests, drawn, strict=True):
            request.ids.append(token)
            request.logprobs.append(logprob)
            request.versions.append(self.version)
        self.tokens += len(rows)
        for row in reversed(rows):  # from the end: leaving moves the last running row into the gap
            if self._over(self._slots[row].request):
                self._leave(row)

    def _over(self, request: Request) -> bool:
        if request.ids[-1] in self.end_ids or request.stopped(request.ids):
            request.end("stop")
        elif len(request.ids) >= request.max_tokens or time.monotonic() >= request.deadline:
            request.end("length")
        return request.done.is_set() or self._ended_early(request)

    def _ended_early(self, request: Request) -> bool:
        if request.cancelled:
            request.end("error", ModelError("the request was cancelled"))
        elif time.monotonic() >= request.deadline:
            request.end("length")
        return request.done.is_set()

    def _leave(self, row: int) -> None:
        self._slots[row].request, self._slots[row].used = None, time.monotonic()
        self._running -= 1
        self._exchange(row, self._running)
