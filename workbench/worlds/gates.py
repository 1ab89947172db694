"""The nine gates of a generator: the eight of Tev Table 7, and the similarity gate of A.1. `run` is their one door.

A gate that is passed says nothing about what another observes. Gates of an environment look at one (seed, tier); gates of a generator look
at its code and at several seeds, and are remembered.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.worlds import Environment, Tier, WorldError
from workbench.worlds import catalog as generators
from workbench.worlds.building import build_environment
from workbench.worlds.catalog import Generator
from workbench.worlds.gate_grading import (
    exploit_resistance,
    metamorphic_invariance,
    progress_validity,
    reward_causality,
    solver_agreement,
)
from workbench.worlds.gate_hygiene import public_hygiene
from workbench.worlds.gate_independence import role_independence
from workbench.worlds.gate_similarity import similarity
from workbench.worlds.identity import tree_digest

CONSTRUCTION = "construction"  # no gate of the paper's: the environment could not be built at all
DIVERSITY_SEEDS = 6

# gate -> the failure class it targets, in the words of Tev Table 7; similarity_gate is of A.1, construction is ours.
FAILURE_CLASSES = {
    "reward_causality": "reward credits the wrong outcome",
    "exploit_resistance": "verifier loophole, shortcut acceptance",
    "role_independence": "shared bias between solver and grader",
    "solver_agreement": "verifier-only acceptance, unresolved specification",
    "similarity_gate": "near-duplicate of a registered generator",
    "progress_validity": "invalid process signal",
    "metamorphic_invariance": "over-narrow verifier; stale-state acceptance",
    "six_seed_diversity": "degenerate environment, template repetition",
    "public_contract_hygiene": "answer leakage",
    CONSTRUCTION: "the files do not determine the world",
}
GATES = tuple(gate for gate in FAILURE_CLASSES if gate != CONSTRUCTION)
OF_ENVIRONMENT = (
    "reward_causality",
    "exploit_resistance",
    "solver_agreement",
    "progress_validity",
    "metamorphic_invariance",
    "public_contract_hygiene",
)
OF_GENERATOR = ("role_independence", "similarity_gate", "six_seed_diversity")


@dataclass(frozen=True)
class GateResult:
    """One gate on one generator (seed and tier None) or environment. messages: where and what to do; empty when passed."""

    gate: str
    generator: str
    seed: int | None
    tier: Tier | None
    messages: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.messages

    @property
    def failure_class(self) -> str:
        return FAILURE_CLASSES[self.gate]

    def to_row(self) -> dict[str, object]:
        row = {name: getattr(self, name) for name in ("gate", "generator", "seed", "tier", "passed", "failure_class")}
        return {**row, "messages": list(self.messages), "seconds": round(self.seconds, 4)}

    def __str__(self) -> str:
        where = self.generator if self.seed is None else f"{self.generator} seed {self.seed} {self.tier}"
        if self.passed:
            return f"{self.gate}: {where} passed"
        return "\n".join(f"{self.gate} ({self.failure_class}): {where}: {message}" for message in self.messages)


def run(
    name: str | Generator,
    seeds: Iterable[int] = (1,),
    tiers: Sequence[Tier] | None = None,
    others: Sequence[Generator] | None = None,
) -> Iterator[GateResult]:
    """Every gate: those of the generator first, then those of each environment, tier by tier.

    tiers: those of its Spec by default. others: what it is compared with, by default all registered generators and the scaffold.
    KeyError when there is no such generator. A generator that can't be loaded or built fails `construction`.
    """
    seeds = tuple(seeds)
    try:
        generator = generators.get(name) if isinstance(name, str) else name
        tiers = tuple(tiers or generator.spec.tiers)
    except WorldError as error:
        yield GateResult(CONSTRUCTION, str(name), None, None, (str(error),), 0.0)
        return
    if isinstance(failed := _built(generator, seeds[0], tiers[0]), GateResult):
        yield failed
        return
    yield from generator_gates(generator, tiers, others)
    for tier in tiers:
        for seed in seeds:
            environment = _built(generator, seed, tier)
            if isinstance(environment, GateResult):
                yield environment
            else:
                yield from environment_gates(generator, environment)


def _built(generator: Generator, seed: int, tier: Tier) -> Environment | GateResult:
    started = time.process_time()
    try:
        return build_environment(generator, seed, tier)
    except Exception as error:  # whatever the generator's own code raises
        text = str(error) if isinstance(error, WorldError) else f"{type(error).__name__}: {error}"
        where = _place(error, generator.folder)
        return GateResult(CONSTRUCTION, generator.name, seed, tier, (text + where,), time.process_time() - started)


def _place(error: BaseException, folder: Path) -> str:
    """The generator's own line that raised, if one did."""
    line, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).parent == folder:
            line = f" ({Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno})"
        trace = trace.tb_next
    return line


