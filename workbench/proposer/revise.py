"""One assignment from its first submission to its last: the gate's typed reasons go back, at most twice (AutoEnvScaling G.4).

The same loop serves every method. Each version goes through the whole gate; a task below the calibration band has had one
diagnostic rollout with hints from its reference solution, and what came of it goes back too. The trajectory is scored on
its last submission; the first verdict is kept beside it. Every step is a record, so a killed run goes on where it was.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from workbench.admission import Admission, no_files
from workbench.proposer import Assignment, Proposal, Proposer
from workbench.proposer.failures import LAST_TURNS
from workbench.runs.folder import write_json
from workbench.tasks import TaskError, load_task
from workbench.trials import plain

REVISIONS = 2  # AutoEnvScaling G.4
MAX_REASONS = 12_000  # characters that go back

Gate = Callable[[str, Path], Admission]  # (the verdict's id, the task) → verdict; its trials are keyed by that id


class Keeper(Protocol):
    """The part of a run that the loop needs (workbench.runs.Run)."""

    id: str

    def get(self, kind: str, id: str) -> dict[str, Any] | None: ...

    def record(self, kind: str, row: Mapping[str, Any] | None = None, *, id: str | None = None) -> dict[str, Any]: ...

    def once(self, kind: str, key: str, fn: Callable[[], Mapping[str, Any]]) -> dict[str, Any]: ...

    def path(self, kind: str, name: str) -> Path: ...


@dataclass(frozen=True)
class Submission:
    """One version: its key in the journal, the proposal's and the verdict's records."""

    key: str
    proposal: Mapping[str, Any]
    admission: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """Everything that became of one assignment. infra: no verdict on the last submission; nothing is scored then."""

    assignment: str
    proposer: str
    submissions: tuple[Submission, ...]

    @property
    def first(self) -> Submission:
        return self.submissions[0]

    @property
    def last(self) -> Submission:
        return self.submissions[-1]

    @property
    def infra(self) -> bool:
        return bool(self.last.admission["infra"])

    def to_row(self) -> dict[str, Any]:
        """reward: r_P (Eq. 2) of the last submission; first_reward: of the first. usd: all that was spent, revisions and
        reviews counted, NaN when one price is unknown."""
        usd = math.fsum(s.proposal["usd"] + review_usd(s.admission) for s in self.submissions)
        return {
            "assignment": self.assignment, "proposer": self.proposer, "submissions": [s.key for s in self.submissions],
            "reward": self.last.admission["reward"], "first_reward": self.first.admission["reward"], "usd": usd,
            "turns": sum(s.proposal["calls"] for s in self.submissions),
            "seconds": math.fsum(s.proposal["seconds"] for s in self.submissions),
            "first": verdict_of(self.first.admission), "last": verdict_of(self.last.admission),
        }  # fmt: skip


def answer(
    assignment: Assignment, proposer: Proposer, gate: Gate, run: Keeper, *, key: str, folder: Path, seed: int,
    revisions: int = REVISIONS,
) -> Answer:  # fmt: skip
    """Ask, check, and ask again with the reasons until it is admitted, `revisions` are used up or infrastructure failed.

    key: of the first submission in the journal (revision n: `key-revN`); folder: where the versions lie, as
    `folder/<assignment id>` and `folder/<assignment id>-revN`. ModelError and SandboxError of the proposer pass through;
    nothing is recorded of the version that they ended.
    """
    if not 0 <= revisions <= REVISIONS:
        raise ValueError(f"revisions={revisions}: from 0 to {REVISIONS}")
    made: list[Submission] = []
    feedback = ""
    for number in range(revisions + 1):
        name = f"{key}-rev{number}" if number else key
        target = folder / (f"{assignment.id}-rev{number}" if number else assignment.id)
        last = Path(made[-1].proposal["path"]) if made and made[-1].proposal["path"] else None
        proposal = _propose(assignment, proposer, run, name, target, seed + 104_729 * number, feedback, last)
        admission = _admit(gate, run, name, proposal, assignment)
        made.append(Submission(name, proposal, admission))
        if admission["admitted"] or admission["infra"] or not admission["reasons"]:
            break
        feedback = feedback_text(admission, run)
    return Answer(assignment.id, proposer.name, tuple(made))


def _propose(
    assignment: Assignment, proposer: Proposer, run: Keeper, key: str, target: Path, seed: int, feedback: str,
    last: Path | None,
) -> dict[str, Any]:  # fmt: skip
    def ask() -> dict[str, Any]:
        if target.exists():  # left by a killed run: it was no submission
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if last is not None and last.is_dir():
            shutil.copytree(last, target, symlinks=True)
        made: Proposal = proposer.propose(assignment, target, seed=seed, feedback=feedback)
        if made.episode is not None:
            write_json(run.path("traces", f"proposal-{key}.json"), made.episode.to_json())
        return {**made.to_row(), **_measures(made)}

    return run.once("proposal", key, ask)


def _measures(proposal: Proposal) -> dict[str, Any]:
    """What the record keeps of the files and the episode, which are not in it."""
    row: dict[str, Any] = {"digest": "", "files": 0, "data_files": 0, "ended_by": "", "tokens": 0}
    if proposal.episode is not None:
        turns = proposal.episode.turns
        row |= {"ended_by": proposal.episode.ended_by, "tokens": sum(t.completion_tokens for t in turns)}
    if proposal.path is None:
        return row
    files = [p for p in Path(proposal.path).rglob("*") if p.is_file() and not p.is_symlink()]
    data = [p for p in files if p.relative_to(proposal.path).parts[0] == "environment" and p.name != "Dockerfile"]
    row |= {"files": len(files), "data_files": len(data)}
    try:
        return {**row, "digest": load_task(proposal.path).digest}
    except TaskError:
        return row


def _admit(gate: Gate, run: Keeper, key: str, proposal: Mapping[str, Any], assignment: Assignment) -> Mapping[str, Any]:
    """The verdict's record. One that infrastructure ended is tried again by a resumed run."""
    found = run.get("admission", key)
    if found is not None and not found["infra"]:
        return found
    if proposal["path"] is None:
        return run.record("admission", no_files(assignment.id, run.id, proposal["message"]).to_row(), id=key)
    made = gate(key, Path(proposal["path"]))
    found = run.get("admission", key)  # `admit` has written it, when it was given the run
    return found if found is not None and found["time"] == made.time else run.record("admission", made.to_row(), id=key)


