"""Does a task work? Files, build, reference solution, empty solution, both again (AutoEnvScaling §3.2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.admission import Reason, Stage
from workbench.admission.leaks import Leaks, LookingOracle, look_alone
from workbench.admission.reasons import (
    file_reasons,
    flaky_reason,
    flaky_tests,
    noop_reason,
    oracle_reason,
    passed_tests,
)
from workbench.agents import Agent, Budget
from workbench.sandboxes import Backend, SandboxError
from workbench.tasks import Task, TaskError, load_task
from workbench.trials import Trial
from workbench.trials.batch import NOT_RETRIED, RETRIES
from workbench.trials.outcomes import judge_error
from workbench.trials.run import Recorder, run_trial
from workbench.trials.setting import prepare

# A reference solution runs as one command: it has as long as the task gives an agent, at most an hour.
VALIDATION_BUDGET = Budget(turns=1, seconds=3600.0, command_seconds=3600.0)


class Stopped(Exception):
    """The gate closed: a stage found reasons, or infrastructure failed (`infra`)."""

    def __init__(self, *, infra: str = ""):
        super().__init__(infra)
        self.infra = infra


@dataclass
class Desk:
    """Where the papers of one task lie while it goes through the gate."""

    path: Path
    backend: Backend
    run: Recorder | None = None
    cancel: threading.Event | None = None
    key: str | None = None  # of this admission: its trials are found again by it when a killed run goes on
    task: Task | None = None
    stage: Stage = "files"
    reasons: list[Reason] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    rewards: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    valid_paper: bool = False

    @contextmanager
    def at(self, stage: Stage) -> Iterator[None]:
        """One stage: its seconds are written down, and reasons found in it close the gate."""
        self.stage = stage
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = round(time.monotonic() - began, 4)
        if self.reasons:
            raise Stopped

    def refuse(self, reason: Reason | None) -> None:
        if reason is not None:
            self.reasons.append(reason)

    def note(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.reward is not None:
            self.rewards.setdefault(trial.agent, []).append(trial.reward)

    def attempt(self, agent: Agent) -> Trial:
        """One trial that infrastructure let come to its end; every attempt is kept. Stopped(infra) after the last."""
        assert self.task is not None
        number = sum(t.agent == agent.name and t.outcome != "infra" for t in self.trials)
        id = f"{self.key}-{agent.name.replace(':', '-')}-{number}" if self.key else None
        for attempt in range(RETRIES + 1):
            trial = run_trial(
                self.task, agent, self.backend, budget=VALIDATION_BUDGET, run=self.run, cancel=self.cancel, id=id
            )
            self.note(trial)
            if trial.outcome != "infra":
                return trial
            if trial.reason in NOT_RETRIED or attempt == RETRIES:
                break
        raise Stopped(infra=f"{trial.agent}: {trial.reason}: {trial.message}")


def validate(desk: Desk, *, repeats: int, partials: Sequence[Path] = ()) -> None:
    """Stages files … repeat. Raises Stopped at the first stage with reasons."""
    from workbench.agents.noop import NoOp

    with desk.at("files"):
        try:
            desk.task = load_task(desk.path)
        except TaskError as error:
            desk.reasons += file_reasons(error.faults)
    assert desk.task is not None
    with desk.at("build"):
        _build(desk)
    with desk.at("oracle"):
        oracle = LookingOracle()
        oracles = [desk.attempt(oracle)]
        desk.refuse(oracle_reason(oracles[0]))
    with desk.at("noop"):
        noops = [desk.attempt(NoOp())]
        desk.refuse(noop_reason(noops[0]))
        desk.valid_paper = not desk.reasons
        desk.report["pass_untouched"] = passed_tests(noops[0])
        _leaks(desk, oracle.leaks or _look(desk))
    if repeats > 1:
        with desk.at("repeat"):
            _repeat(desk, oracles, noops, repeats)
    desk.report |= _strength(desk, partials)


def _build(desk: Desk) -> None:
    assert desk.task is not None
    try:
        setting = prepare(desk.task, desk.backend)
    except Exception as error:  # what the failure means is decided in one place
        judged = judge_error(error)
        if judged.outcome != "task":
            raise Stopped(infra=f"build: {judged.reason}: {judged.message}") from error
        desk.refuse(Reason(judged.reason, judged.message, "build"))
    else:
        desk.report["stands_for"] = dict(setting.agent.stands_for)


def _look(desk: Desk) -> Leaks:
    assert desk.task is not None
    try:
        return look_alone(desk.task, desk.backend, prepare(desk.task, desk.backend).agent)
    except SandboxError as error:
        raise Stopped(infra=f"the search for leaks: {error}") from error


def _leaks(desk: Desk, leaks: Leaks) -> None:
    desk.report["solution_in_image"] = {**leaks.solution, **leaks.lines}
    desk.report["tests_in_image"] = dict(leaks.tests)
    if not leaks.looked:
        desk.report["image_not_searched"] = "the search for the solution's text in the sandbox did not end"
    for kind, found in (("solution-in-image", leaks.solution), ("tests-in-image", leaks.tests)):
        if found:
            where = ", ".join(f"{path} repeats {name}" for path, name in list(found.items())[:5])
            text = f"the agent can read what it must not see: {where}. Take it out of environment/ and the Dockerfile"
            desk.refuse(Reason(kind, text, "noop"))


def _repeat(desk: Desk, oracles: list[Trial], noops: list[Trial], repeats: int) -> None:
    from workbench.agents.noop import NoOp
    from workbench.agents.oracle import Oracle

    for _ in range(repeats - 1):
        oracles.append(desk.attempt(Oracle()))
        noops.append(desk.attempt(NoOp()))
    desk.refuse(flaky_reason("oracle", oracles))
    desk.refuse(flaky_reason("no-op", noops))
    desk.report["flaky_tests"] = sorted({*flaky_tests(oracles), *flaky_tests(noops)})


def _strength(desk: Desk, partials: Sequence[Path]) -> Mapping[str, Any]:
    """What partial and wrong solutions earn: the caller's scripts, and `solution/partial/*.sh` of the task's own; and,
    as [declared, earned], where that is not what [metadata.workbench.partials] says."""
    assert desk.task is not None
    from workbench.agents.script import ScriptedAgent

    own = sorted((desk.task.path / "solution" / "partial").glob("*.sh"))
    scripts = [path for path in [*own, *partials] if path.is_file() and not path.is_symlink()]
    earned = {path.stem: desk.attempt(ScriptedAgent.from_file(path)).reward for path in scripts}
    declared = ((desk.task.config.get("metadata") or {}).get("workbench") or {}).get("partials") or {}
    off = {name: [want, earned[name]] for name, want in declared.items() if name in earned and earned[name] != want}
    found: dict[str, Any] = {"partials": earned} if earned else {}
    return {**found, "partials_off": off} if off else found
