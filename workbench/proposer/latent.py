"""Latent worlds as a library that proposers compose from: the host draws every seed, from the training partition."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from workbench.worlds import TIERS, Tier, WorldError
from workbench.worlds.building import build_environment, planned_kinds
from workbench.worlds.catalog import get, names
from workbench.worlds.draw import Draw
from workbench.worlds.export import export_environment
from workbench.worlds.partitions import DEFAULT_SALT, seeds_in

LOOKS = 64  # seeds whose plan is looked at for the corruptions that were asked for
_SEED_SPACE = 1 << 30


class LatentWorlds:
    """The `worlds` tool's library (workbench.proposer.tools.WorldLibrary), and what the world proposer draws from.

    generators, tiers: what may be composed, None for all. held_out: generators that no training sees. salt: of the partitions, the
    host's own. seed: of this library's draws; the n-th composition of equal libraries is the same. Safe from many threads.
    """

    def __init__(
        self,
        *,
        generators: Iterable[str] | None = None,
        tiers: Sequence[Tier] = TIERS,
        held_out: Iterable[str] = (),
        salt: str = DEFAULT_SALT,
        seed: int = 0,
    ):
        self.held_out, self.salt, self.seed = frozenset(held_out), salt, seed
        self.tiers = tuple(tiers)
        wanted = names() if generators is None else tuple(generators)
        self.generators = tuple(n for n in wanted if n not in self.held_out and self._tiers_of(n))
        if not self.generators:
            raise ValueError(
                f"no generator of {', '.join(wanted)} is for training and has a tier among {', '.join(self.tiers)}"
            )
        self._count = itertools.count()
        self._kinds: dict[tuple[str, Tier], tuple[str, ...]] = {}  # they take a second or two of all generators
        self._lock = threading.Lock()

    def _tiers_of(self, name: str) -> tuple[Tier, ...]:
        return tuple(tier for tier in get(name).spec.tiers if tier in self.tiers)

    def list(self) -> str:
        """The generators, their tiers and the corruptions seen in their plans, one line each."""
        lines = []
        for name in self.generators:
            spec = get(name).spec
            kinds = ", ".join(self.kinds(name))
            lines.append(
                f"{name} ({spec.domain} {spec.title}): tiers {', '.join(self._tiers_of(name))}; corruptions {kinds}"
            )
        return "\n".join(lines) + "\n"

    def kinds(self, name: str, tier: Tier | None = None) -> tuple[str, ...]:
        """The corruption kinds in the plans of the first training seeds."""
        tier = tier or self._tiers_of(name)[0]
        if (found := self._kinds.get((name, tier))) is not None:
            return found
        seeds = itertools.islice(seeds_in(name, "training", self.salt, self.held_out), 12)
        found = self._kinds[name, tier] = tuple(sorted({k for seed in seeds for k in planned_kinds(name, seed, tier)}))
        return found

    def compose(
        self, generator: str, tier: str, corruptions: Sequence[str], target: Path, *, draw: object = None
    ) -> Path:
        """Write a task at `target` (new): the first seed of the training partition, from a drawn start, whose plan is exactly these
        corruption kinds; else one that holds them, the others left out; none asked for: the whole plan. draw: names the draw, so
        that a caller gets the same again; None for the library's next. ValueError says what is wrong with the choice."""
        if generator not in self.generators:
            raise ValueError(f"there is no generator {generator!r} here: choose of {', '.join(self.generators)}")
        if tier not in (own := self._tiers_of(generator)):
            raise ValueError(f"{generator} has no tier {tier!r} here: choose of {', '.join(own)}")
        wanted = frozenset(corruptions)
        if unknown := sorted(wanted - set(self.kinds(generator, tier))):
            raise ValueError(
                f"{generator} has no corruption {', '.join(unknown)}: choose of {', '.join(self.kinds(generator, tier))}"
            )
        if draw is None:
            with self._lock:
                draw = next(self._count)
        seed, kept = self._seed(generator, tier, wanted, Draw("compose", self.salt, self.seed, draw))
        try:
            return export_environment(build_environment(generator, seed, tier, kept), target)
        except WorldError as error:  # a generator that breaks at this seed: not the caller's doing
            raise ValueError(f"{error}; compose again for another seed") from error

    def _seed(self, name: str, tier: Tier, wanted: frozenset[str], draw: Draw) -> tuple[int, tuple[str, ...] | None]:
        """(seed, kinds to keep)."""
        start, second = draw.integer(0, _SEED_SPACE), None
        seeds = seeds_in(name, "training", self.salt, self.held_out, start)
        for seed in itertools.islice(seeds, LOOKS if wanted else 1):
            found = set(planned_kinds(name, seed, tier))
            if not wanted or found == wanted:
                return seed, None
            if second is None and found >= wanted:
                second = seed
        if second is None:
            raise ValueError(f"no world of {name} has {', '.join(sorted(wanted))} together: ask for fewer")
        return second, tuple(sorted(wanted))
