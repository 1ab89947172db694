"""A corpus of an ablation's tasks: proposed, taken through the same gate as all others, and compared with the sealed verifier."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.admission.admit import admit_many
from workbench.models import get_model
from workbench.proposer import Assignment, Proposer
from workbench.proposer.ablation import PromptFirst, PublicView
from workbench.runs.folder import Run
from workbench.runs.progress import Progress
from workbench.sandboxes import Backend
from workbench.trials import Trial

SAMPLES = Path(__file__).with_name("ablation_samples")
METHODS = ("public-view", "prompt-first")


def open_ablation(spec: str, worlds: Proposer | None = None, **options: Any) -> Proposer:
    """ "public-view:MODEL" or "prompt-first:MODEL" (workbench.models.get_model). MODEL "sample": answers written by hand and shipped, a verifier
    for `retail_warehouse` and one small task, so that the way can be gone without a model. options: the model's. ValueError."""
    method, _, model = spec.partition(":")
    if method not in METHODS or not model:
        raise ValueError(f"no ablation {spec!r}: use {' or '.join(f'{name}:MODEL' for name in METHODS)}")
    if model == "sample":
        model = f"scripted:{SAMPLES / method.replace('-', '_')}.json"
    opened = get_model(model, **options)
    return PublicView(opened, worlds) if method == "public-view" else PromptFirst(opened)


def build(
    proposer: Proposer,
    count: int,
    run: Run,
    backend: Backend,
    *,
    seed: int = 0,
    parents: Sequence[Path] = (),
    **options: Any,
) -> list[dict[str, Any]]:
    """`count` tasks of a proposer below the run's tasks/, each through admission; what the run holds already is not done again.

    parents: tasks that assignments name in turn, () for none. options: of admission.admit_many (workers, calibrate, held_out, repeats).
    Returns a row a task: id, method, path (None: no task came of it), admitted as far as asked, the stage it ended at, reasons, calls, usd.
    """
    method = proposer.name.partition(":")[0]
    rows = {}
    for i in Progress(range(count), label=method):
        key = f"{method}-s{seed}-{i:03d}"
        assignment = _assignment(key, run.id, parents[i % len(parents)] if parents else None)
        rows[key] = run.once("ablation", key, lambda a=assignment, n=i: _proposed(proposer, a, run, seed * 1000 + n))
    _admit(rows, run, backend, options)
    return [_row(method, key, row, run.get("admission", key)) for key, row in rows.items()]


def _assignment(key: str, run_id: str, parent: Path | None) -> Assignment:
    """No solver has been asked: the ablations of §4.3 sample their corpora without feedback."""
    path = "" if parent is None else str(parent)
    return Assignment(key, run_id, time.time(), 0, Path(path).name if path else "", path, "", "harder", 0.5, "")


def _proposed(proposer: Proposer, assignment: Assignment, run: Run, seed: int) -> Mapping[str, Any]:
    target = run.path("tasks", f"{assignment.id}/task.toml").parent
    shutil.rmtree(target, ignore_errors=True)
    return proposer.propose(assignment, target, seed=seed).to_row()


def _admit(rows: Mapping[str, Mapping[str, Any]], run: Run, backend: Backend, options: Mapping[str, Any]) -> None:
    todo = {key: row["path"] for key, row in rows.items() if row["path"] and not run.done("admission", key)}
    with Progress(label="admission", total=len(todo)) as bar:
        told = {"on_result": lambda found: bar.update(1, found.stage), "run": run, "ids": list(todo), **options}
        admit_many(list(todo.values()), backend, **told)


def _row(method: str, key: str, proposed: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> dict[str, Any]:
    reasons = (verdict or {}).get("reasons") or []
    return {
        "id": key,
        "method": method,
        "path": proposed["path"],
        "validated": bool(verdict and verdict["validated"]),
        "admitted": verdict["admitted"] if verdict else None,
        "stage": verdict["stage"] if verdict else "proposal",
        "reasons": ", ".join(dict.fromkeys(r["kind"] for r in reasons)) or proposed["message"] * (verdict is None),
        "calls": proposed["calls"],
        "usd": proposed["usd"],
    }


def agreement(sealed: Iterable[Trial], other: Iterable[Trial]) -> dict[str, Any]:
    """How a written verifier judges what the sealed one judged: the same rollouts (task's own name and seed) on both tasks.

    false_pass: accepted, though the sealed verifier refuses. false_fail: the reverse. Rollouts that one side lacks are left out. Meant for
    scripted solvers, which do the same on both; a model's rollouts differ from task to task.
    """
    theirs = {_key(trial): trial for trial in other if trial.counts}
    pairs = [(trial, theirs[key]) for trial in sealed if trial.counts and (key := _key(trial)) in theirs]
    return {
        "rollouts": len(pairs),
        "sealed_pass": sum(bool(a.passed) for a, _ in pairs),
        "written_pass": sum(bool(b.passed) for _, b in pairs),
        "false_pass": sum(bool(b.passed and not a.passed) for a, b in pairs),
        "false_fail": sum(bool(a.passed and not b.passed) for a, b in pairs),
    }


def _key(trial: Trial) -> tuple[str, str, int | None]:
    return trial.task.rsplit("/", 1)[-1], trial.agent, trial.seed
