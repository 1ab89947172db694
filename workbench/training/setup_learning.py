"""From a notebook's parameters and a profile's values to a flywheel with learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.admission.calibration import Calibration
from workbench.proposer import Proposer, get_proposer
from workbench.runs.folder import Run, write_json
from workbench.sandboxes import get_backend
from workbench.tasks import Task
from workbench.training.arms import get_arm
from workbench.training.collect import CollectSettings, Executor, Threads
from workbench.training.evaluate import tasks_of
from workbench.training.evaluate_tasks import held_out_tasks
from workbench.training.learning import FRACTION, Learning, LearningSettings
from workbench.training.learning_pool import drawn_pool, given_pool
from workbench.training.learning_roles import Roles
from workbench.training.policy import Policy, library_of, open_policy
from workbench.training.pool import PoolEntry
from workbench.training.settings import settings_from
from workbench.training.setup import spending_cap
from workbench.trials import Trial


def make_learning(
    run: Run,
    values: Mapping[str, Any],
    *,
    policy: Policy | None = None,
    executor: Callable[[Roles], Executor] | None = None,
) -> Learning:
    """All parts, opened. values: a profile's section with the notebook's own parameters laid over it.

    policy: instead of the one that values["policy"] names. executor: makes the one
    that plays attempts; None: threads here, or the Ray cluster that values["ray"] names."""
    from workbench.training.trainer import Learner

    if values["cap"] < values["groups"]:
        raise ValueError(f"cap={values['cap']} is below groups={values['groups']}: a step could never be filled")
    arm = get_arm(values["arm"])
    policy = policy or open_policy(values["policy"], values)
    tokens = values["groups"] * values["group"] * values["turns"] * values["max_tokens"]
    chosen = {"denominator": tokens, **{k: v for k, v in values.items() if v not in (None, "")}}
    learner = Learner(policy.network, settings_from({**chosen, "temperature": policy.sampling.temperature}))
    external = open_external(run, values) if arm.external else None
    roles = Roles(
        policy, get_backend(values["backend"]), run.folder / "tasks", _calibration(values), run.id, values["seed"], values["repeats"],
        Path(values["held_out"]) if values.get("held_out") else None, external, keep_episodes=hasattr(external, "refresh"),
        progress=values["progress"] or values["reward"] not in (FRACTION, "terminal"), keep_trace=lambda trial: keep_trace(run, trial),
    )  # fmt: skip
    return Learning(
        run, policy, learner, roles, arm, _settings(values), _collecting(values), lambda: _pool(run, values),
        held_out=_held_out(run, values), executor=executor(roles) if executor else _executor(roles, values),
    )  # fmt: skip


def open_external(run: Run, values: Mapping[str, Any]) -> Proposer:
    """The fixed proposer that values["external"] names. A harness composes from the run's own worlds, never from held-out ones; a
    hosted model carries the cap values["usd"]."""
    spec = values["external"]
    options = {"worlds": library_of(values)} if spec.startswith("harness:") else {}
    return get_proposer(spec, **options, **(spending_cap(run, values) if "litellm:" in spec else {}))


def _executor(roles: Roles, values: Mapping[str, Any]) -> Executor:
    if values.get("ray"):
        from workbench.training.collect_ray import RayExecutor

        return RayExecutor(roles, values["ray"], backend=values["backend"], workers=values["workers"])
    return Threads(roles.play, values["workers"])


def keep_trace(run: Run, trial: Trial) -> None:
    """A rollout's turns to `traces/<its id>.json`, where the viewers look for them."""
    episodes = [episode.to_json() for episode in trial.episodes]
    write_json(run.path("traces", f"{trial.id}.json"), {**trial.to_row(), "episodes": episodes, "steps": trial.steps})


def _calibration(values: Mapping[str, Any]) -> Calibration:
    """The gate's; Roles puts the policy in as the solver. No diagnostic rollout: revisions are off."""
    return Calibration(
        _no_agent, rollouts=values["calibration_rollouts"], more=values["calibration_more"], workers=min(values["workers"], values["calibration_rollouts"]),
        diagnose=False,
    )  # fmt: skip


def _no_agent(number: int) -> Any:
    raise RuntimeError("calibration needs the policy of the attempt")


def _settings(values: Mapping[str, Any]) -> LearningSettings:
    names = LearningSettings.__dataclass_fields__.keys() & values.keys()
    return LearningSettings(**{name: values[name] for name in names})


def _collecting(values: Mapping[str, Any]) -> CollectSettings:
    names = CollectSettings.__dataclass_fields__.keys() & values.keys()
    return CollectSettings(**{name: values[name] for name in names})


def _pool(run: Run, values: Mapping[str, Any]) -> list[PoolEntry]:
    """The tasks of the folder `parents` when it is given, else worlds drawn from the library."""
    if values.get("parents"):
        return given_pool(values["parents"], run.id)
    return drawn_pool(run.folder / "tasks", library_of(values), values["pool"], run.id, values["seed"])


def _held_out(run: Run, values: Mapping[str, Any]) -> dict[str, Sequence[Task]]:
    if values.get("evaluate_on"):
        return {Path(values["evaluate_on"]).name: tasks_of(values["evaluate_on"])}
    if not values["evaluation_tasks"]:
        return {}
    return held_out_tasks(
        run.folder / "held-out", values["generators"], tuple(values["tiers"]), values["evaluation_tasks"],
        held_out=values["held_out_generators"],
    )  # fmt: skip