def feedback_text(admission: Mapping[str, Any], run: Keeper) -> str:
    """What goes back: every reason with its stage and kind, and what the hinted rollout showed."""
    said = "\n".join(f"[{r['stage']}] {r['kind']}: {r['message']}" for r in admission["reasons"])
    return (said + diagnostic_text(admission, run))[:MAX_REASONS]


def diagnostic_text(admission: Mapping[str, Any], run: Keeper) -> str:
    """The diagnostic rollout (G.4) in words, "" when there was none."""
    calibration = admission["report"].get("calibration") or {}
    if not (found := calibration.get("diagnostic")):
        return ""
    earned = "no reward" if found["reward"] is None else f"a reward of {found['reward']:g}"
    text = (
        f"\n[calibration] diagnostic: with hints from your reference solution one attempt of the solver earned {earned}"
    )
    try:
        data = json.loads(run.path("traces", f"{found['id']}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return text
    failed = [name for step in data["steps"] for name, status in step["tests"].items() if status != "passed"]
    turns = [turn for episode in data["episodes"] for turn in episode.get("turns", [])][-LAST_TURNS:]
    text += f"; failed tests: {', '.join(failed[:12]) or 'none'}" if data["steps"] else ""
    seen = "\n".join(f"$ {t.get('command')}\n{str(t.get('observation'))[-600:]}" for t in turns if t.get("command"))
    return text + (f". Its last commands:\n{plain(seen)}" if seen else "")


def verdict_of(admission: Mapping[str, Any]) -> dict[str, Any]:
    """The three columns and where it ended, of one verdict."""
    row = {k: admission[k] for k in ("stage", "valid_paper", "validated", "admitted", "reward", "infra")}
    return {**row, "reasons": [r["kind"] for r in admission["reasons"]]}


def review_usd(admission: Mapping[str, Any]) -> float:
    return float((admission["report"].get("review") or {}).get("usd", 0.0))
