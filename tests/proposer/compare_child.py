"""A small comparison in a process of its own: `compare_child.py RUN_FOLDER PAID_FILE [KILL_AFTER]`.

Real sandboxes, scripted designers that count what they are paid for, a scripted solver. KILL_AFTER: the process kills
itself right after so many records."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from workbench.admission.calibration import Calibration
from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.proposer.assignments import make_assignments
from workbench.proposer.compare import Comparison, attempts, share_past
from workbench.proposer.compare_config import entries
from workbench.proposer.compare_open import Opener
from workbench.proposer.compare_scripted import Designer
from workbench.proposer.compare_setup import from_row
from workbench.proposer.program import seed_tasks
from workbench.runs.folder import Run, open_run
from workbench.sandboxes import get_backend
from workbench.tasks import load_task

BUDGET = Budget(turns=2, tokens=1000, seconds=60, command_seconds=20)
CONFIG = {
    "models": [
        {"name": "asked", "model": "designer:0.6:0.5", "methods": ["prompt"]},
        {"name": "told", "model": "designer:0.6:0.5", "methods": ["feedback"]},
        {"name": "acts", "model": "designer:0.6:0.5", "methods": ["harness"]},
    ]
}


class Paid:
    """A designer that writes down every answer that it is paid for."""

    def __init__(self, name: str, path: Path):
        self.designer, self.name, self.path = Designer(0.6, 0.5), name, path

    def reply(self, messages, sampling):
        answer = self.designer.reply(messages, sampling)
        drawn = {k: v for k, v in sampling.__dict__.items() if k != "seconds"}
        key = hashlib.sha256(json.dumps([self.name, list(messages), drawn], sort_keys=True).encode()).hexdigest()
        with self.path.open("a") as file:
            file.write(key + "\n")
        return answer

    def worst_usd(self, messages, sampling):
        return 0.0


def solver(number: int) -> ScriptedAgent:
    """Half of the attempts do nothing; the others pass whatever asks for one word in a file."""
    return ScriptedAgent(["ls"] if number % 2 else ["ls; pwd"], name="half")


def comparison(run: Run, paid: Path | None = None) -> Comparison:
    backend = get_backend("bubblewrap")
    found = entries(CONFIG)
    models = {} if paid is None else {e.name: Paid(e.name, paid) for e in found}
    opener = Opener(run, backend, run.folder / "harness", rounds=2, models=models)
    calibration = Calibration(solver, 2, 2, budget=BUDGET, workers=2, diagnose=False)
    return Comparison(run, backend, opener, found, calibration=calibration, repeats=1, workers=3, revisions=1)


def play(run: Run, paid: Path | None = None) -> None:
    whole = comparison(run, paid)
    tasks = [load_task(p) for p in seed_tasks(run.folder / "tasks", (0, 3), 0)]
    tried = attempts(run, tasks, solver, whole.backend, rollouts=1, budget=BUDGET)
    made = make_assignments(tried, 3, run_id=run.id, round=1)
    rows = [run.once("assignment", a.id, a.to_row) for a in made]
    share_past(whole.opener, whole.entries, tried)
    whole.play([from_row(row) for row in rows])
    whole.opener.close()


def dying(run: Run, after: int) -> None:
    """Kill this process with no warning after so many records."""
    record, left = run.journal.record, [after]

    def counted(*args, **options):
        made = record(*args, **options)
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    run.journal.record = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    here = open_run(sys.argv[1])
    if len(sys.argv) > 3:
        dying(here, int(sys.argv[3]))
    play(here, Path(sys.argv[2]))
    print("done")
