"""A seeded program that answers assignments with small file tasks: no model, always executable, never the same twice.

It is the default proposer of the `micro` profile, where the solver is an embedded model of 135 million weights: its tasks
are within that model's reach. It reads the parent's ladder position from [metadata.workbench.program] in task.toml,
goes one rung down ("simpler") or up ("harder"), and draws new names, words and step kinds. A parent that it did not make
has no position; then it starts in the middle of the ladder.

This is not one of AutoEnvScaling's methods: it stands in for a proposer model so that the whole loop runs anywhere.
"""

from __future__ import annotations

import json
import random
import shutil
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from workbench.proposer import Assignment, Proposal
from workbench.proposer.steps import Step, draw_step

# A rung is the kinds of a task's steps, easy to hard. The order is that of the embedded model's measured pass rates (LOG.md).
LADDER: tuple[tuple[str, ...], ...] = (
    ("write",),
    ("rename",),
    ("phrase",),
    ("copy",),
    ("append",),
    ("count",),
    ("write", "write"),
    ("rename", "copy"),
    ("append", "count", "write"),
    ("copy", "sort", "replace", "column"),
)
MIDDLE = 3

DOCKERFILE = "FROM python:3.12-slim\nWORKDIR /app\nCOPY files/ /app/\n"

TEST_SH = """#!/bin/bash
# Grades the final files: reward = checks passed / checks. Plain Python, so that a grade costs a few milliseconds.
exec "$([ -x /opt/verifier/bin/python ] && echo /opt/verifier/bin/python || echo python3)" -I -S /tests/check.py
"""

CHECK_PY = '''"""Compares files with what was asked for; writes the passed fraction and a CTRF report."""

import json
import os
import stat

LIMIT = 65536


def passes(check):
    try:
        fd = os.open(check["path"], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        same = file.read(LIMIT).decode(errors="replace").strip() == check["text"].strip()
    return same and not (check["gone"] and os.path.lexists(check["gone"]))


def write(name, text):
    with open("/logs/verifier/" + name, "w") as file:
        file.write(text)


with open("/tests/expected.json") as file:
    checks = json.load(file)
tests = [{"name": c["name"], "status": "passed" if passes(c) else "failed", "duration": 0} for c in checks]
passed = sum(t["status"] == "passed" for t in tests)
summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "pending": 0, "skipped": 0, "other": 0,
           "start": 0, "stop": 0}
write("ctrf.json", json.dumps({"results": {"tool": {"name": "check"}, "summary": summary, "tests": tests}}))
write("reward.txt", str(passed / len(tests)))
for test in tests:
    print(test["status"], test["name"])
'''


@dataclass(frozen=True)
class Spec:
    """What one program task is made of: its rung of the ladder, its seed, and the drawn steps."""

    rung: int
    seed: int
    steps: tuple[Step, ...]


def draw(rung: int, seed: int) -> Spec:
    """The task at a rung for a seed: a pure function, the same anywhere."""
    rung = max(0, min(rung, len(LADDER) - 1))
    rng = random.Random(f"workbench program {rung} {seed}")
    taken: set[str] = set()
    return Spec(rung, seed, tuple(draw_step(kind, rng, taken) for kind in LADDER[rung]))


def instruction(spec: Spec) -> str:
    """The text that the solver sees: one sentence a step."""
    return " ".join(step.text for step in spec.steps) + "\n"


def toml(spec: Spec, name: str) -> str:
    """task.toml, with the ladder position that a later round reads."""
    return f"""schema_version = "1.4"

[task]
name = "workbench/{name}"
description = "Small file work in {len(spec.steps)} steps"

[metadata.workbench.program]
rung = {spec.rung}
seed = {spec.seed}

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 256
storage_mb = 64

[agent]
timeout_sec = 120.0
network_mode = "no-network"

[verifier]
timeout_sec = 20.0
network_mode = "no-network"
"""


def write_task(spec: Spec, target: Path, name: str) -> None:
    """Write the complete Harbor task at `target` (replaced when it is there)."""
    if target.exists():
        shutil.rmtree(target)
    files = {
        "instruction.md": instruction(spec),
        "task.toml": toml(spec, name),
        "environment/Dockerfile": DOCKERFILE,
        "environment/files/.keep": "",
        "solution/solve.sh": "#!/bin/bash\nset -e\ncd /app\n" + "".join(f"{s.solution}\n" for s in spec.steps),
        "tests/test.sh": TEST_SH,
        "tests/check.py": CHECK_PY,
        "tests/expected.json": json.dumps([{"name": f"{n}-{s.kind}", "path": f"/app/{s.file}", "text": s.expected,
                     "gone": f"/app/{s.gone}" if s.gone else ""}
                                           for n, s in enumerate(spec.steps, 1)], indent=1) + "\n",
    }  # fmt: skip
    files |= {f"environment/files/{path}": text for step in spec.steps for path, text in step.inputs.items()}
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    for script in ("solution/solve.sh", "tests/test.sh"):
        (target / script).chmod(0o755)


def rung_of(parent: Path) -> int | None:
    """The ladder position that a program task states; None for any other task."""
    try:
        data = tomllib.loads((parent / "task.toml").read_text())
        return int(data["metadata"]["workbench"]["program"]["rung"])
    except (OSError, KeyError, TypeError, ValueError):
        return None


def seed_tasks(folder: Path, rungs: tuple[int, ...], seed: int) -> list[Path]:
    """Parents for a first round: one task a rung named in `rungs`, written below `folder` unless they are there."""
    paths = []
    for n, rung in enumerate(rungs):
        path = folder / f"parent-{n:02d}"
        if not (path / "task.toml").is_file():
            write_task(draw(rung, seed * 1000 + n), path, f"parent-{n:02d}")
        paths.append(path)
    return paths


class ProgramProposer:
    """Answers every assignment at once; `step` rungs a move."""

    name = "program"

    def __init__(self, step: int = 1):
        self.step = step

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        start = time.monotonic()
        rung = rung_of(Path(assignment.parent_path))
        move = self.step if assignment.direction == "harder" else -self.step
        spec = draw(MIDDLE if rung is None else rung + move, seed)
        write_task(spec, target, target.name)
        kinds = ", ".join(s.kind for s in spec.steps)
        return Proposal(
            assignment.id, self.name, str(target), f"rung {spec.rung}: {kinds}", time.monotonic() - start, usd=0.0
        )
