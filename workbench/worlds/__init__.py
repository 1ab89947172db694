"""Latent worlds: seeded programs that build an environment backward from its answer (Tev §2).

Here belong the contract of a generator, rendering, corruption, the gates, coverage and export; one folder per generator
in `generators/`. May import tasks and trials (its gates).

A generator is a folder `generators/<name>/` of six modules, all pure, seeded, without a model:

`world.py`        SPEC; make(draw, tier) -> World; check(world); workflow(world) -> Workflow; render(world) -> Tree;
                  recover(tree) -> World; plan(world, draw) -> tuple[Defect, ...]; truth(world, defects) -> dict; prompt(world, defects) -> Prompt
`reference.py`    solve(tree) -> Iterator[(stage, Tree)]: the outputs after every stage of the workflow, the last one complete
`alternative.py`  solve(tree) -> Tree: the same outputs by another road
`verify.py`       COMPONENTS = {component: whole weight}; verify(truth, tree) -> {component: score in [0, 1]}
`progress.py`     NODES = ((node, whole weight, (prerequisite, ...)), ...); score(truth, tree) -> {node: score in [0, 1]}
`hidden.py`       causes(tree) -> {component: Tree}; rewrites(tree) -> {name: Tree}; stale(world, defects) -> {name: Tree}

Roles: world and hidden run on the host only. reference and alternative see what an agent sees. verify and progress see the
sealed truth and the outputs. The four import nothing of each other or of world: only the standard library and
`workbench.worlds.formats` (the stated allowlist; role independence, Tev Table 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from workbench.tasks.progress import Node
from workbench.worlds.draw import Draw as Draw

Tier = Literal["micro", "unit", "small", "full"]
TIERS: tuple[Tier, ...] = ("micro", "unit", "small", "full")

# Files by their path relative to the agent's working directory, always with "/": "input/orders.csv", "output/summary.json".
Tree = Mapping[str, bytes]

DOMAINS: Mapping[str, str] = {
    "9.1": "Software Engineering",
    "9.2": "Data and Analytics Engineering",
    "9.3": "AI Engineering and CS Research",
    "9.4": "Mathematical and Operations Research",
    "9.5": "Security and Forensics",
    "9.6": "Infrastructure and Cloud",
    "9.7": "Quantum Computing",
    "6": "Energy and Building Control",  # beyond computing and math: the worked examples of Tev A.10
    "3": "Accounting and Finance",
}


class WorldError(ValueError):
    """A world breaks an invariant, a defect can't be applied, or a rendered tree can't be read: says what and where."""


@dataclass(frozen=True)
class Output:
    """One file that the agent must write.

    path: below "output/". format: "json", "csv", "tsv", "jsonl", "sqlite", "text", "binary". schema: what the prompt says of it and what a
    minimal schema-valid file is made from: for csv/tsv column -> type; for jsonl field -> type; for sqlite table -> {column -> SQL type};
    for json a shape whose leaves are types ({"total": "number", "items": [{"id": "string"}], "by_region": {"<region>": "number"}});
    for text and binary {"description": words}. Types: "string", "integer", "number", "boolean", "date".
    """

    path: str
    format: Literal["json", "csv", "tsv", "jsonl", "sqlite", "text", "binary"]
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Spec:
    """What a generator is. `revision` grows with every change that changes any byte of any environment.

    name: the folder's, words joined with underscores. domain: a key of DOMAINS. tiers: supported scale tiers. The rest are values of the
    coverage axes (Tev A.3): curriculum_layer "foundation"|"integration"|"mastery"; workflow_stages: the kinds of work over its
    stages, like "profile", "reconcile", "aggregate"; tools: what a solver needs ("python3", "sqlite3"); artifact_roles: of its inputs
    ("records", "reference-table", "log", "image", "policy" …); relation_types: between inputs ("foreign-key", "precedence", "temporal" …);
    source_kind: what the world stands for, in words; license_class: "generated" for all of ours.
    """

    name: str
    revision: int
    domain: str
    title: str
    summary: str
    outputs: tuple[Output, ...]
    tiers: tuple[Tier, ...] = ("unit", "small", "full")
    curriculum_layer: Literal["foundation", "integration", "mastery"] = "integration"
    workflow_stages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ("python3",)
    artifact_roles: tuple[str, ...] = ()
    relation_types: tuple[str, ...] = ()
    source_kind: str = "synthetic"
    license_class: str = "generated"
    python_packages: tuple[
        str, ...
    ] = ()  # of the toolchain, pinned "name==version", installed in the environment's image


@dataclass(frozen=True)
class Stage:
    """One stage of the workflow DAG. work: semantic work in units of decisions (rows to judge, rules to apply); requires: names."""

    name: str
    kind: str  # one of Spec.workflow_stages
    work: int
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workflow:
    """The DAG of stages, in a topological order (Tev §2.1 stage 2): 3-12 stages. Its shape does not change with the tier, its work does."""

    stages: tuple[Stage, ...]

    def critical_path(self) -> tuple[str, ...]:
        """The longest chain of dependent stages, by number, then by work: the structural horizon (Tev A.5)."""
        best: dict[str, tuple[int, int, tuple[str, ...]]] = {}
        for stage in self.stages:
            before = max((best[r] for r in stage.requires), default=(0, 0, ()))
            best[stage.name] = (before[0] + 1, before[1] + stage.work, (*before[2], stage.name))
        return max(best.values())[2]


@dataclass(frozen=True)
class Defect:
    """One declared corruption: operator `kind` of the registry (worlds/corruption.py), applied to input file `path`.

    params: what the operator needs, chosen from the world, plain JSON data. note: what it means, for people. Hidden from the agent, unless the
    prompt's rules speak of the class.
    """

    kind: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Prompt:
    """The public contract, from which the prompt is rendered the same way for all (Tev §2.1 stage 5).

    goal: two or three sentences. inputs: path (or folder pattern) -> role. requirements: ordered. authority: which source wins, and how
    defects are to be resolved; with these the answer is unique. Outputs and toolchain come from the Spec.
    """

    goal: str
    inputs: Mapping[str, str]
    requirements: tuple[str, ...]
    authority: tuple[str, ...]


class World(Protocol):
    """Anything a generator's make() returns: a frozen dataclass of plain values, comparable with ==."""


