"""`workbench calibrate`: a solver's rollouts on tasks that are valid, and whether they suit it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.agents import Agent, Budget
from workbench.cli.parser import UsageError
from workbench.cli.show import block, json_line, message
from workbench.cli.tasks import expand, jobs, open_backend
from workbench.runs.folder import Run, new_run
from workbench.runs.progress import Progress, clean, say


def main(arguments: argparse.Namespace) -> int:
    """0 when every task suits the solver; 1 when one does not, is no task, or too few rollouts came to an end.

    Tasks are taken as valid (`workbench validate` says so). Rollouts are kept in a run folder, named on stderr.
    """
    paths = expand(arguments.tasks)
    rule = _rule(arguments)
    backend = open_backend(arguments.backend)
    if isinstance(backend, str):
        message(backend)
        return 1
    kept = []
    with new_run("calibrate", {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}) as run:
        print(f"run folder: {run.folder}", file=sys.stderr, flush=True)
        for n, path in enumerate(paths, 1):
            say(f"[calibrate] {n}/{len(paths)} {path}")
            row = _one(path, backend, rule, run)
            kept.append(row["keep"] is True)
            if arguments.json:
                json_line(row)
            else:
                print(_text(row), flush=True)
    return 0 if all(kept) else 1


def _one(path: Path, backend: Any, rule: Any, run: Run) -> dict[str, Any]:
    from workbench.admission.calibration import calibrate
    from workbench.tasks import TaskError, load_task

    try:
        task = load_task(path)
    except TaskError as error:
        reasons = [
            {"kind": f.kind, "message": f"{f.where}: {f.message}" if f.where else f.message} for f in error.faults
        ]
        return {"task": str(path), "keep": None, "n": 0, "rewards": [], "mean": None, "std": None, "reasons": reasons}
    with Progress(label=f"{task.name} rollouts") as done:
        result = calibrate(task, backend, rule, run=_Telling(run, done))
    reasons = [{"kind": r.kind, "message": r.message} for r in result.reasons]
    row = {"task": str(path), **result.to_row(), "reasons": reasons}
    run.record("calibration", {**row, "digest": task.digest})
    return row


class _Telling:
    """The run's recorder, which also says what became of each rollout."""

    def __init__(self, run: Run, done: Progress):
        self.run, self.id, self.path, self.done = run, run.id, run.path, done

    def record(self, kind: str, row: Mapping[str, Any]) -> object:
        got = row["outcome"] if row.get("reward") is None else f"reward {row['reward']:.2f}"
        self.done(int(kind == "trial"), note=f"{kind}: {got}, {row['turns']} turns, {row['seconds']:.0f} s")
        return self.run.record(kind, row)


def _text(row: dict[str, Any]) -> str:
    verdict = {True: "suits", False: "DOES NOT SUIT", None: "NO VERDICT"}[row["keep"]]
    rewards = " ".join(f"{r:.2f}" for r in row["rewards"])
    numbers = ""
    if row["mean"] is not None:
        numbers = f"mean {row['mean']:.3f}, std {row['std']:.3f}, P(true mean in band) {row['posterior']:.2f}"
    lines = [f"  {clean(r['kind'])}:\n{block(r['message'])}" for r in row["reasons"]]
    return "\n".join([f"{verdict:<13}  {clean(row['task'])}  {numbers}  [{rewards}]", *lines])


def _rule(arguments: argparse.Namespace) -> Any:
    from workbench.admission.calibration import Calibration

    low, high = arguments.band
    try:
        return Calibration(
            _factory(arguments),
            rollouts=arguments.rollouts,
            more=max(arguments.more, arguments.rollouts),
            low=low,
            high=high,
            budget=Budget(turns=arguments.turns),
            workers=jobs(arguments.jobs),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _factory(arguments: argparse.Namespace) -> Callable[[int], Agent]:
    """Makes the agent of rollout i: every rollout has a seed of its own, all share one model."""
    if arguments.agent == "oracle":
        from workbench.agents.oracle import Oracle

        return lambda i: Oracle()
    if arguments.agent == "noop":
        from workbench.agents.noop import NoOp

        return lambda i: NoOp()
    if arguments.agent != "terminal":
        raise UsageError(f"no agent {arguments.agent!r}: use terminal, oracle or noop")
    return _terminal(arguments)


def _terminal(arguments: argparse.Namespace) -> Callable[[int], Agent]:
    from workbench.agents.terminal import TerminalAgent
    from workbench.models import ModelError, Sampling, get_model

    try:
        model = get_model(arguments.model)
    except (ValueError, ModelError, OSError, ImportError) as error:
        raise UsageError(f"--model {arguments.model}: {error}") from None
    small = arguments.model == "smollm2"  # a short prompt and short answers for 135M weights
    most = arguments.max_tokens or (128 if small else 2048)

    def make(i: int) -> Agent:
        seed = arguments.seed * 1_000_000 + i * 1_000
        sampling = Sampling(max_tokens=most, temperature=arguments.temperature, seed=seed)
        return TerminalAgent(model, sampling=sampling, prompt="small" if small else "standard")

    return make
