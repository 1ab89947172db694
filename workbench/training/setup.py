"""From a notebook's parameters and a profile's values to the parts of a flywheel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.admission.calibration import Calibration
from workbench.agents import Agent, Budget
from workbench.models import Model, Sampling, get_model
from workbench.proposer import get_proposer
from workbench.proposer.program import seed_tasks
from workbench.runs.folder import Run
from workbench.runs.progress import progress
from workbench.sandboxes import get_backend
from workbench.tasks import Task, load_task
from workbench.training.flywheel import Flywheel, Settings, play_round

ROUND = "round_"  # values so named are of a round without learning


@dataclass(frozen=True)
class Solver:
    """One model as the solver of an attempt's number: the same number draws with the same seed, whatever came before it."""

    model: Model
    sampling: Sampling
    prompt: str
    seed: int

    def __call__(self, i: int) -> Agent:
        from workbench.agents.terminal import TerminalAgent

        sampling = Sampling(**{**self.sampling.__dict__, "seed": (self.seed * 1_000_003 + i) % 2**31})
        return TerminalAgent(self.model, sampling=sampling, prompt=self.prompt)


def play(run: Run, values: Mapping[str, Any]) -> None:
    """The whole flywheel of a notebook: with learning when values["learn"], else one round of a solver that stays as it is."""
    if str(values["learn"]).lower() != "true":
        if values.get("ray"):
            raise ValueError(
                "ray: a round without learning runs on this machine only; leave ray empty, or set learn to true"
            )
        values = {**values, **{k.removeprefix(ROUND): v for k, v in values.items() if k.startswith(ROUND)}}
        play_round(make_flywheel(run, values), parents(run, values))
        return
    from workbench.training.setup_learning import make_learning

    learning = make_learning(run, values)
    try:
        with progress(label=f"flywheel: {values['arm']}", total=values["steps"]) as done:
            learning.learn(done)
    finally:
        learning.policy.close()


def make_flywheel(run: Run, values: Mapping[str, Any]) -> Flywheel:
    """All parts, opened. values: a profile's section, with the notebook's own parameters laid over it.

    solver: a model (workbench.models.get_model). proposer: "program", or a model. One spending cap (usd) is for both."""
    capped = spending_cap(run, values)
    solver = make_solver(values, **capped)
    calibration = Calibration(
        solver, rollouts=values["calibration_rollouts"], more=values["calibration_more"], budget=solver_budget(values),
        workers=values["workers"],
    )  # fmt: skip
    settings = Settings(
        assignments=values["assignments"], rollouts=values["rollouts"], revisions=values["revisions"], workers=values["workers"],
        seed=values["seed"], budget=solver_budget(values), calibration=calibration,
        held_out=Path(values["held_out"]) if values.get("held_out") else None,
    )  # fmt: skip
    asked = {} if values["proposer"] in ("program", "world") else capped  # who asks no model spends nothing
    proposer = get_proposer(values["proposer"], **asked, **_worlds(values))
    return Flywheel(run, get_backend(values["backend"]), solver, proposer, settings)


def spending_cap(run: Run, values: Mapping[str, Any]) -> dict[str, Any]:
    """The option `budget` for every hosted model of the run; {} without a cap. What the run has spent before it was resumed counts."""
    from workbench.models.budget import Budget

    if not values.get("usd"):
        return {}
    budget = Budget(usd=values["usd"])
    prices = [row.get("usd") for kind in ("trial", "diagnostic", "proposal") for row in run.rows(kind)]
    budget.spent = math.fsum(p for p in prices if p is not None and math.isfinite(p))
    return {"budget": budget}


def _worlds(values: Mapping[str, Any]) -> dict[str, Any]:
    """For a harness: the latent worlds that its tool `worlds` composes from, without held-out generators."""
    if not str(values["proposer"]).startswith("harness:"):
        return {}
    from workbench.proposer.latent import LatentWorlds

    return {"worlds": LatentWorlds(held_out=values.get("held_out_generators") or (), seed=values["seed"])}


def make_solver(values: Mapping[str, Any], **options: Any) -> Solver:
    sampling = Sampling(max_tokens=values["max_tokens"], temperature=values["temperature"])
    return Solver(get_model(values["solver"], **options), sampling, values["prompt"], values["seed"])


def solver_budget(values: Mapping[str, Any]) -> Budget:
    return Budget(values["turns"], values["turns"] * values["max_tokens"], values["seconds"], values["command_seconds"])


def parents(run: Run, values: Mapping[str, Any]) -> list[Task]:
    """The first round's parents: the tasks of the folder `parents` when it is given, else program tasks of the rungs."""
    if values.get("parents"):
        found = [load_task(p.parent) for p in sorted(Path(values["parents"]).glob("*/task.toml"))]
        if not found:
            raise ValueError(f"parents: {values['parents']} holds no task (a folder of folders, each with a task.toml)")
        return found
    return [load_task(p) for p in seed_tasks(run.folder / "tasks", tuple(values["rungs"]), values["seed"])]
