"""Seeded choices that give the same values on every machine and Python version.

`random.Random` promises only `random()` and the raw bits to be stable between versions; everything else here is built on those
bits, so that an environment stays a pure function of its seed (Tev A.2).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of choices named by a path of words. `fork` gives an independent stream, so that adding a choice in one place moves
    nothing in another."""

    def __init__(self, *path: object):
        self.path = path
        digest = hashlib.sha256("/".join(str(p) for p in path).encode()).digest()
        self._bits = random.Random(int.from_bytes(digest, "big"))

    def fork(self, *names: object) -> Draw:
        return Draw(*self.path, *names)

    def integer(self, low: int, high: int) -> int:
        """A whole number in [low, high], both ends possible, without modulo bias."""
        if high < low:
            raise ValueError(f"no whole number in [{low}, {high}]")
        span = high - low + 1
        bits = span.bit_length()
        while (value := self._bits.getrandbits(bits)) >= span:
            pass
        return low + value

    def number(self, low: float, high: float, digits: int) -> float:
        """A decimal in [low, high] with `digits` places, drawn as a whole number so that it prints the same everywhere."""
        scale = 10**digits
        return self.integer(round(low * scale), round(high * scale)) / scale

    def chance(self, probability: float) -> bool:
        return self._bits.random() < probability

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def weighted(self, items: Sequence[T], weights: Sequence[int]) -> T:
        """One of items, with whole-number weights."""
        at = self.integer(0, sum(weights) - 1)
        for item, weight in zip(items, weights, strict=True):
            if at < weight:
                return item
            at -= weight
        raise AssertionError("unreachable")

    def shuffled(self, items: Sequence[T]) -> list[T]:
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.integer(0, i)
            out[i], out[j] = out[j], out[i]
        return out

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items, in drawn order."""
        if count > len(items):
            raise ValueError(f"cannot draw {count} of {len(items)}")
        moved: dict[int, int] = {}  # a shuffle that is stopped early, of places rather than of a copy of items
        out = []
        for i in range(count):
            j = self.integer(i, len(items) - 1)
            out.append(items[moved.get(j, j)])
            moved[j] = moved.get(i, i)
        return out

    def hexadecimal(self, digits: int) -> str:
        return f"{self._bits.getrandbits(4 * digits):0{digits}x}"
