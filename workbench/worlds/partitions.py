"""Which seeds and generators are for training, for calibration, and held out: a pure function of a salt that the host keeps.

Four partitions. `held_out_generators`: every seed of some generators. Of all others, each seed is in exactly one of `training`,
`calibration` and `held_out_seeds`. Who doesn't know the salt can't tell a seed's partition; who knows it needs no list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

Partition = Literal["training", "calibration", "held_out_seeds", "held_out_generators"]
PARTITIONS: tuple[Partition, ...] = get_args(Partition)
SHARES: Mapping[str, int] = {"training": 80, "calibration": 10, "held_out_seeds": 10}  # of 100 seeds
DEFAULT_SALT = "workbench"


def _number(*parts: object) -> int:
    """A whole number that only these words give."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")


def held_out_generators(domains: Mapping[str, str], salt: str = DEFAULT_SALT, share: float = 0.2) -> frozenset[str]:
    """The generators that no training sees. domains: generator -> domain. Of every domain at least one generator stays; `share` of
    all are held out at most. ValueError when share is not in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(f"share {share}: in [0, 1) is needed")
    left = {domain: list(domains.values()).count(domain) for domain in domains.values()}
    out: set[str] = set()
    for name in sorted(domains, key=lambda n: _number(salt, "generator", n)):
        if len(out) + 1 <= share * len(domains) and left[domains[name]] > 1:
            out.add(name)
            left[domains[name]] -= 1
    return frozenset(out)


def partition_of(
    generator: str, seed: int, salt: str = DEFAULT_SALT, held_out: Iterable[str] = frozenset()
) -> Partition:
    """The one partition of this environment, in all tiers."""
    if generator in held_out:
        return "held_out_generators"
    place = _number(salt, "seed", generator, seed) % sum(SHARES.values())
    for name, share in SHARES.items():
        if place < share:
            return name  # type: ignore[return-value]
        place -= share
    raise AssertionError("unreachable")


def seeds_in(
    generator: str,
    partition: Partition,
    salt: str = DEFAULT_SALT,
    held_out: Iterable[str] = frozenset(),
    start: int = 0,
) -> Iterator[int]:
    """The seeds of a generator in this partition, upward from `start`, without end; none when the generator is in another one."""
    held_out = frozenset(held_out)
    if (generator in held_out) != (partition == "held_out_generators"):
        return
    seed = start
    while True:
        if partition_of(generator, seed, salt, held_out) == partition:
            yield seed
        seed += 1
