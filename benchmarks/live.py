"""The live view over a journal of 100,000 records: opening it, one more look (target: under 200 ms), and what it keeps in memory.

    python -m benchmarks.live

The journal is written by the flywheel's own records (trials, admissions, standings …) and read from disk as another process
would. `look` is a look that finds 100 new records, with everything that is sent to the browser; `search` is a text that no
trial holds, which is cut off by its limit of time and says so. `memory` is what Python allocates for the view.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.report.live import follow
from workbench.runs.folder import Run, new_run

RECORDS, NEW, LOOKS = 100_000, 100, 40
STAGES = ("build", "oracle", "noop", "repeat", "calibration")


def records(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """A flywheel's records in the order in which it writes them: for each environment an assignment, a proposal, its attempts,
    verdict and standing."""
    from workbench.trials import Trial

    rng, made, number = random.Random(seed), 0, 0
    while made < count:
        number += 1
        name, begun, admitted = f"r{number // 64}-a{number:05d}", 1.7e9 + number, rng.random() < 0.6
        head = {"id": name, "run_id": "bench", "time": begun}
        rows = [
            {
                "kind": "assignment",
                **head,
                "round": number // 64,
                "parent": "seed-1",
                "direction": "harder",
                "pass_rate": 0.8,
            },
            {
                "kind": "proposal",
                **head,
                "assignment": name,
                "proposer": "program",
                "path": f"tasks/{name}",
                "usd": 0.01,
            },
        ]
        rewards = [rng.random() < 0.5 for _ in range(12)]
        for i, reward in enumerate(rewards):
            trial = Trial(
                f"{name}-solver-{i}", "bench", begun, name, f"{number:064x}", "terminal", "embedded:smollm2", "bubblewrap", "graded",
                float(reward), bool(reward), submitted=True, ended_by="submit", turns=9, prompt_tokens=9000, completion_tokens=700,
                usd=0.0, seconds=31.5, agent_seconds=30.0, verifier_seconds=1.0, limits={"memory": "cgroup", "pids": "cgroup"},
            )  # fmt: skip
            tests = {f"tests/test_outputs.py::test_part_{t}": "passed" for t in range(8)}
            rows.append({"kind": "trial", **trial.to_row(), "tests": tests})
        stage = "admitted" if admitted else rng.choice(STAGES)
        reasons = (
            [] if admitted else [{"kind": f"bad-{stage}", "message": f"what the {stage} stage said", "stage": stage}]
        )
        verdict = {"task": name, "digest": f"{number:064x}", "stage": stage, "valid_paper": admitted or stage == "calibration",
                   "validated": admitted or stage == "calibration", "admitted": admitted, "reasons": reasons, "infra": False,
                   "rewards": {"solver": list(map(float, rewards))}, "trials": [f"{name}-solver-{i}" for i in range(12)]}  # fmt: skip
        place = {
            "round": number // 64,
            "task": name,
            "status": "active" if admitted else "rejected",
            "reasons": [],
            "message": "",
        }
        rows += [
            {"kind": "admission", **head, **verdict},
            {"kind": "pool", **head, **place},
            {"kind": "standing", **head, **place},
        ]
        yield from rows[: count - made]
        made += len(rows)


def write(path: Path, count: int, seed: int = 0) -> None:
    with path.open("a", encoding="ascii") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in records(count, seed))


def run() -> list[dict]:
    """Rows with `what` and what was measured."""
    with tempfile.TemporaryDirectory(prefix="bench-live-") as folder:
        made = new_run("40_flywheel", {}, results=Path(folder))
        write(made.journal_path, RECORDS)
        size = made.journal_path.stat().st_size / 1e6
        plain = _seconds(lambda: [json.loads(line) for line in made.journal_path.open("rb")])
        opened = _seconds(lambda: follow(made, watch=False))
        return [
            {"what": "open", "records": RECORDS, "MB": size, "seconds": opened, "to_parsing_it": opened / plain},
            _looks(made),
            *_pages(made),
            _memory(made),
        ]


def _looks(made: Run) -> dict:
    panel, times, sent = follow(made, watch=False), [], 0
    for n in range(LOOKS):
        write(made.journal_path, NEW, seed=n + 1)
        times.append(1000 * _seconds(panel.refresh))
        sent = len(json.dumps(panel.view.get_state(["seen", "trials"])))
    return {
        "what": "look",
        "new": NEW,
        "median_ms": statistics.median(times),
        "worst_ms": max(times),
        "target_ms": 200,
        "sent_kB": sent / 1e3,
    }


def _pages(made: Run) -> Iterator[dict]:
    view = follow(made, watch=False).view
    for what, query in (("page", ""), ("search", "no trial says this")):
        view.query = query
        times = [1000 * _seconds(view._turn) for _ in range(10)]
        yield {"what": what, "median_ms": statistics.median(times), "worst_ms": max(times), "note": view.trials["note"]}
    yield {"what": "static html", "ms": 1000 * _seconds(view.static_html), "kB": len(view.static_html()) / 1e3}


def _memory(made: Run) -> dict:
    follow(made, watch=False)  # what the first one imports is not counted
    tracemalloc.start()
    panel = follow(made, watch=False)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"what": "memory", "kept_MB": kept / 1e6, "most_MB": most / 1e6, "journal_MB": made.journal_path.stat().st_size / 1e6,
            "records": sum(panel.view.state.counts.values())}  # fmt: skip


def _seconds(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    from benchmarks.__main__ import line

    for row in run():
        print(line(row))
    sys.exit(0)
