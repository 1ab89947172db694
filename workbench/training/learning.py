"""The flywheel with learning: collect, propose, update, review, evaluate, step after step (AutoEnvScaling Fig. 2, §3.3, G.1).

One step:
1. the engine takes the learner's weights and forgets every cache of the old ones;
2. every k-th step the proposer answers assignments made from the latest rollouts, in groups on one assignment each; what the gate
   admits, with the current solver, joins the pool; before that the pool is reviewed when its turn has come;
3. solver groups are collected until enough of them vary (workbench.training.collect);
4. one update on both roles' groups;
5. evaluation every n steps; a checkpoint with pool, curriculum, queued groups and the plans of unfinished ones; journal rows.

A run that was killed goes on from its newest checkpoint. What was finished after it is played again from the same seeds: with serial
collection the next step is the same bit for bit. Restarted groups are counted in a `resume` row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.proposer.assignments import make_assignments
from workbench.proposer.workspace import Past
from workbench.runs.folder import Run
from workbench.runs.progress import say
from workbench.tasks import Task
from workbench.training.advantages import plain_return
from workbench.training.arms import Arm
from workbench.training.collect import Collected, Collector, CollectSettings, Executor, NothingToLearn
from workbench.training.evaluate import difference, evaluate, scores_of
from workbench.training.groups import Attempt, Group, Plan, Played, number_of
from workbench.training.learning_pool import admit_entries, review_pool
from workbench.training.learning_roles import Roles, without_feedback
from workbench.training.learning_rows import score_line, summary_line, update_row
from workbench.training.learning_state import State, state_from
from workbench.training.policy import Policy
from workbench.training.pprs import VARIANTS, credit, group_value
from workbench.training.trainer import PLAIN, Learner

FRACTION = "fraction"


@dataclass(frozen=True)
class LearningSettings:
    """steps: solver updates. group: solver rollouts on one environment. proposer_every, proposer_group, assignments: every how many
    steps, trajectories on one assignment, assignments a time. review_every, evaluate_every: in steps, 0 for never (evaluation
    then only before and after). reward: of the solver: "fraction" (r_S, AutoEnvScaling Eq. 1), "pprs" (Tev Eq. 4), or of Tev's Table 5 "terminal",
    "pooled" or "direct". attempts: k of an
    evaluation. workers: attempts side by side. checkpoint_every: steps."""

    steps: int = 30
    group: int = 16
    proposer_every: int = 16
    proposer_group: int = 128
    assignments: int = 1
    review_every: int = 16
    evaluate_every: int = 0
    attempts: int = 1
    reward: str = "fraction"
    workers: int = 16
    checkpoint_every: int = 1
    too_near: float = 0.98
    low: float = 0.25
    high: float = 0.75
    min_std: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.reward not in (FRACTION, *VARIANTS):
            raise ValueError(
                f"reward {self.reward!r}: fraction (Eq. 1), or by progress {', '.join(VARIANTS)} (Tev Eq. 4 and Table 5)"
            )
        if min(self.steps, self.group - 1, self.proposer_every, self.proposer_group - 1, self.checkpoint_every) < 1:
            raise ValueError("steps, proposer_every and checkpoint_every are at least 1, groups at least 2 rollouts")


@dataclass
class Learning:
    """The loop. held_out: set name → tasks that are only ever evaluated on. executor: who plays attempts."""

    run: Run
    policy: Policy
    learner: Learner
    roles: Roles
    arm: Arm
    settings: LearningSettings
    collecting: CollectSettings
    initial: Callable[[], Sequence[Any]]
    executor: Executor
    held_out: Mapping[str, Sequence[Task]] = field(default_factory=dict)
    say: Callable[[str], None] = say
    state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        reward = self.settings.reward
        self.value = {"solver": plain_return if reward == FRACTION else group_value(reward), "proposer": plain_return}
        self.credit = PLAIN if reward == FRACTION else {**PLAIN, "solver": credit(reward)}
        self.collector = Collector(self.executor, self._next_plan, self.collecting, self.settings.seed, self.value["solver"], self._played)  # fmt: skip
        self.proposals = Collector(
            self.executor, lambda: None, self.collecting, self.settings.seed, on_played=self._played
        )
        self.checkpoints = self.run.folder / "checkpoints"

    # -- the whole run ------------------------------------------------------------------------------------------------

    def learn(self, done: Callable[[], None] = lambda: None) -> State:
        """All steps that are left, with an evaluation before the first and after the last; returns the final state. done: called after each step."""
        self.open()
        try:
            if self.state.step == 0:  # a run that goes on has its evaluation of the beginning
                self.evaluate()
            self._steps(done)
            self.close()  # what is still in flight trains no more, and would only slow the evaluation down
            self.policy.sync(self.learner, self.checkpoints / "served")
            self.evaluate()
            return self.state
        finally:
            self.close()

    def _steps(self, done: Callable[[], None]) -> None:
        while self.state.step < self.settings.steps:
            try:
                self.step()
            except NothingToLearn as error:  # the end of this run, not a failure of it: what was learned is evaluated
                row = {"step": self.state.step, "version": self.learner.version, "reason": str(error)}
                self.run.record("stop", {**row, "accepted": error.accepted, "dropped": error.dropped})
                self.say(f"stopped after step {self.state.step}: {error}")
                return
            done()

    def open(self) -> None:
        """Go on from the newest checkpoint of this run, or begin with the initial pool."""
        blobs = self.learner.load(self.checkpoints)
        if blobs is None:
            for entry in self.initial():
                self._enter(entry)
            if self.run.kinds().get("group"):  # killed before its first checkpoint
                self._restart([], [])
        else:
            self.state, queue, unfinished = state_from(blobs)
            self.roles.places = {e.id: e.path for e in self.state.pool.values()}
            self.run.once(
                "update", str(self.state.last["step"]), lambda: self.state.last
            )  # killed before it was written
            self._restart(queue, unfinished)
        if not self.state.active:
            raise RuntimeError(
                "the pool has no active environment to begin with: give parents, or generators to draw from"
            )
        self.policy.sync(self.learner, self.checkpoints / "served")

    def _restart(self, queue: Sequence[Group], unfinished: Sequence[Plan]) -> None:
        self.collector.queue.extend(queue)
        rows = {r["id"] for r in self.run.rows("group") if r["step"] > self.state.step} | {p.name for p in unfinished}
        ended = sum(r["group"] in rows for r in self.run.rows("rollout"))
        sizes = sum(r["size"] for r in {g["id"]: g for g in self.run.rows("group")}.values() if r["id"] in rows)
        row = {"step": self.state.step, "version": self.learner.version, "groups": len(rows), "restarted": sizes - ended, "replayed": ended}  # fmt: skip
        self.run.record("resume", row)
        self.say(f"resumed after step {self.state.step}: {len(rows)} groups restart ({sizes - ended} unfinished trajectories, {ended} finished ones)")  # fmt: skip
        for plan in unfinished:
            self.collector.begin(plan, self.learner.version)

    def close(self) -> None:
        """End what is in flight; its sandboxes are gone afterwards."""
        self.roles.cancel.set()
        self.executor.close()

    # -- one step -----------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """One solver update; returns its `update` row."""
        began, number = time.perf_counter(), self.state.step + 1
        self.policy.sync(self.learner, self.checkpoints / "served")
        if self.arm.reviews and self.settings.review_every and self._due(number, self.settings.review_every):
            review_pool(self)
        proposed = (
            self._propose(number) if self.arm.proposes and self._due(number, self.settings.proposer_every) else []
        )
        proposing = time.perf_counter() - began
        collected = self.collector.collect(self.learner.version)
        self._remember(collected)
        trained = [r for g in proposed for r in g.rollouts] if self.arm.trains_proposer else []
        update, chosen = self.learner.update([*collected.rollouts, *trained], self.credit, self.value)
        self.state.step = number
        row = update_row(collected, proposed, update.to_row(), chosen.dropped)
        row |= {"id": str(number), "step": number, "arm": self.arm.name, "time": time.time(), "pool": len(self.state.active),
                "proposing_seconds": proposing, "step_seconds": time.perf_counter() - began}  # fmt: skip
        self.state.last = row
        if number % self.settings.checkpoint_every == 0 or number == self.settings.steps:
            self.save()
        self.run.record("update", row, id=str(number))
        self.say(f"step {number}: {summary_line(row)}")
        if self.settings.evaluate_every and number % self.settings.evaluate_every == 0 and number < self.settings.steps:
            self.policy.sync(self.learner, self.checkpoints / "served")
            self.evaluate()
        return row

    def save(self) -> None:
        blobs = self.state.to_blobs(list(self.collector.queue), list(self.collector._open.values()))
        self.learner.save(self.checkpoints, blobs, keep=1)

    def _due(self, number: int, every: int) -> bool:
        """At the steps every+1, 2·every+1, …: after `every` solver updates, before the next one."""
        return number > 1 and (number - 1) % every == 0

    # -- solver groups ------------------------------------------------------------------------------------------------

    def _next_plan(self) -> Plan | None:
        """The environment that was tried least often; ties by a number drawn from the seed."""
        active = self.state.active
        if not active:
            return None
        state, seed = self.state, self.settings.seed
        chosen = min(active, key=lambda e: (state.visits[e.id], number_of(seed, "order", state.visits[e.id], e.id)))
        state.visits[chosen.id] += 1
        state.begun += 1
        plan = Plan(f"s{state.begun:06d}-{chosen.id}", "solver", chosen.id, self.settings.group)
        self.run.record(
            "group", {"step": state.step + 1, "role": "solver", "what": chosen.id, "size": plan.size}, id=plan.name
        )
        return plan

    def _played(self, attempt: Attempt, played: Played) -> None:
        row = {**played.rollout.to_row(), "group": attempt.plan.name, "what": attempt.plan.what, "step": self.state.step + 1, "retry": attempt.retry}  # fmt: skip
        row |= {k: v for k, v in played.extra.items() if k in ("why", "overhead", "breaks", "node")}
        self.run.record("rollout", row, id=attempt.id)

    def _remember(self, collected: Collected) -> None:
        """The latest trials of each environment: what reviews and assignments are made from."""
        for group in collected.seen:
            trials = [p.trial for p in group.results if p.trial is not None]
            if trials and any(t.counts for t in trials):
                self.state.latest[group.plan.what] = (self.state.step + 1, trials)

    # -- the proposer -------------------------------------------------------------------------------------------------

    def _propose(self, step: int) -> list[Group]:
        """One proposer phase: assignments, groups of answers, verdicts, what joins the pool."""
        state, s = self.state, self.settings
        seen = [(e, state.latest[e.id][1]) for e in state.pool.values() if e.id in state.latest]
        if not seen:
            return []
        state.proposals += 1
        pairs = [(self.roles.task(e.id), trials) for e, trials in seen]
        self._refresh(seen)
        state.latest = {
            i: kept for i, kept in state.latest.items() if state.pool[i].status == "active"
        }  # told once more, then forgotten
        made = make_assignments(pairs, s.assignments, run_id=self.run.id, round=state.proposals)
        if not self.arm.feedback:
            made = [without_feedback(a, ("simpler", "harder")[number_of(s.seed, a.id) % 2]) for a in made]
        for assignment in made:
            self.roles.assignments[assignment.id] = assignment
            self.run.record("assignment", assignment.to_row(), id=assignment.id)
            plan = Plan(f"p{state.proposals:04d}-{assignment.id}", "proposer", assignment.id, s.proposer_group)
            self.run.record(
                "group", {"step": step, "role": "proposer", "what": assignment.id, "size": plan.size}, id=plan.name
            )
            self.proposals.begin(plan, self.learner.version)
        groups: list[Group] = []
        while len(groups) < len(made):
            groups += self.proposals.harvest()
        groups.sort(key=lambda g: g.plan.name)
        admit_entries(self, groups, step)
        return groups

    def _refresh(self, seen: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        """Harness optimization: an external proposer reads the rollouts before it answers (AutoEnvScaling §3.3)."""
        refresh = getattr(self.roles.external, "refresh", None)
        if refresh is not None:
            trials = {e.id: t if self.arm.feedback else [] for e, t in seen}
            refresh([Past(e.id, self.roles.task(e.id), trials[e.id], self.state.proposals) for e, _ in seen])

    def _enter(self, entry: Any) -> None:
        self.roles.places[entry.id] = entry.path
        self.state.add(entry)
        self.run.record("standing", entry.to_row())

    # -- rows ---------------------------------------------------------------------------------------------------------

    def evaluate(self) -> None:
        """Every held-out set once, unless the journal has it for this version."""
        for name, tasks in self.held_out.items():
            key = f"{name}-{self.learner.version}"
            if self.run.done("evaluation", key):
                continue
            found = evaluate(
                tasks, self.policy.untracked_solver, self.roles.backend, k=self.settings.attempts, name=name,
                version=self.learner.version, seed=self.settings.seed, budget=self.policy.budget, workers=self.settings.workers,
            )  # fmt: skip
            row = self.run.record(
                "evaluation", {**found.to_row(), "step": self.state.step, "arm": self.arm.name}, id=key
            )
            self.say(f"  {name}: {score_line(row)}")

    def outcome(self) -> dict[str, dict[str, Any]]:
        """Set → the paired difference between its first and last evaluation."""
        out = {}
        for name in self.held_out:
            rows = [r for r in self.run.rows("evaluation") if r["set"] == name]
            out[name] = difference(scores_of(rows[0]), scores_of(rows[-1])) | {
                "from": rows[0]["version"],
                "to": rows[-1]["version"],
            }
        return out
