"""The gates that grade output trees: reward causality, exploit resistance, solver agreement, progress validity, metamorphic invariance
(Tev A.6). Each gives the list of what is wrong: empty when the gate is passed."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.worlds import Environment, Tree, WorldError
from workbench.worlds.canonical import differences
from workbench.worlds.catalog import Generator
from workbench.worlds.grading import Grade, grade
from workbench.worlds.probes import PROBES, garbage

LEAST_RISES = 3  # of Phi along the reference trajectory; the micro tier may have one
LEAST_REWRITES, LEAST_STALE = 2, 2


def reward_causality(generator: Generator, environment: Environment) -> list[str]:
    """c(mu_c(s)) < c(s) for every component c and its cause-mutation mu_c of the reference's output."""
    causes = generator.hidden.causes(environment.output)
    names = set(generator.components)
    if set(causes) != names:
        return [f"hidden.causes() has {sorted(causes)}, verify.COMPONENTS {sorted(names)}: give one mutation for each"]
    whole = grade(generator, environment, environment.output).components
    wrong = []
    for name, tree in causes.items():
        if dict(tree) == dict(environment.output):
            wrong.append(f"hidden.causes()[{name!r}] is the output as it was: mutate what the component is about")
        elif not (after := grade(generator, environment, tree).components[name]) < whole[name]:
            wrong.append(
                f"component {name!r} stays {after:g} when its cause is mutated: verify.py must look at what hidden.causes() changes"
            )
    return wrong


def exploit_resistance(generator: Generator, environment: Environment, other: Environment | None) -> list[str]:
    """Every probe earns 0 of every component and Phi = 0; bytes that break readers earn no pass."""
    wrong = []
    for name, probe in PROBES.items():
        wrong += _scores_zero(generator, environment, probe(environment, other), name)
    for path, data in environment.output.items():
        for name, bytes_ in garbage(data).items():
            if bytes_ == data:
                continue
            try:
                graded = grade(generator, environment, {**environment.output, path: bytes_})
            except WorldError as error:
                wrong.append(f"{path} as {name}: {error}. Graders answer 0 for what they can't read")
                continue
            declared = path in {output.path for output in environment.spec.outputs}
            if declared and graded.passed:
                wrong.append(f"{path} as {name}: the verifier passes it")
    return wrong


def _scores_zero(generator: Generator, environment: Environment, tree: Tree, probe: str) -> list[str]:
    try:
        graded = grade(generator, environment, tree)
    except WorldError as error:
        return [f"probe {probe}: {error}. Graders answer 0 for what they can't read"]
    wrong = []
    if paid := {name: value for name, value in graded.components.items() if value > 0}:
        wrong.append(f"probe {probe}: verify.py pays {paid}: earn nothing until enough content facts match")
    if graded.phi > 0:
        paid = {name: value for name, value in graded.nodes.items() if value > 0}
        wrong.append(
            f"probe {probe}: Phi = {graded.phi:.4g} ({paid}): nodes of form earn nothing before a content fact"
        )
    return wrong


def solver_agreement(generator: Generator, environment: Environment) -> list[str]:
    """The reference scores exactly 1 under both graders, and the alternative gives the same tree."""
    wrong = []
    graded = grade(generator, environment, environment.output)
    if not graded.passed:
        low = {name: value for name, value in graded.components.items() if value != 1}
        wrong.append(f"the reference's output isn't passed by verify.py: {low}")
    if graded.phi != 1:
        low = {name: value for name, value in graded.nodes.items() if value != 1}
        wrong.append(f"the reference's output has Phi = {graded.phi:.6g}: {low}")
    try:
        again = dict(generator.alternative.solve(dict(environment.public)))
    except Exception as error:  # a solver may fail in any way
        return [*wrong, f"alternative.solve() raised {type(error).__name__}: {str(error)[:200]}"]
    found = differences(environment.output, again)
    return wrong + [f"reference and alternative disagree: {text}: settle the specification" for text in found]


