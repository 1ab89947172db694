"""What the notebook 60_worlds runs on latent worlds: one environment opened, groups of rollouts, verifiers compared.

Everything is kept in a run, so that a killed notebook goes on where it was."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.admission.difficulty import Protocol, evaluators
from workbench.admission.partial_solver import FIGURE_4, GivenOutputs, group
from workbench.agents import Agent, Budget
from workbench.models import Sampling
from workbench.proposer.ablation_corpus import agreement
from workbench.runs.folder import Run
from workbench.runs.progress import Progress
from workbench.sandboxes import Backend
from workbench.tasks import Task, load_task
from workbench.tasks.progress import gated
from workbench.trials import Trial
from workbench.trials.batch import Job, run_trials
from workbench.worlds import Environment, Tier, build
from workbench.worlds.catalog import get
from workbench.worlds.corpus import Corpus, Plan, build_corpus
from workbench.worlds.export import export_environment
from workbench.worlds.grading import grade
from workbench.worlds.observed import relabelled

if TYPE_CHECKING:
    import pandas as pd

SCRIPTED = "partial"


def open_environment(values: Mapping[str, Any]) -> Environment:
    """The environment that is opened up. values: generator, world_seed, tier."""
    return build(values["generator"], values["world_seed"], values["tier"])


def reference_grades(environment: Environment) -> list[tuple[str, float, Mapping[str, float]]]:
    """(stage, Phi, credit of each node as its prerequisites cap it) along the reference, graded as a task will be."""
    generator = get(environment.spec.name)
    found = [(stage, grade(generator, environment, outputs)) for stage, outputs in environment.reference]
    return [(stage, graded.phi, gated(generator.nodes, graded.nodes)) for stage, graded in found]


def task_of(run: Run, environment: Environment) -> Task:
    """The environment's task in the run's folder, written when it is not there yet."""
    folder = run.path("tasks", f"{environment.task_id}/task.toml").parent
    if not (folder / "task.toml").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        draft = folder.with_name(f".{folder.name}")
        shutil.rmtree(draft, ignore_errors=True)
        export_environment(environment, draft).rename(folder)
    return load_task(folder)


def budget_of(values: Mapping[str, Any]) -> Budget:
    return Budget(values["turns"], values["turns"] * values["max_tokens"], values["seconds"], values["command_seconds"])


def agents_of(values: Mapping[str, Any], size: int, skill: float) -> list[Agent]:
    """`size` solvers: the scripted population at this skill, or the model that values["solver"] names, a seed each."""
    make = evaluators(values["solver"], seed=values["seed"], skill=skill, **_model(values))
    return [make(i) for i in range(size)]


def _model(values: Mapping[str, Any]) -> dict[str, Any]:
    if values["solver"] == SCRIPTED:
        return {}
    sampling = Sampling(max_tokens=values["max_tokens"], temperature=values["temperature"])
    capped = {"budget": values["budget"]} if "budget" in values else {}  # of setup.spending_cap
    return {"sampling": sampling, "prompt": values["prompt"], **capped}


def figure_4_group(values: Mapping[str, Any]) -> list[Agent]:
    """Eight rollouts for Fig. 4: the scripted behaviours of that figure, or the model's own."""
    if values["solver"] == SCRIPTED:
        return list(group(FIGURE_4))
    return agents_of(values, len(FIGURE_4), 0.0)


def play(
    run: Run, backend: Backend, tasks: Sequence[Task], agents: Sequence[Agent], values: Mapping[str, Any], label: str
) -> list[Trial]:
    """Every agent at every task, task by task; a trial that the run holds is read back."""
    jobs = [
        Job(
            task,
            agent,
            backend,
            budget_of(values),
            admitted=True,
            seed=i,
            id=f"{label}-{task.name.rsplit('/', 1)[-1]}-{i}",
        )
        for task in tasks
        for i, agent in enumerate(agents)
    ]
    with Progress(label=label, total=len(jobs)) as bar:
        return run_trials(jobs, workers=values["workers"], run=run, on_trial=lambda trial: bar.update(1, trial.agent))


