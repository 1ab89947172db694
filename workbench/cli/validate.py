"""`workbench validate`: many tasks side by side, each verdict printed as it comes."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from workbench.admission import Admission
from workbench.cli.parser import UsageError
from workbench.cli.show import block, json_line, message
from workbench.cli.tasks import expand, jobs, open_backend
from workbench.runs.progress import Progress, clean


def main(arguments: argparse.Namespace) -> int:
    """0 when every task is valid; 1 when one is not, or has no verdict because infrastructure failed."""
    from workbench.admission.admit import admit_many

    paths = expand(arguments.tasks)
    if arguments.held_out and not Path(arguments.held_out).exists():
        raise UsageError(f"there is no {arguments.held_out} to check instructions against")
    backend = open_backend(arguments.backend)
    if isinstance(backend, str):
        message(backend)
        return 1
    valid: list[bool] = []
    quiet = not arguments.json and sys.stdout.isatty()  # the verdicts themselves are the progress
    with Progress(label="validate", total=None if quiet else len(paths)) if not quiet else _Nothing() as bar:

        def tell(admission: Admission) -> None:
            path = paths[int(admission.id)]
            row = verdict_row(path, admission)
            valid.append(row["valid"] is True)
            if arguments.json:
                json_line(row)
            else:
                print(verdict_text(row), flush=True)
            bar.update(1, f"{path.name} {word(row)}")

        admit_many(
            paths,
            backend,
            workers=min(jobs(arguments.jobs), len(paths)),
            ids=[str(i) for i in range(len(paths))],
            on_result=tell,
            held_out=arguments.held_out,
        )
    if not arguments.json:
        print(f"{sum(valid)} of {len(paths)} valid")
    return 0 if len(valid) == len(paths) and all(valid) else 1


def verdict_row(path: Path, admission: Admission) -> dict[str, Any]:
    """One line of `--json`. valid: true, false, or null without a verdict. rewards: by agent. seconds: of all stages."""
    return {
        "task": str(path),
        "name": admission.task,
        "valid": None if admission.infra else admission.validated,
        "stage": admission.stage,
        "reasons": [{"kind": r.kind, "message": r.message, "stage": r.stage} for r in admission.reasons],
        "rewards": {agent: list(rewards) for agent, rewards in admission.rewards.items()},
        "seconds": round(math.fsum(admission.seconds.values()), 3),
        "stages": dict(admission.seconds),
        "report": dict(admission.report),
        "digest": admission.digest,
    }


def word(row: dict[str, Any]) -> str:
    return {True: "valid", False: "NOT VALID", None: "NO VERDICT"}[row["valid"]]


def verdict_text(row: dict[str, Any]) -> str:
    """What people read: one line, then each reason."""
    rewards = ", ".join(f"{agent} {' '.join(f'{r:g}' for r in found)}" for agent, found in row["rewards"].items())
    head = f"{word(row):<10}  {clean(row['task'])}  {clean(rewards)}  ({row['seconds']:.1f} s)"
    reasons = [f"  [{clean(r['stage'])}] {clean(r['kind'])}:\n{block(r['message'])}" for r in row["reasons"]]
    return "\n".join([head, *reasons])


class _Nothing:
    """No bar: what is printed says enough."""

    def update(self, n: int, note: str) -> None: ...

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None: ...
