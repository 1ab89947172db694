"""A small task, written by hand so that a test can lay pieces over it, and agents that act by plain commands."""

from __future__ import annotations

from pathlib import Path

from workbench.tasks import load_task
from workbench.traces import Episode, Turn

TOML = """schema_version = "1.4"
[task]
name = "small/{name}"
[agent]
timeout_sec = {agent}
[verifier]
timeout_sec = {verifier}
environment_mode = "shared"
[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
storage_mb = 256
"""
# Half the reward for each of two right files; a grader without pytest.
TEST_SH = """#!/bin/bash
n=0
[ "$(cat /app/a.txt 2>/dev/null)" = alpha ] && n=$((n + 1))
[ "$(cat /app/b.txt 2>/dev/null)" = beta ] && n=$((n + 1))
echo "right: $n of 2"
echo "0.$((n * 5))" | sed 's/0.10/1.0/' > /logs/verifier/reward.txt
"""
FILES = {
    "instruction.md": "Write alpha to /app/a.txt and beta to /app/b.txt.\n",
    "environment/Dockerfile": "FROM python:3.13-slim\nWORKDIR /app\nCOPY hello.txt /app/hello.txt\n",
    "environment/hello.txt": "hello\n",
    "solution/solve.sh": "#!/bin/bash\nset -e\necho alpha > /app/a.txt\necho beta > /app/b.txt\n",
    "tests/test.sh": TEST_SH,
}


def write(folder: Path, files: dict[str, str] | None = None, *, agent: float = 20, verifier: float = 20) -> Path:
    """The small task at `folder`, with `files` laid over it (None takes one away)."""
    base = {"task.toml": TOML.format(name=folder.name, agent=agent, verifier=verifier), **FILES}
    for name, text in {**base, **(files or {})}.items():
        if text is None:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if name.endswith(".sh"):
            path.chmod(0o755)
    return folder


def make(folder: Path, files: dict[str, str] | None = None, **times: float):
    return load_task(write(folder, files, **times))


class Commands:
    """Acts by shell commands, one exec each; a command may be a function of the sandbox."""

    model = ""

    def __init__(self, *commands, name="commands", ended_by="submit"):
        self.commands, self.name, self.ended_by = commands, name, ended_by
        self.outputs: list[str] = []

    def run(self, task, step, sandbox, budget):
        turns = []
        for index, command in enumerate(self.commands):
            if callable(command):
                command(sandbox)
                continue
            result = sandbox.exec(command, timeout=min(budget.seconds, budget.command_seconds))
            self.outputs.append(result.output)
            turns.append(Turn(index, command=command, observation=result.output, exit_code=result.exit_code))
        return Episode(
            self.name,
            tuple(turns),
            submitted=self.ended_by == "submit",
            ended_by=self.ended_by,
            instruction=step.instruction,
        )


A = "echo alpha > /app/a.txt"
B = "echo beta > /app/b.txt"


class Raises:
    """An agent that fails as told."""

    name, model = "raises", ""

    def __init__(self, error):
        self.error = error

    def run(self, task, step, sandbox, budget):
        raise self.error


class Journal:
    """The part of a run that trials write to."""

    id = "run-1"

    def __init__(self, folder: Path):
        self.folder, self.rows = folder, []

    def record(self, kind, row):
        self.rows.append((kind, row))

    def get(self, kind, id):
        return next((row for k, row in reversed(self.rows) if k == kind and row["id"] == id), None)

    def path(self, kind, name):
        path = self.folder / kind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class Counting:
    """A real back end that keeps what it started, and can fail on order."""

    def __init__(self, backend, fail=lambda number: None):
        self.backend, self.fail, self.started, self.stopped, self.name = backend, fail, [], [], backend.name

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def start(self, image, **options):
        self.started.append(options)
        if error := self.fail(len(self.started)):
            raise error
        sandbox = self.backend.start(image, **options)
        stop = sandbox.stop

        def stopping():
            self.stopped.append(sandbox.id)
            stop()

        sandbox.stop = stopping
        return sandbox
