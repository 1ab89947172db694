"""One attempt of the policy in each role: a live sandbox, real tokens, a grade; what comes out trains.

Solver: a trial of an environment of the pool, reward r_S (Eq. 1: the fraction that its verifier gives). Proposer: an answer to an
assignment, taken through the whole gate with the current solver, reward r_P (Eq. 2).
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.admission import Admission, no_files
from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.models import ModelError
from workbench.models.segments import Segment
from workbench.proposer import Assignment, Proposal, Proposer
from workbench.sandboxes import Backend
from workbench.tasks import Task, TaskError, load_task
from workbench.training.groups import Attempt, Played, number_of
from workbench.training.policy import Policy
from workbench.training.records import Rollout
from workbench.trials import Trial
from workbench.trials.run import run_trial


@dataclass
class Roles:
    """Plays attempts on any thread. places: environment id → its folder. assignments: id → assignment. folder: where proposals are
    written. calibration: how the gate calibrates; its solver is the policy. external: a proposer with fixed weights, which plays
    in the policy's place and leaves no tokens. progress: grade Phi after each turn of a solver. keep_trace: called with the first trial of
    each group. cancel: set it, and every trial ends soon, as infrastructure's doing."""

    policy: Policy
    backend: Backend
    folder: Path
    calibration: Calibration
    run_id: str = ""
    seed: int = 0
    repeats: int = 2
    held_out: Path | None = None
    external: Proposer | None = None
    keep_episodes: bool = False
    progress: bool = True
    keep_trace: Callable[[Trial], None] | None = None
    places: dict[str, str] = field(default_factory=dict)
    assignments: dict[str, Assignment] = field(default_factory=dict)
    cancel: threading.Event = field(default_factory=threading.Event)
    _tasks: dict[str, Task] = field(default_factory=dict)

    def play(self, attempt: Attempt) -> Played:
        """Never raises for what the policy did; what is left is infrastructure's."""
        return self.solve(attempt) if attempt.plan.role == "solver" else self.propose(attempt)

    def task(self, environment: str) -> Task:
        if environment not in self._tasks:
            self._tasks[environment] = load_task(self.places[environment])
        return self._tasks[environment]

    def forget(self, environment: str) -> None:
        self._tasks.pop(environment, None)

    # -- the solver -------------------------------------------------------------------------------------------------

    def solve(self, attempt: Attempt) -> Played:
        key = f"{attempt.id}/{attempt.retry}"
        try:
            agent = self.policy.solver(key, attempt.seed)
            trial = run_trial(self.task(attempt.plan.what), agent, self.backend, budget=self.policy.budget, admitted=True,
                              seed=attempt.seed, cancel=self.cancel, id=attempt.id, progress=self.progress)  # fmt: skip
            return self.solved(attempt, key, trial)
        finally:
            self.policy.model.forget(key)

    def solved(self, attempt: Attempt, key: str, trial: Trial) -> Played:
        """A solver's trial, with what its conversation sampled."""
        segments = self._sampled(key) if trial.counts else ()
        trial = replace(trial, run_id=self.run_id)
        rollout = Rollout(
            attempt.id, attempt.plan.name, "solver", segments, math.nan if trial.reward is None else trial.reward,
            passed=bool(trial.passed), submitted=self._submitted(trial), progress=trial.progress, outcome=trial.outcome,
            seconds=trial.seconds, run_id=self.run_id, time=trial.time, task=trial.digest,
        )  # fmt: skip
        if self.keep_trace is not None and attempt.number == 0:  # of each group one, so that people can look
            self.keep_trace(trial)
        extra = {"overhead": trial.overhead_seconds + trial.verifier_seconds, "breaks": len(segments) - 1}
        return Played(rollout, trial if self.keep_episodes else replace(trial, episodes=()), extra)

    def _submitted(self, trial: Trial) -> bool:
        return trial.submitted or (self.policy.auto_submit and trial.ended_by == "turns")

    def _sampled(self, key: str) -> tuple[Segment, ...]:
        return tuple(self.policy.model.segments(key))

    # -- the proposer -----------------------------------------------------------------------------------------------

    def propose(self, attempt: Attempt) -> Played:
        began, key = time.time(), f"{attempt.id}/{attempt.retry}"
        assignment = self.assignments[attempt.plan.what]
        target = self.folder / attempt.id
        shutil.rmtree(target, ignore_errors=True)  # of an attempt that was killed
        try:
            proposal = self._answer(assignment, target, key, attempt.seed)
            admission = self._verdict(assignment, proposal, target, attempt)
            segments = () if self.external else self._sampled(key)
        except ModelError as error:
            rollout = Rollout(attempt.id, attempt.plan.name, "proposer", (), math.nan, outcome="infra", time=began)
            return Played(rollout, extra={"why": f"{type(error).__name__}: {error}"})
        finally:
            self.policy.model.forget(key)
        rollout = Rollout(
            attempt.id, attempt.plan.name, "proposer", segments, math.nan if admission.infra else float(admission.reward or 0.0),
            passed=bool(admission.admitted), submitted=proposal.path is not None, outcome="infra" if admission.infra else "graded",
            seconds=time.time() - began, run_id=self.run_id, time=began, task=admission.digest,
        )  # fmt: skip
        why = "; ".join(f"{r.kind}: {r.message[:300]}" for r in admission.reasons)
        row = {**admission.to_row(), "time": time.time(), "run_id": self.run_id, "malformed": proposal.path is None}
        return Played(rollout, extra={"why": why, "admission": row, "path": str(target), "proposal": proposal.to_row()})

    def _answer(self, assignment: Assignment, target: Path, key: str, seed: int) -> Proposal:
        drawn = replace(assignment, run_id=f"seed {self.seed}")  # so that two runs of one seed draw the same worlds
        if self.external is not None:
            return self.external.propose(drawn, target, seed=seed)
        model = self.policy.model.conversation(key)
        sampling = replace(self.policy.sampling, seed=0)  # a proposer adds the episode's seed
        return self.policy.propose_with(model, sampling).propose(drawn, target, seed=seed)

    def _verdict(self, assignment: Assignment, proposal: Proposal, target: Path, attempt: Attempt) -> Admission:
        if proposal.path is None:
            return no_files(attempt.id, self.run_id, proposal.message)
        calibration = replace(
            self.calibration,
            agent_factory=self.policy.untracked_solver,
            number=lambda i: number_of(attempt.seed, "calibration", i),
            budget=self.policy.budget,
        )
        return admit(target, self.backend, calibrate=calibration, held_out=self.held_out, repeats=self.repeats, id=attempt.id,
                     cancel=self.cancel)  # fmt: skip


def without_feedback(assignment: Assignment, direction: str) -> Assignment:
    """An assignment that says nothing of the solver (the no-feedback arm): the parent alone, and a direction drawn without looking."""
    return replace(assignment, direction=direction, pass_rate=0.5, failure="not shown", failures={}, evidence=())  # type: ignore[arg-type]


def loadable(path: str | Path) -> Task | None:
    try:
        return load_task(path)
    except TaskError:
        return None
