"""The world proposer: answers an assignment with a latent world chosen from the solver's pass rate and failures. No model.

It walks a ladder of rungs (generator, tier, corruption kinds): simpler drops a kind, then goes a tier down, then to a generator of an
earlier curriculum layer; harder goes the other way. A pass rate near 0 or 1 skips a rung. Not one of AutoEnvScaling's methods: it is
the strong default that any model has to beat, because its environments are exact and gated by construction (Tev §2).
"""

from __future__ import annotations

import shutil
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.proposer import Assignment, Proposal
from workbench.proposer.latent import LatentWorlds
from workbench.worlds import Tier
from workbench.worlds.building import planned_kinds
from workbench.worlds.catalog import get
from workbench.worlds.draw import Draw

LAYERS = ("foundation", "integration", "mastery")
EXTREME = 0.1  # pass rates this near to 0 or 1 skip a rung
ATTEMPTS = 8  # choices that may turn out impossible before it gives up


@dataclass(frozen=True)
class Rung:
    """What a world is made of: kinds () is the generator's whole plan."""

    generator: str
    tier: Tier
    kinds: tuple[str, ...]


def rung_of(task: Path) -> Rung | None:
    """The rung that a world's task states in [metadata.workbench.world]; None for any other task."""
    try:
        data = tomllib.loads((task / "task.toml").read_text())["metadata"]["workbench"]["world"]
        name, tier, kinds = str(data["generator"]), data["tier"], data.get("kinds")
        kinds = planned_kinds(name, int(data["seed"]), tier) if kinds is None else kinds
        return Rung(name, tier, tuple(sorted(set(map(str, kinds)))))
    except (OSError, KeyError, TypeError, ValueError):
        return None


class WorldProposer:
    """library: what it composes from; default all generators and the tiers from unit up."""

    name = "world"

    def __init__(self, library: LatentWorlds | None = None, **options: object):
        self.library = library or LatentWorlds(**{"tiers": ("unit", "small", "full"), **options})

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        began = time.monotonic()
        if target.exists():  # a revision: worlds are composed anew
            shutil.rmtree(target)
        draw = Draw("world proposer", assignment.id, seed)
        at = rung_of(Path(assignment.parent_path))
        message = ""
        for attempt in range(ATTEMPTS):
            rung = self._next(at, assignment, draw.fork(attempt))
            name = f"{assignment.run_id}/{assignment.id}/{seed}/{attempt}/{feedback}"
            try:
                path = self.library.compose(rung.generator, rung.tier, rung.kinds, target, draw=name)
            except ValueError as error:
                message = str(error)
                continue
            kinds = ", ".join(rung.kinds) or "its whole plan"
            words = f"{rung.generator} {rung.tier}: {kinds}"
            return Proposal(assignment.id, self.name, str(path), words, time.monotonic() - began, usd=0.0)
        return Proposal(assignment.id, self.name, None, message, time.monotonic() - began, usd=0.0)

    def _next(self, at: Rung | None, assignment: Assignment, draw: Draw) -> Rung:
        if at is None or at.generator not in self.library.generators:
            return self._some(self._named(assignment) or self.library.generators, draw)
        steps = 2 if min(assignment.pass_rate, 1 - assignment.pass_rate) < EXTREME else 1
        for _ in range(steps):
            at = self._harder(at, draw) if assignment.direction == "harder" else self._simpler(at, assignment, draw)
        return at

    def _named(self, assignment: Assignment) -> tuple[str, ...]:
        """Generators whose subject the parent or its failure speaks of."""
        words = set(f"{assignment.parent} {assignment.failure}".lower().replace("-", " ").replace("_", " ").split())
        return tuple(n for n in self.library.generators if words & set(n.split("_")))

    def _some(self, names: Sequence[str], draw: Draw) -> Rung:
        name = draw.choice(list(names))
        tier = self._tiers(name)[0]
        return Rung(name, tier, (draw.choice(self.library.kinds(name, tier)),))

    def _tiers(self, name: str) -> list[Tier]:
        return [tier for tier in get(name).spec.tiers if tier in self.library.tiers]

    def _simpler(self, at: Rung, assignment: Assignment, draw: Draw) -> Rung:
        if len(at.kinds) > 1:
            blamed = [kind for kind in at.kinds if set(kind.split("_")) & set(assignment.failure.lower().split())]
            gone = draw.choice(blamed or list(at.kinds))
            return Rung(at.generator, at.tier, tuple(kind for kind in at.kinds if kind != gone))
        tiers = self._tiers(at.generator)
        if (place := tiers.index(at.tier)) > 0:
            return Rung(at.generator, tiers[place - 1], ())
        return self._some(self._other(at.generator, -1), draw)

    def _harder(self, at: Rung, draw: Draw) -> Rung:
        more = sorted(set(self.library.kinds(at.generator, at.tier)) - set(at.kinds))
        if at.kinds and more:
            return Rung(at.generator, at.tier, tuple(sorted((*at.kinds, draw.choice(more)))))
        tiers = self._tiers(at.generator)
        if (place := tiers.index(at.tier)) + 1 < len(tiers):
            return Rung(at.generator, tiers[place + 1], ())
        return self._some(self._other(at.generator, 1), draw)

    def _other(self, name: str, way: int) -> list[str]:
        """The other generators, those of a later (earlier) curriculum layer if there are any."""
        own = LAYERS.index(get(name).spec.curriculum_layer)
        others = [n for n in self.library.generators if n != name] or [name]
        beyond = [n for n in others if (LAYERS.index(get(n).spec.curriculum_layer) - own) * way > 0]
        return beyond or others
