"""Overhead of a trial outside the task's own commands, and what 1,000 no-op trials leave and cost.

python -m benchmarks trials        targets: median overhead at most 50 ms; no leftover; less than 50 MB of growth
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
from pathlib import Path

from benchmarks.timing import small_tasks
from workbench.agents.noop import NoOp
from workbench.sandboxes import get_backend
from workbench.tasks import load_task
from workbench.trials.batch import Job, run_trials
from workbench.trials.run import run_trial


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


def descendants() -> int:
    """Living processes below this one: wardens of idle slots, and whatever was left behind."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1]) if fields[0] != "Z" else 0
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return len(found) - 1


def processes_and_mounts() -> tuple[int, int]:
    return descendants(), len(Path("/proc/self/mounts").read_text().splitlines())


def run(many: int = 1000, workers: int = 2) -> list[dict[str, object]]:
    backend = get_backend("bubblewrap")
    with small_tasks(1) as (path,):
        task = load_task(path)
        warm = [run_trial(task, NoOp(), backend) for _ in range(20)]
        alone = [run_trial(task, NoOp(), backend) for _ in range(50)]
        gc.collect()
        memory, before = resident_mb(), processes_and_mounts()
        trials = run_trials([Job(task, NoOp(), backend) for _ in range(many)], workers=workers)
        rewards = {t.reward for t in trials}
        del trials
        gc.collect()
        after = processes_and_mounts()
    assert {t.outcome for t in warm} == {"graded"}
    overheads = sorted(t.overhead_seconds * 1000 for t in alone)
    return [
        {"what": "overhead of one trial, one at a time", "median_ms": statistics.median(overheads), "p90_ms": overheads[44],
         "trial_median_ms": 1000 * statistics.median(t.seconds for t in alone)},
        {"what": f"{many} no-op trials, {workers} at a time", "rewards": sorted(rewards, key=str), "growth_mb": resident_mb() - memory,
         "processes_more": after[0] - before[0], "mounts_more": after[1] - before[1]},
    ]  # fmt: skip
