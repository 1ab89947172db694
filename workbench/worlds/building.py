"""Builds an environment from (generator, revision, seed, tier): stages 1 to 6 of Tev §2.1, each checked where it is done."""

from __future__ import annotations

import hashlib
from typing import Any

from workbench.worlds import Defect, Environment, Spec, Stage, Tier, Tree, Workflow, WorldError
from workbench.worlds.catalog import Generator, get
from workbench.worlds.corruption import apply_all, invert_all
from workbench.worlds.draw import Draw
from workbench.worlds.identity import plain_json, world_id
from workbench.worlds.prompt import render as render_prompt

MAX_FILES, MAX_BYTES = 501, 8 << 20  # of a public tree; Tev's largest has 501 files and 6.1 MB
STAGES, DEFECTS = (3, 12), (1, 7)  # Tev A.7; the micro tier may have fewer of both


def build_environment(
    name: str | Generator, seed: int, tier: Tier = "unit", kinds: tuple[str, ...] | None = None
) -> Environment:
    """The environment; the same on every machine. kinds: the corruption kinds to keep of the plan, None for all.

    WorldError when the tier isn't supported, a kind isn't in this plan, or the generator breaks its contract, and says where.
    """
    generator = get(name) if isinstance(name, str) else name
    spec, where = generator.spec, f"{generator.name} seed {seed} tier {tier}"
    if tier not in spec.tiers:
        raise WorldError(f"{generator.name} has no tier {tier!r}: {', '.join(spec.tiers)}")
    try:
        return _build(generator, spec, seed, tier, kinds)
    except WorldError as error:
        raise WorldError(f"{where}: {error}") from error


def _build(generator: Generator, spec: Spec, seed: int, tier: Tier, kinds: tuple[str, ...] | None) -> Environment:
    draw = Draw("world", spec.name, spec.revision, seed, tier)
    world = generator.world.make(draw.fork("world"), tier)
    generator.world.check(world)
    workflow = generator.world.workflow(world)
    _check_workflow(workflow, spec, tier)
    clean = checked_tree(generator.world.render(world), "input/")
    if (again := generator.world.recover(clean)) != world:
        raise WorldError(f"recover(render(world)) is another world: {_difference(world, again)}")
    plan = _kept(generator.world.plan(world, draw.fork("plan")), kinds, tier)
    public, sealed = apply_all(clean, plan)
    if invert_all(public, sealed) != clean:
        raise WorldError("undoing all defects doesn't give the clean files back")
    public = checked_tree(public, "input/")
    truth = plain_json(generator.world.truth(world, sealed), "truth()")
    prompt = render_prompt(spec, generator.world.prompt(world, sealed))
    reference = _trajectory(generator, public, workflow)
    return Environment(
        spec=spec,
        seed=seed,
        tier=tier,
        kinds=None if kinds is None else tuple(sorted(kinds)),
        world=world,
        workflow=workflow,
        defects=sealed,
        prompt=prompt,
        public=public,
        truth=truth,
        reference=reference,
        world_id=world_id(world),
        task_id=task_id(spec, seed, tier, kinds),
    )


def task_id(spec: Spec, seed: int, tier: Tier, kinds: tuple[str, ...] | None = None) -> str:
    """retail_warehouse-r1-unit-s7; with a part of the plan only, -k and eight hexadecimal digits of its kinds."""
    some = "" if kinds is None else "-k" + hashlib.sha256(" ".join(sorted(kinds)).encode()).hexdigest()[:8]
    return f"{spec.name}-r{spec.revision}-{tier}-s{seed}{some}"


def planned_kinds(name: str | Generator, seed: int, tier: Tier = "unit") -> tuple[str, ...]:
    """The corruption kinds of the full plan, in its order, with repeats; without building the rest."""
    generator = get(name) if isinstance(name, str) else name
    draw = Draw("world", generator.spec.name, generator.spec.revision, seed, tier)
    world = generator.world.make(draw.fork("world"), tier)
    return tuple(defect.kind for defect in generator.world.plan(world, draw.fork("plan")))