def progress_validity(generator: Generator, environment: Environment) -> list[str]:
    """0 at the start, between 0 and 1 on partial states, never falling along the reference, less after every loss; 1 iff passed."""
    wrong = []
    start = grade(generator, environment, {})
    if start.phi != 0:
        wrong.append(f"Phi = {start.phi:.4g} for the untouched workspace: it must be 0")
    trajectory = [grade(generator, environment, tree) for _, tree in environment.reference]
    wrong += _monotone(environment, trajectory)
    whole = trajectory[-1]
    for path in sorted(environment.output):
        left = {name: data for name, data in environment.output.items() if name != path}
        lost = grade(generator, environment, left)
        if path in {output.path for output in environment.spec.outputs} and not lost.phi < whole.phi:
            wrong.append(f"Phi stays {lost.phi:.4g} when {path} is deleted: a node must stand on it")
        wrong += _iff(lost, f"without {path}")
    for name, tree in generator.hidden.causes(environment.output).items():
        wrong += _iff(grade(generator, environment, tree), f"after the mutation of {name!r}")
    return wrong


def _monotone(environment: Environment, trajectory: list[Grade]) -> list[str]:
    wrong, rises, before = [], 0, 0.0
    for (stage, _), graded in zip(environment.reference, trajectory, strict=True):
        if graded.phi < before:
            fell = {name: value for name, value in graded.nodes.items() if value < 1}
            wrong.append(
                f"Phi falls from {before:.4g} to {graded.phi:.4g} at stage {stage!r} of the reference ({fell})"
            )
        rises += graded.phi > before
        before = graded.phi
        wrong += _iff(graded, f"after stage {stage!r}")
    if before != 1:
        wrong.append(f"Phi ends at {before:.6g} along the reference: it must be exactly 1")
    least = 1 if environment.tier == "micro" else LEAST_RISES
    if rises < least:
        wrong.append(
            f"Phi rises {rises} times along the reference, at least {least} are needed: show stages in the outputs"
        )
    return wrong


def _iff(graded: Grade, where: str) -> list[str]:
    if graded.passed == (graded.phi == 1):
        return []
    low = {name: value for name, value in {**graded.components, **graded.nodes}.items() if value != 1}
    says = "passes" if graded.passed else "fails"
    return [
        f"{where} the verifier {says} but Phi = {graded.phi:.6g} ({low}): Phi is 1 exactly when the verifier passes"
    ]


def metamorphic_invariance(generator: Generator, environment: Environment) -> list[str]:
    """Rewrites that keep the meaning keep the grade; stale outputs fail."""
    rewrites = generator.hidden.rewrites(environment.output)
    stale = generator.hidden.stale(environment.world, environment.defects)
    wrong = []
    if len(rewrites) < LEAST_REWRITES:
        wrong.append(f"hidden.rewrites() has {len(rewrites)}: at least {LEAST_REWRITES} are needed")
    if len(stale) < LEAST_STALE:
        wrong.append(f"hidden.stale() has {len(stale)}: at least {LEAST_STALE} are needed")
    before = grade(generator, environment, environment.output)
    for name, tree in rewrites.items():
        if dict(tree) == dict(environment.output):
            wrong.append(f"rewrite {name!r} changes no byte")
        wrong += _kept(before, grade(generator, environment, tree), name)
    for name, tree in stale.items():
        graded = grade(generator, environment, tree)
        if graded.passed or graded.phi == 1:
            wrong.append(
                f"the stale output {name!r} passes (Phi = {graded.phi:.4g}): it must fail, or differ from the answer"
            )
        if lacking := [o.path for o in environment.spec.outputs if o.path not in tree]:
            wrong.append(f"the stale output {name!r} lacks {', '.join(lacking)}: it must be complete, and wrong")
    return wrong


def _kept(before: Grade, after: Grade, name: str) -> Iterable[str]:
    changed = [n for n, value in before.components.items() if after.components[n] != value]
    changed += [n for n, value in before.nodes.items() if after.nodes[n] != value]
    if changed:
        yield f"rewrite {name!r} changes the grade of {', '.join(changed)}: graders must read the meaning, not the bytes"