def starve(run: Run, backend: Backend, values: Mapping[str, Any]) -> pd.DataFrame:
    """Groups on several seeds of one generator (Tev appendix B has 12 seeds of the warehouse), for each skill of values["skills"]; a model is
    one population. Columns: population, group, and what a trial's row holds."""
    import pandas as pd

    seeds = range(values["world_seed"], values["world_seed"] + values["groups"])
    tasks = [task_of(run, build(values["generator"], seed, values["tier"])) for seed in seeds]
    skills = values["skills"] if values["solver"] == SCRIPTED else [0.0]
    rows = []
    for skill in skills:
        population = f"skill {skill:g}" if values["solver"] == SCRIPTED else values["solver"]
        agents = agents_of(values, values["group_size"], skill)
        label = f"group-{population.replace(' ', '-').replace(':', '-').replace('/', '-')}"
        for trial in play(run, backend, tasks, agents, values, label):
            rows.append({"population": population, "group": trial.task, **trial.to_row()})
    return pd.DataFrame(rows)


def corpus_of(run: Run, values: Mapping[str, Any]) -> Corpus:
    """The corpus in the run's folder: values["corpus"] names one that is there already, else one is built (and gone on with)."""
    if values["corpus"]:
        return Corpus(values["corpus"])
    tiers: tuple[Tier, ...] = tuple(values["tiers"])
    plan = Plan(values["size"], tiers, tuple(values["generators"]) or None)
    return build_corpus(run.folder / "corpus", plan, values["workers"])


def protocol_of(values: Mapping[str, Any]) -> Protocol:
    return Protocol(values["rollouts"], values["k"], budget_of(values), values["workers"], values["seed"])


def corpus_tasks(corpus: Corpus, names: Sequence[str]) -> list[Path]:
    """The folders of these environments. FileNotFoundError for a corpus without its tasks."""
    folders = [corpus.folder / "tasks" / name for name in names]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise FileNotFoundError(f"{missing[0]}: the corpus was built without its tasks; build it with them")
    return folders


def observed_labels(corpus: Corpus, trials: Sequence[Trial]) -> list[dict[str, tuple[str, ...]]]:
    """The labels of the corpus' environments, with the three axes that rollouts fill for those that had some."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        rows.setdefault(trial.task.rsplit("/", 1)[-1], []).append(trial.to_row())
    return [relabelled(environment["labels"], rows.get(environment["id"], ())) for environment in corpus.environments]


def compare_verifiers(
    run: Run, backend: Backend, tasks: Sequence[Path], values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Known workspaces judged by the sealed verifier and by the one written in its place, for each public-view task.

    Workspaces: the reference's output and its meaning-preserving rewrites, which are right; stale outputs of the hidden suite and outputs after
    each earlier stage, which are wrong; values["workspaces"] of each kind, 0 for all."""
    rows = []
    for task in map(load_task, tasks):
        environment = _environment_of(task)
        sealed = task_of(run, environment)
        agents = _known(environment, values["workspaces"] or None)
        judged = [
            play(run, backend, [one], agents, values, label) for one, label in ((sealed, "sealed"), (task, "written"))
        ]
        for kind in ("right", "stale", "unfinished"):
            chosen = [[t for t in trials if t.agent.startswith(kind)] for trials in judged]
            rows.append({"task": environment.task_id, "workspaces": kind, **agreement(*chosen)})
    return rows


def _environment_of(task: Task) -> Environment:
    """The environment that [metadata.workbench.world] names."""
    world = task.config["metadata"]["workbench"]["world"]
    kinds = None if world.get("kinds") is None else tuple(world["kinds"])
    return build(world["generator"], world["seed"], world["tier"], kinds)


def _known(environment: Environment, most: int | None) -> list[Agent]:
    hidden = get(environment.spec.name).hidden
    right = {"reference": environment.output, **hidden.rewrites(environment.output)}
    stale = hidden.stale(environment.world, environment.defects)
    earlier = {f"after {stage}": tree for stage, tree in environment.reference[:-1] if tree != environment.output}
    kinds = {"right": right, "stale": stale, "unfinished": earlier}
    return [
        GivenOutputs(f"{kind}: {name}", tree)
        for kind, found in kinds.items()
        for name, tree in list(found.items())[:most]
    ]
