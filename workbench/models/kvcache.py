"""A key/value cache with one slot a conversation, for continuous batching (imports torch: load it lazily).

Each slot holds the keys and values of one token sequence, aligned to the left, so that rows of different lengths decode
in one batch without being moved, and a finished conversation stays where it is until its next turn extends it.
"""

from __future__ import annotations

import torch

GROW = 512  # tokens; the buffers grow by at least this much, so that copying them stays rare


class SlotCache:
    """Keys and values of `slots` sequences, per layer (slots, kv_heads, capacity, head_dim), grown when needed.

    A forward pass addresses slots [first, first + batch) through `aim`; the model's attention then calls `update`.
    Memory: 2 x layers x kv_heads x head_dim x bytes a token and slot (23 KB for SmolLM2-135M in bf16).
    """

    def __init__(self, slots: int, max_length: int):
        self.slots, self.max_length = slots, max_length
        self.layers: dict[int, list[torch.Tensor]] = {}
        self.capacity = 0
        self._first = 0
        self._positions = torch.zeros(0)

    def aim(self, first: int, positions: torch.Tensor) -> torch.Tensor:
        """Set the target of the next forward pass. positions: (batch, tokens), where each new token stands in its
        row. Returns the attention mask (batch, 1, tokens, length), True where a query may look."""
        length = int(positions.max()) + 1
        if length > self.capacity:
            self._grow(length)
        self._first, self._positions, self._length = first, positions, length
        return torch.arange(length, device=positions.device)[None, None, None, :] <= positions[:, None, :, None]

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: object, **__: object):
        """Called by the model's attention: store (batch, heads, tokens, dim), return all that the batch may see."""
        if layer not in self.layers:
            self.layers[layer] = [self._empty(keys), self._empty(values)]
        batch = keys.shape[0]
        rows = torch.arange(self._first, self._first + batch, device=keys.device)[:, None]
        out = []
        for buffer, new in zip(self.layers[layer], (keys, values), strict=True):
            buffer[rows, :, self._positions] = new.transpose(1, 2).to(buffer.dtype)
            out.append(buffer[self._first : self._first + batch, :, : self._length])
        return tuple(out)

    def get_seq_length(self, *_: object) -> int:
        return self._length - self._positions.shape[1]

    def swap(self, a: int, b: int, length: int) -> None:
        """Exchange the first `length` tokens of two slots."""
        for buffer in self._buffers():
            held = buffer[a, :, :length].clone()
            buffer[a, :, :length] = buffer[b, :, :length]
            buffer[b, :, :length] = held

    def copy(self, source: int, target: int, length: int) -> None:
        """Give `target` the first `length` tokens of `source` (a shared prefix is computed once)."""
        for buffer in self._buffers():
            buffer[target, :, :length] = buffer[source, :, :length]

    def _buffers(self):
        return (buffer for pair in self.layers.values() for buffer in pair)

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        # Zeros, not empty memory: masked positions are multiplied by 0, and 0 x NaN would spread.
        return like.new_zeros(self.slots, like.shape[1], self.capacity, like.shape[3])

    def _grow(self, length: int) -> None:
        self.capacity = min(self.max_length, -(-max(length, 2 * self.capacity) // GROW) * GROW)
        for pair in self.layers.values():
            for i, old in enumerate(pair):
                pair[i] = self._empty(old)
                pair[i][:, :, : old.shape[2]] = old
