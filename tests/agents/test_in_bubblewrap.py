"""The agents in a real sandbox: what a folder of the host cannot show."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.agents import Budget, get_agent
from workbench.models.scripted import Scripted
from workbench.sandboxes import SandboxError, get_backend
from workbench.tasks import Step, Task


@pytest.fixture
def sandbox(tmp_path):
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
    try:
        backend = get_backend()
        sandbox = backend.start(backend.build(environment))
    except (ImportError, SandboxError) as error:
        pytest.skip(f"no bubblewrap sandbox on this machine: {error}")
    yield sandbox
    sandbox.stop()


def step_of(tmp_path) -> tuple[Task, Step]:
    solution = tmp_path / "solution"
    solution.mkdir()
    (solution / "solve.sh").write_text('cp "$(dirname "$0")/answer" /app/answer\n')
    (solution / "answer").write_text("42")
    step = Step("", "Write the answer.", Path("tests"), solution)
    return Task(tmp_path, "t", (step,), "digest"), step


def test_oracle_leaves_its_result_and_not_its_solution(tmp_path, sandbox):
    task, step = step_of(tmp_path)
    episode = get_agent("oracle").run(task, step, sandbox, Budget())
    assert episode.turns[0].exit_code == 0
    assert sandbox.read("/app/answer") == b"42"
    assert sandbox.exec("test -e /solution").exit_code == 1


def test_terminal_agent_keeps_its_place_through_a_flood_and_a_timeout(tmp_path, sandbox):
    task, step = step_of(tmp_path)
    commands = ["mkdir -p d; cd d; export X=1", "yes | head -c 5000000; cd ..; cd d", "sleep 60", "pwd; echo $X"]
    model = Scripted([*(f"```bash\n{c}\n```" for c in commands), "```bash\nsubmit\n```"])
    episode = get_agent("terminal", model).run(task, step, sandbox, Budget(command_seconds=1.0))
    assert episode.submitted
    assert len(episode.turns[1].observation) < 8500
    assert "timed out" in episode.turns[2].observation
    assert episode.turns[3].observation == "[exit code 0]\n/app/d\n1"
