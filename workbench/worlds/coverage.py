"""The nineteen coverage axes, and a strength-2 covering array by greedy choice (Tev A.3).

Every environment is labeled on each axis, on some with several values. For any two axes, every valid pair of their values should co-occur
in at least one admitted environment. A pair is valid when some buildable environment has it: a generator declares its values and draws
its corruptions from the seed, so the valid pairs are those of a pool of (generator, seed, tier), wide enough for every declared kind.

Reward band, outcome and failure category say what solvers did: `unobserved` until rollouts exist, and in no pair until then.
The four horizons are bands of our own choosing (Tev names the axes only): semantic = work over all stages of the workflow; action =
stages on its critical path; operational = bytes of the input files; verification = progress nodes and reward components together.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from workbench.worlds import Defect, Spec, Tier, Workflow
from workbench.worlds.building import checked_tree
from workbench.worlds.catalog import Generator, get
from workbench.worlds.draw import Draw

UNOBSERVED = "unobserved"
ROLLOUT_AXES = ("reward_band", "outcome_category", "failure_category")
AXES = (
    "curriculum_layer",
    "subdomain",
    "generator_revision",
    "scale_tier",
    "semantic_horizon",
    "action_horizon",
    "operational_horizon",
    "verification_horizon",
    "workflow_stage",
    "tool_capability",
    "artifact_role",
    "relation_type",
    "corruption_class",
    "source_kind",
    "license_class",
    "reward_component",
    *ROLLOUT_AXES,
)

Labels = Mapping[str, tuple[str, ...]]  # axis -> values
Value = tuple[str, str]  # axis, value
Pair = tuple[Value, Value]

# Upper ends of bands; what is larger falls into the last, open one.
BANDS = {
    "semantic_horizon": (100, 1000, 10_000),
    "action_horizon": (4, 6, 9),
    "operational_horizon": (16 << 10, 64 << 10, 256 << 10),
    "verification_horizon": (8, 12, 16),
}


def band(axis: str, value: int) -> str:
    """ "<100", "100-999", … ">=10000"."""
    edges = BANDS[axis]
    if value < edges[0]:
        return f"<{edges[0]}"
    for low, high in pairwise(edges):
        if value < high:
            return f"{low}-{high - 1}"
    return f">={edges[-1]}"


@dataclass(frozen=True)
class Sketch:
    """What coverage and plans need of an environment, without solving it."""

    generator: str
    seed: int
    tier: Tier
    labels: Labels

    @property
    def key(self) -> tuple[str, int, Tier]:
        return self.generator, self.seed, self.tier


def sketch(name: str | Generator, seed: int, tier: Tier) -> Sketch:
    """The labels of (generator, seed, tier), from its world, plan and clean files alone. The same as of the built environment."""
    generator = get(name) if isinstance(name, str) else name
    spec = generator.spec
    draw = Draw("world", spec.name, spec.revision, seed, tier)
    world = generator.world.make(draw.fork("world"), tier)
    clean = checked_tree(generator.world.render(world), "input/")
    plan = generator.world.plan(world, draw.fork("plan"))
    size = sum(map(len, clean.values()))
    return Sketch(generator.name, seed, tier, labels(generator, tier, generator.world.workflow(world), plan, size))


def labels(
    generator: Generator,
    tier: Tier,
    workflow: Workflow,
    defects: Sequence[Defect],
    input_bytes: int,
    observed: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Every axis with its values. observed: values of the three axes that need rollouts, once there are some."""
    spec: Spec = generator.spec
    checks = len(generator.nodes) + len(generator.components)
    known: dict[str, Iterable[str]] = {
        "curriculum_layer": [spec.curriculum_layer],
        "subdomain": [spec.domain],
        "generator_revision": [f"{spec.name}@{spec.revision}"],
        "scale_tier": [tier],
        "semantic_horizon": [band("semantic_horizon", sum(stage.work for stage in workflow.stages))],
        "action_horizon": [band("action_horizon", len(workflow.critical_path()))],
        "operational_horizon": [band("operational_horizon", input_bytes)],
        "verification_horizon": [band("verification_horizon", checks)],
        "workflow_stage": {stage.kind for stage in workflow.stages},
        "tool_capability": spec.tools,
        "artifact_role": spec.artifact_roles,
        "relation_type": spec.relation_types,
        "corruption_class": {defect.kind for defect in defects} or {"none"},
        "source_kind": [spec.source_kind],
        "license_class": [spec.license_class],
        "reward_component": generator.components,
    }
    known |= {axis: (observed or {}).get(axis, (UNOBSERVED,)) for axis in ROLLOUT_AXES}
    return {axis: tuple(sorted(known[axis])) for axis in AXES}


def pairs(labelled: Labels) -> frozenset[Pair]:
    """Every pair of values of two different axes; what is unobserved is in none."""
    values = [(axis, value) for axis in AXES for value in labelled[axis] if value != UNOBSERVED]
    return frozenset(pair for pair in combinations(values, 2) if pair[0][0] != pair[1][0])


def valid_pairs(pool: Iterable[Sketch]) -> frozenset[Pair]:
    """Every pair that some environment of the pool has."""
    return frozenset().union(*(pairs(s.labels) for s in pool))


def greedy(pool: Sequence[Sketch], size: int | None = None, covered: Iterable[Pair] = ()) -> list[Sketch]:
    """Sketches of the pool, chosen one by one for the largest number of still uncovered pairs (of equals the first), until none adds any
    or `size` are chosen. Lazy: a candidate's gain only shrinks, so it is counted again only when it stands first."""
    done = set(covered)
    every = [pairs(s.labels) for s in pool]
    queue = [(-len(found - done), place) for place, found in enumerate(every)]
    heapq.heapify(queue)
    chosen: list[Sketch] = []
    while queue and (size is None or len(chosen) < size):
        _, place = heapq.heappop(queue)
        now = len(every[place] - done)
        if now == 0:
            continue
        if queue and (-now, place) > queue[0]:
            heapq.heappush(queue, (-now, place))
            continue
        done |= every[place]
        chosen.append(pool[place])
    return chosen


@dataclass(frozen=True)
class Coverage:
    """valid and covered: numbers of pairs. uncovered: the valid pairs that no admitted environment has. values: axis -> its values."""

    valid: int
    covered: int
    uncovered: tuple[Pair, ...]
    values: Labels

    @property
    def share(self) -> float:
        return self.covered / self.valid if self.valid else 1.0

    def to_row(self) -> dict[str, object]:
        told = [" x ".join(f"{axis}={value}" for axis, value in pair) for pair in self.uncovered]
        values = {axis: list(found) for axis, found in self.values.items()}
        return {
            "valid_pairs": self.valid,
            "covered_pairs": self.covered,
            "share": self.share,
            "uncovered": told,
            "values": values,
        }


def measure(admitted: Iterable[Labels], pool: Iterable[Sketch]) -> Coverage:
    """Coverage of the admitted environments. What they have and the pool has not is valid too."""
    admitted = list(admitted)
    covered = frozenset().union(*(pairs(found) for found in admitted)) if admitted else frozenset()
    valid = valid_pairs(pool) | covered
    values = {axis: tuple(sorted({v for found in admitted for v in found[axis]})) for axis in AXES}
    return Coverage(len(valid), len(covered), tuple(sorted(valid - covered)), values)