def clean_tree(environment: Environment) -> dict[str, bytes]:
    """The files before corruption."""
    return invert_all(environment.public, environment.defects)


def _check_workflow(workflow: Workflow, spec: Spec, tier: Tier) -> None:
    stages: tuple[Stage, ...] = workflow.stages
    low = 1 if tier == "micro" else STAGES[0]
    if not low <= len(stages) <= STAGES[1]:
        raise WorldError(f"workflow() has {len(stages)} stages: {low} to {STAGES[1]} are needed")
    known: set[str] = set()
    for stage in stages:
        if stage.name in known:
            raise WorldError(f"workflow(): two stages are named {stage.name!r}")
        if unmet := [r for r in stage.requires if r not in known]:
            raise WorldError(f"workflow(): stage {stage.name!r} requires {unmet}, which don't stand before it")
        if stage.kind not in spec.workflow_stages:
            raise WorldError(f"workflow(): {stage.name!r} is of kind {stage.kind!r}, not of {spec.workflow_stages}")
        if stage.work < 0:
            raise WorldError(f"workflow(): stage {stage.name!r} has negative work")
        known.add(stage.name)


def checked_tree(tree: Tree, top: str, most: int = MAX_FILES) -> dict[str, bytes]:
    for path, data in tree.items():
        parts = path.split("/") if isinstance(path, str) else []
        if not (path.startswith(top) and all(p not in ("", ".", "..") for p in parts) and path.isprintable()):
            raise WorldError(f"{path!r} is no path below {top}")
        if "\\" in path or not isinstance(data, bytes):
            raise WorldError(f"{path!r}: a path without backslash and content as bytes are needed")
    if not tree or len(tree) > most or sum(map(len, tree.values())) > MAX_BYTES:
        raise WorldError(
            f"{top} has {len(tree)} files, {sum(map(len, tree.values()))} bytes: at most {most}, {MAX_BYTES}"
        )
    return dict(sorted(tree.items()))


def _kept(plan: tuple[Defect, ...], kinds: tuple[str, ...] | None, tier: Tier) -> tuple[Defect, ...]:
    low = 0 if tier == "micro" else DEFECTS[0]
    if not low <= len(plan) <= DEFECTS[1]:
        raise WorldError(f"plan() has {len(plan)} defects: {low} to {DEFECTS[1]} are needed")
    if kinds is None:
        return tuple(plan)
    if strange := set(kinds) - {d.kind for d in plan}:
        has = ", ".join(sorted({d.kind for d in plan}))
        raise WorldError(f"the plan has no {', '.join(sorted(strange))}: it has {has}")
    return tuple(d for d in plan if d.kind in kinds)


def _trajectory(generator: Generator, public: Tree, workflow: Workflow) -> tuple[tuple[str, Tree], ...]:
    """The reference's outputs after every stage, each stage of the workflow once and in its order."""
    steps = tuple((stage, dict(outputs)) for stage, outputs in generator.reference.solve(public))
    asked = [stage.name for stage in workflow.stages]
    if [stage for stage, _ in steps] != asked:
        raise WorldError(f"reference.solve() goes through {[s for s, _ in steps]}, the workflow through {asked}")
    for stage, outputs in steps:
        if outputs:
            try:
                checked_tree(outputs, "output/")
            except WorldError as error:
                raise WorldError(f"reference.solve() after {stage}: {error}") from None
    if lacking := [o.path for o in generator.spec.outputs if o.path not in steps[-1][1]]:
        raise WorldError(f"reference.solve() leaves out {', '.join(lacking)}")
    return steps


def _difference(a: Any, b: Any) -> str:
    """The first field that differs, shortly."""
    for name in getattr(a, "__dataclass_fields__", {}):
        if (left := getattr(a, name)) != (right := getattr(b, name, None)):
            return f"{name}: {left!r:.120} became {right!r:.120}"
    return f"{a!r:.120} became {b!r:.120}"
