"""One round of the data flywheel (AutoEnvScaling Fig. 2, §3): rollouts → assignments → proposals → admission → pool → rollouts.

Every finished piece of work is one record of the run's journal, keyed by what it is, so a killed round goes on where it
stopped. Where we deviate: the solver's weights do not change yet (training joins as an update between two rounds), and a
revision loop is left to the proposer that asks for it (`revisions`, at most two as in G.4).
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.admission import Admission, from_row
from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents import Agent, Budget
from workbench.proposer import Assignment, Proposer
from workbench.proposer.assignments import make_assignments
from workbench.proposer.revise import answer
from workbench.proposer.workspace import Past
from workbench.runs.folder import Run
from workbench.runs.progress import progress, say
from workbench.sandboxes import Backend
from workbench.tasks import Task, TaskError, load_task
from workbench.training.pool import PoolEntry, entry_for, entry_from_row, near_check, review
from workbench.trials import Trial
from workbench.trials.run import run_trial


@dataclass(frozen=True)
class Settings:
    """What one round needs. rollouts: of the solver on each environment, before and after. revisions: how often a
    refused environment may come back (0–2). workers: trials side by side. budget: of one solver attempt.
    held_out: a folder whose instructions no environment may share 13-grams with."""

    assignments: int = 8
    rollouts: int = 4
    revisions: int = 0
    workers: int = 8
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    calibration: Calibration | None = None
    held_out: Path | None = None
    too_near: float = 0.98


@dataclass
class Flywheel:
    """The parts of the loop: who solves (the agent of an attempt's number), who proposes, where commands run, the run that remembers."""

    run: Run
    backend: Backend
    solver: Callable[[int], Agent]
    proposer: Proposer
    settings: Settings
    say: Callable[[str], None] = say

    def rollouts(self, task: Task, key: str, *, count: int | None = None) -> list[Trial]:
        """The solver's attempts at one environment; attempts already in the journal are read, not repeated."""
        n = count or self.settings.rollouts
        with ThreadPoolExecutor(min(n, self.settings.workers)) as threads:
            return list(threads.map(lambda i: self._attempt(task, f"{key}-{i}"), range(n)))

    def _attempt(self, task: Task, key: str) -> Trial:
        number = draw_number(key)
        return run_trial(task, self.solver(number), self.backend, budget=self.settings.budget, admitted=True, run=self.run,
                         id=key, seed=number)  # fmt: skip

    def measure(self, tasks: Sequence[Task], round: int, group: str) -> dict[str, list[Trial]]:
        """Attempts at many environments side by side; task digest → trials. Each environment is a `rollouts` record."""
        result: dict[str, list[Trial]] = {}
        workers = max(1, self.settings.workers // max(1, self.settings.rollouts))
        with (
            progress(label=f"round {round}: {group}", total=len(tasks)) as done,
            ThreadPoolExecutor(workers) as threads,
        ):
            for task, trials in threads.map(
                lambda t: (t, self.rollouts(t, f"r{round}-{group}-{t.digest[:12]}")), tasks
            ):
                result[task.digest] = trials
                self._record_rollouts(task, trials, round, group)
                done(note=f"{task.name} rewards {rewards_line(trials)}")
        return result

    def _record_rollouts(self, task: Task, trials: Sequence[Trial], round: int, group: str) -> None:
        rewards = [t.reward for t in trials if t.counts]
        row = {"round": round, "group": group, "task": task.name, "digest": task.digest, "rewards": rewards,
               "infra": sum(not t.counts for t in trials)}  # fmt: skip
        self.run.once("rollouts", f"r{round}-{group}-{task.digest[:12]}", lambda: row)

    def assign(self, parents: Sequence[Task], trials: dict[str, list[Trial]], round: int) -> list[Assignment]:
        """The round's assignments, recorded once."""
        made = make_assignments(
            [(t, trials[t.digest]) for t in parents], self.settings.assignments, run_id=self.run.id, round=round
        )
        rows = [self.run.once("assignment", a.id, a.to_row) for a in made]
        return [assignment_from_row(row) for row in rows]

    def answer(self, assignment: Assignment) -> PoolEntry:
        """One assignment from proposal to verdict, revisions included; a verdict is recorded once. Where infrastructure failed
        there is none: the entry says so, and a resumed run tries again."""
        if (row := self.run.get("pool", assignment.id)) is not None:
            return entry_from_row(row)
        entry = self._answer(assignment)
        if "infra" not in entry.reasons:
            self.run.record("pool", entry.to_row(), id=assignment.id)
        return entry

    def _answer(self, assignment: Assignment) -> PoolEntry:
        number, folder = int(assignment.id.rsplit("a", 1)[1]), self.run.folder / "tasks"
        found = answer(
            assignment, self.proposer, self._admit, self.run, key=assignment.id, folder=folder,
            seed=self.settings.seed * 10_000 + number, revisions=self.settings.revisions,
        )  # fmt: skip
        return entry_for(
            from_row(found.last.admission),
            path=str(folder / found.last.key),
            parent=assignment.parent,
            direction=assignment.direction,
            round=assignment.round,
        )

    def _admit(self, key: str, target: Path) -> Admission:
        calibration = self.settings.calibration
        if calibration is not None:
            calibration = replace(calibration, number=lambda i: draw_number(f"{key}-solver-{i}"))
        admission = admit(
            target,
            self.backend,
            calibrate=calibration,
            held_out=self.settings.held_out,
            run=self.run,
            id=key,
        )
        self.say(f"  {key}: {verdict_line(admission)}")
        return admission

    def refresh(self, entries: Sequence[PoolEntry], round: int) -> list[PoolEntry]:
        """Fresh rollouts on the admitted environments, which feed the next round; the ones that left the band go."""
        active = [e for e in entries if e.status == "active"]
        tasks = {e.digest: load_task(e.path) for e in active}
        trials = self.measure(list(tasks.values()), round, "admitted")
        out = []
        for entry in active:
            counted = [t.reward or 0.0 for t in trials[entry.digest] if t.counts]
            fresh = review(entry, counted) if counted else entry
            self.run.once("review", fresh.id, lambda fresh=fresh: {**fresh.to_row(), "id": fresh.id})
            out.append(fresh)
        return out


def draw_number(key: str) -> int:
    """The number that seeds the attempt called `key`: no two attempts draw alike, so that fresh rollouts are fresh."""
    return zlib.crc32(key.encode())


def generate(wheel: Flywheel, parents: Sequence[Task], round: int = 1) -> list[PoolEntry]:
    """The first half of a round: rollouts on the parents, assignments, answers, verdicts; every new environment's entry."""
    wheel.say(f"round {round}: the solver ({wheel.solver(0).model}) attempts {len(parents)} parent environments")
    before = wheel.measure(parents, round, "parents")
    _need_attempts([t for trials in before.values() for t in trials])
    if (refresh := getattr(wheel.proposer, "refresh", None)) is not None:  # a harness reads the rollouts
        refresh([Past(t.name, t, before[t.digest], round) for t in parents])
    assignments = wheel.assign(parents, before, round)
    wheel.say(f"round {round}: {len(assignments)} assignments to {wheel.proposer.name}, each through the whole gate")
    with progress(label=f"round {round}: gate", total=len(assignments)) as done:
        return answer_all(wheel, assignments, [(t.name, t) for t in parents], done)


def _need_attempts(trials: Sequence[Trial]) -> None:
    """A round without one attempt that counts has nothing to go on with; say what ended the last one."""
    if not any(t.counts for t in trials):
        what = f"the last: {trials[-1].reason}: {trials[-1].message[:500]}" if trials else "there are no parents"
        raise RuntimeError(f"none of {len(trials)} attempts on the parent environments counts; {what}")


def play_round(wheel: Flywheel, parents: Sequence[Task], round: int = 1) -> list[PoolEntry]:
    """One full round; returns every new environment's entry, active ones after their fresh rollouts."""
    entries = generate(wheel, parents, round)
    wheel.say(f"round {round}: fresh rollouts on {sum(e.status == 'active' for e in entries)} admitted environments")
    fresh = {e.id: e for e in wheel.refresh(entries, round)}
    standing = [fresh.get(e.id, e) for e in entries]
    wheel.say(f"round {round}: {len(standing)} environments, {standing_line(standing)}")
    return standing


def answer_all(
    wheel: Flywheel,
    assignments: Sequence[Assignment],
    pool: list[tuple[str, Task]],
    done: Callable[[], None] = lambda: None,
) -> list[PoolEntry]:
    """Answer assignments side by side, then settle nearness in the assignments' order, so that it does not depend on timing.
    done is called after each answer."""

    def answer(assignment: Assignment) -> PoolEntry:
        entry = wheel.answer(assignment)
        done()
        return entry

    with ThreadPoolExecutor(max(1, wheel.settings.workers // 2)) as threads:
        entries = list(threads.map(answer, assignments))
    settled = []
    for entry in entries:
        task = loaded(Path(entry.path)) if entry.status == "active" else None
        settled.append(near_check(entry, task, pool, wheel.settings.too_near))
        if settled[-1].status == "active" and task is not None:
            pool.append((entry.id, task))
        before = wheel.run.get("standing", settled[-1].id)
        if before is None or "infra" in before["reasons"]:
            wheel.run.record("standing", settled[-1].to_row())
    return settled


def loaded(path: Path) -> Task | None:
    """The task at `path`, or None when it is not one."""
    try:
        return load_task(path)
    except TaskError:
        return None


def assignment_from_row(row: dict[str, Any]) -> Assignment:
    fields = {k: v for k, v in row.items() if k in Assignment.__dataclass_fields__}
    return Assignment(**{**fields, "evidence": tuple(fields["evidence"])})


def rewards_line(trials: Sequence[Trial]) -> str:
    return " ".join("infra" if not t.counts else f"{t.reward:.2f}" for t in trials)


def standing_line(entries: Sequence[PoolEntry]) -> str:
    """How many stand where, say "2 active, 5 evicted (fresh rollouts left the band), 5 rejected"."""
    count = Counter(e.status for e in entries)
    why = {"evicted": " (fresh rollouts left the band)"}
    return ", ".join(f"{n} {status}{why.get(status, '')}" for status, n in sorted(count.items())) or "none"


def verdict_line(admission: Admission) -> str:
    """One line for people: what became of it and why."""
    solver = admission.rewards.get("solver", [])
    shown = f" rewards {' '.join(f'{r:.2f}' for r in solver)}" if solver else ""
    if admission.infra:
        return "no verdict (infrastructure failed)" + shown
    if admission.admitted:
        return "admitted" + shown
    first = admission.reasons[0] if admission.reasons else None
    price = admission.reward if admission.reward is not None else math.nan
    return f"refused at {admission.stage} (the proposer earns {price:+.2f}): {first.kind if first else '?'}{shown}"
