"""The comparison: entries × assignments, each from question to verdict (AutoEnvScaling §4.1, appendices F.1 and H).

Every entry answers the same assignments under the same caps and goes through the same gate. Each piece of work is a record of
the run's journal: a killed comparison goes on where it stopped, and replies that had arrived are not paid for again. A cap in
dollars ends it between or inside of units; what was not made is named, and missing from every denominator.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.admission import Admission
from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents import Agent, Budget
from workbench.models import BudgetExceeded, ModelError
from workbench.models.budget import Budget as Cap
from workbench.proposer import Assignment, Proposer
from workbench.proposer.compare_config import Entry
from workbench.proposer.compare_open import Opener
from workbench.proposer.compare_scripted import Designer
from workbench.proposer.optimize import optimize
from workbench.proposer.revise import Answer, answer
from workbench.proposer.workspace import Past
from workbench.runs.folder import Run
from workbench.runs.progress import progress, say
from workbench.sandboxes import Backend, SandboxError
from workbench.tasks import Task
from workbench.trials import Trial
from workbench.trials.run import run_trial


@dataclass
class Comparison:
    """The parts. revisions: how often the gate's reasons go back (0: §4.1's comparison of methods as they are).
    calibration: None leaves `admitted` open. review: by each proposer's own model. repeats: see admit. workers: units side
    by side. seed: of every draw."""

    run: Run
    backend: Backend
    opener: Opener
    entries: Sequence[Entry]
    revisions: int = 0
    calibration: Calibration | None = None
    held_out: Path | None = None
    review: bool = False
    repeats: int = 2
    workers: int = 4
    seed: int = 0
    cancel: threading.Event = field(default_factory=threading.Event)

    def play(self, assignments: Sequence[Assignment]) -> list[dict[str, Any]]:
        """All entries, the optimized ones after the first round; every unit's `answer` record that there is now."""
        proposers = {entry.id: self.opener.open(entry) for entry in self.entries}  # a wrong entry is told at once
        for entry in self.entries:
            self.run.once("entry", entry.id, entry.to_row)
        first = [e for e in self.entries if not e.optimized]
        later = [e for e in self.entries if e.optimized]
        self._stage("comparison", first, assignments, proposers)
        if later:
            for entry in later:
                self._optimize(entry, assignments)
            again = [replace(a, round=a.round + 1) for a in assignments]
            self._stage("after harness optimization", later, again, proposers)
        return [
            row for e in self.entries for a in assignments if (row := self.run.get("answer", unit(e, a))) is not None
        ]

    def _stage(
        self, label: str, entries: Sequence[Entry], assignments: Sequence[Assignment], proposers: dict[str, Proposer]
    ) -> None:
        """One unit a pair; assignment by assignment, so that a capped run has the same ones of every entry."""
        units = [(e, a) for a in assignments for e in entries]
        with progress(label=label, total=len(units)) as done, ThreadPoolExecutor(self.workers) as threads:

            def one(pair: tuple[Entry, Assignment]) -> None:
                if not self.cancel.is_set():
                    done(note=f"{unit(*pair)}: {self._unit(*pair, proposers[pair[0].id])}")

            futures = [threads.submit(one, pair) for pair in units]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.cancel.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _unit(self, entry: Entry, assignment: Assignment, proposer: Proposer) -> str:
        """One assignment of one entry; in words, what became of it."""
        key = unit(entry, assignment)
        if (row := self.run.get("answer", key)) is not None:
            return f"done before ({row['last']['stage']})"
        folder = self.run.folder / "tasks" / entry.id
        seed = self.seed * 1_000_000 + number(assignment) + (500_000 if entry.optimized else 0)
        try:
            found = answer(assignment, proposer, self._gate(entry), self.run, key=key, folder=folder, seed=seed,
                           revisions=self.revisions)  # fmt: skip
        except BudgetExceeded as error:
            return self._unanswered(entry, assignment, "cap", str(error))
        except (ModelError, SandboxError) as error:
            return self._unanswered(entry, assignment, "infra", f"{type(error).__name__}: {error}")
        if found.infra:
            why = found.last.admission["reasons"][-1]["message"]
            return self._unanswered(entry, assignment, "infra", why)
        self.run.record("answer", self._row(entry, assignment, found), id=key)
        return str(found.last.admission["stage"])

    def _row(self, entry: Entry, assignment: Assignment, found: Answer) -> dict[str, Any]:
        proposal = found.first.proposal
        row = {k: v for k, v in entry.to_row().items() if k != "id"}
        return {
            **found.to_row(), **row, "entry": entry.id, "known": self._known(entry, assignment),
            "files": found.last.proposal["files"], "data_files": found.last.proposal["data_files"],
            "first_turns": proposal["calls"], "checked": (proposal["tools"] or {}).get("validated", {}),
            "violations": sorted({v for s in found.submissions for v in s.proposal["violations"]}),
        }  # fmt: skip

    def _known(self, entry: Entry, assignment: Assignment) -> bool | None:
        """What a scripted designer's first submission must be; None where nobody knows beforehand."""
        if entry.spec is None or entry.optimized:
            return None
        model = self.opener.model(entry.spec)
        if not isinstance(model, Designer):
            return None
        return model.known(assignment, entry.method, rounds=self.opener.rounds, self_check=entry.self_check)

    def _unanswered(self, entry: Entry, assignment: Assignment, why: str, message: str) -> str:
        """Said and written down; a resumed run tries again."""
        row = {"entry": entry.id, "assignment": assignment.id, "why": why, "message": message[:2000]}
        self.run.record("unanswered", row, id=unit(entry, assignment))
        return f"no verdict ({why}: {message[:120]})"

    def _gate(self, entry: Entry) -> Callable[[str, Path], Admission]:
        reviewer = self.opener.reviewer(entry) if self.review else None

        def gate(key: str, path: Path) -> Admission:
            calibration = self.calibration
            if calibration is not None:
                calibration = replace(calibration, number=lambda i: zlib.crc32(f"{key}-solver-{i}".encode()))
            return admit(
                path, self.backend, calibrate=calibration, held_out=self.held_out, review=reviewer, repeats=self.repeats,
                run=self.run, id=key, cancel=self.cancel,
            )  # fmt: skip

        return gate

    def _optimize(self, entry: Entry, assignments: Sequence[Assignment]) -> None:
        """Let the proposer edit its harness from the answers of its first round; once."""
        if self.run.done("optimization", entry.id):
            return
        say(f"{entry.id}: edits its memory and tools from its rewards and logs")
        home = replace(entry, id=entry.id.removesuffix("-optimized"), optimized=False)
        past = [self._past(row) for a in assignments if (row := self.run.get("answer", unit(home, a))) is not None]
        harness = self.opener.harness(entry)
        try:
            found = optimize(harness, past, round=1, seed=self.seed * 1_000_000 + 900_000, budget=self.opener.budget)
        except (ModelError, SandboxError) as error:
            say(f"{entry.id}: could not ({error}); it plays on with what it has")
            return
        self.run.record("optimization", {"entry": home.id, **found.to_row()}, id=entry.id)

    def _past(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of past_rewards: what the proposer may know of its own episode."""
        key = row["submissions"][-1]
        reasons = (self.run.get("admission", key) or {}).get("reasons", [])
        try:
            episode = json.loads(self.run.path("traces", f"proposal-{key}.json").read_text(encoding="utf-8"))
            turns = [{k: t[k] for k in ("text", "command", "observation")} for t in episode["turns"]]
        except (OSError, ValueError):
            turns = []
        return {
            "assignment": row["assignment"], "reward": row["reward"], "first_reward": row["first_reward"],
            "stage": row["last"]["stage"], "reasons": row["last"]["reasons"], "turns": row["turns"],
            "messages": [r["message"][:600] for r in reasons], "episode": {"turns": turns},
        }  # fmt: skip


def unit(entry: Entry, assignment: Assignment) -> str:
    """The name of one piece of work, in the journal and on disk."""
    return f"{entry.id}-{assignment.id}"


def number(assignment: Assignment) -> int:
    digits = "".join(c for c in assignment.id.rpartition("a")[2] if c.isdigit())
    return int(digits or 0)


def spent_before(run: Run) -> float:
    """Dollars that earlier attempts of this run have paid: replies that arrived, and coding agents' own calls."""
    replies = sum(r["usd"] for r in run.rows("reply") if r["usd"] == r["usd"])
    coding = {r["id"] for r in run.rows("entry") if r["agent"] not in ("", "terminal")}
    rows = [r for r in run.rows("answer") if r["entry"] in coding and r["usd"] == r["usd"]]
    return float(replies + sum(r["usd"] for r in rows))


def capped(run: Run, usd: float) -> Cap | None:
    """The spending cap of a whole comparison, what was spent before a kill counted; None for 0."""
    if not usd:
        return None
    cap = Cap(usd)
    cap.spent = spent_before(run)
    return cap


def attempts(
    run: Run, tasks: Sequence[Task], solver: Callable[[int], Agent], backend: Backend, *, rollouts: int, budget: Budget,
    workers: int = 4,
) -> list[tuple[Task, list[Trial]]]:  # fmt: skip
    """The solver's attempts at the parents, from which assignments are made; those in the journal are not repeated."""
    jobs = [(task, i) for task in tasks for i in range(rollouts)]
    with progress(label="attempts on parents", total=len(jobs)) as done, ThreadPoolExecutor(workers) as threads:

        def one(job: tuple[Task, int]) -> Trial:
            key = f"parent-{job[0].digest[:12]}-{job[1]}"
            drawn = zlib.crc32(key.encode())
            trial = run_trial(job[0], solver(drawn), backend, budget=budget, admitted=True, run=run, id=key, seed=drawn)
            done()
            return trial

        trials = list(threads.map(one, jobs))
    return [(task, trials[n * rollouts : (n + 1) * rollouts]) for n, task in enumerate(tasks)]


def share_past(opener: Opener, entries: Sequence[Entry], found: Sequence[tuple[Task, Sequence[Trial]]]) -> None:
    """Let every harness read the parents and the attempts at them."""
    past = [Past(task.name, task, trials, 1) for task, trials in found]
    for entry in entries:
        if entry.method == "harness":
            opener.harness(entry).refresh(past)