@dataclass(frozen=True)
class Environment:
    """One environment: a pure function of (generator, revision, seed, tier, kinds); E = (x, s0, ver, Phi) of Tev Eq. 1 before export.

    kinds: the corruption kinds kept of the full plan, None for all. prompt: x, as text. public: s0, paths below "input/". truth: the
    sealed answer key, JSON data. reference: cumulative outputs after each stage. world_id: sha256 of the world; task_id: names it.
    """

    spec: Spec
    seed: int
    tier: Tier
    kinds: tuple[str, ...] | None
    world: Any
    workflow: Workflow
    defects: tuple[Defect, ...]
    prompt: str
    public: Tree
    truth: Mapping[str, Any]
    reference: tuple[tuple[str, Tree], ...]
    world_id: str
    task_id: str

    @property
    def output(self) -> Tree:
        """The complete reference output."""
        return self.reference[-1][1]


class GeneratorModules(Protocol):
    """The six modules of a generator, loaded by worlds.catalog."""

    name: str
    world: Any
    reference: Any
    alternative: Any
    verify: Any
    progress: Any
    hidden: Any


def potential(nodes: tuple[Node, ...], scores: Mapping[str, float]) -> float:
    """Phi(s) = sum_v w_v c~_v(s), c~_v the lowest score over v and all its prerequisites (Tev §3.2, Eq. 3). Exactly 1.0 when all are 1."""
    from workbench.worlds.phi import combine

    return combine(nodes, scores)


def build(name: str, seed: int, tier: Tier = "unit", kinds: tuple[str, ...] | None = None) -> Environment:
    """The environment of (generator, seed, tier). Raises WorldError; KeyError lists the generators there are."""
    from workbench.worlds.building import build_environment

    return build_environment(name, seed, tier, kinds)


def iterate_reference(environment: Environment) -> Iterator[tuple[str, Tree]]:
    """(stage, outputs so far) along the reference trajectory."""
    yield from environment.reference