def environment_gates(generator: Generator, environment: Environment) -> list[GateResult]:
    """The six gates that look at one environment."""
    other = functools.partial(_other_seed, generator, environment.seed, environment.tier, environment.world_id)
    checks: dict[str, Callable[[], list[str]]] = {
        "reward_causality": lambda: reward_causality(generator, environment),
        "exploit_resistance": lambda: exploit_resistance(generator, environment, other()),
        "solver_agreement": lambda: solver_agreement(generator, environment),
        "progress_validity": lambda: progress_validity(generator, environment),
        "metamorphic_invariance": lambda: metamorphic_invariance(generator, environment),
        "public_contract_hygiene": lambda: public_hygiene(generator, environment),
    }
    at = (generator.name, environment.seed, environment.tier)
    return [_timed(gate, at, checks[gate], generator.folder) for gate in OF_ENVIRONMENT]


def generator_gates(
    generator: Generator, tiers: Sequence[Tier], others: Sequence[Generator] | None = None
) -> list[GateResult]:
    """The three gates that look at the generator: its code, its likeness to others, its seeds in each tier."""
    compared = registered() if others is None else others
    at = (generator.name, None, None)
    first = tiers[0]
    return [
        _timed(
            "role_independence",
            at,
            lambda: role_independence(generator, build_environment(generator, 0, first)),
            generator.folder,
        ),
        _timed("similarity_gate", at, lambda: similarity(generator, compared), generator.folder),
        *(
            _timed(
                "six_seed_diversity",
                (generator.name, None, tier),
                lambda t=tier: _diversity(generator, t),
                generator.folder,
            )
            for tier in tiers
        ),
    ]


def registered() -> list[Generator]:
    """All complete generators that can be loaded, and the scaffold, which none may repeat."""
    found = [scaffold()]
    for name in generators.names():
        try:
            found.append(generators.get(name))
        except WorldError:
            continue  # its own gates say so
    return found


def scaffold() -> Generator:
    """The small generator that `workbench worlds new` copies."""
    return generators.at(Path(__file__).parent / "templates" / "template")


def _timed(
    gate: str, at: tuple[str, int | None, Tier | None], check: Callable[[], list[str]], folder: Path
) -> GateResult:
    started = time.process_time()
    try:
        messages = check()
    except Exception as error:  # a hidden suite or grader that raises fails the gate that asked it
        text = str(error) if isinstance(error, WorldError) else f"{type(error).__name__}: {error}"
        messages = [text + _place(error, folder)]
    return GateResult(gate, *at, tuple(messages), time.process_time() - started)


def _identity(generator: Generator, seed: int, tier: Tier) -> tuple[str, str, str]:
    environment = build_environment(generator, seed, tier)
    return environment.world_id, tree_digest(environment.public), environment.task_id


@functools.cache
def _diversity(generator: Generator, tier: Tier) -> list[str]:
    """At least six seeds give distinct worlds, public trees and task ids."""
    found = [_identity(generator, seed, tier) for seed in range(DIVERSITY_SEEDS)]
    wrong = []
    for place, what in enumerate(("world", "public tree", "task id")):
        if (distinct := len({row[place] for row in found})) < DIVERSITY_SEEDS:
            wrong.append(
                f"{DIVERSITY_SEEDS} seeds of tier {tier} give {distinct} distinct {what}s: draw names, values and damage from the seed"
            )
    return wrong


def _other_seed(generator: Generator, seed: int, tier: Tier, world_id: str) -> Environment | None:
    """An environment of another seed; None when all that are tried give the same world (six_seed_diversity says so)."""
    for other in range(DIVERSITY_SEEDS):
        if other != seed and (environment := _sample(generator, other, tier)).world_id != world_id:
            return environment
    return None


@functools.lru_cache(maxsize=128)
def _sample(generator: Generator, seed: int, tier: Tier) -> Environment:
    """One of the first seeds' environments, remembered: the probes of all other seeds compare with the same one."""
    return build_environment(generator, seed, tier)
