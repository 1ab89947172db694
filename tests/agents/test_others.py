from __future__ import annotations

from pathlib import Path

import pytest
from folder_sandbox import FolderSandbox

from workbench.agents import Agent, Budget, get_agent
from workbench.agents.noop import NoOp
from workbench.agents.oracle import Oracle
from workbench.agents.script import ScriptedAgent
from workbench.tasks import Step, Task


@pytest.fixture
def sandbox(tmp_path):
    return FolderSandbox(tmp_path / "box")


def task_with(tmp_path, script: str | None, env: dict | None = None) -> Task:
    solution = None
    if script is not None:
        solution = tmp_path / "solution"
        solution.mkdir()
        (solution / "solve.sh").write_text(script)
        (solution / "data.txt").write_text("from the solution folder")
    step = Step("", "Do it.", Path("tests"), solution)
    return Task(tmp_path, "t", (step,), "digest", config={"solution": {"env": env or {}}})


def oracle(task, sandbox, budget=Budget(), **options):
    return Oracle(**options).run(task, task.steps[0], sandbox, budget)


def test_oracle_runs_the_solution_with_its_files_and_removes_it(tmp_path, sandbox):
    task = task_with(tmp_path, 'cat "$(dirname "$0")/data.txt" > out.txt; echo said; exit 3')
    episode = oracle(task, sandbox)
    assert (sandbox.root / "app/out.txt").read_text() == "from the solution folder"
    assert not (sandbox.root / "solution").exists()
    turn = episode.turns[0]
    assert (turn.exit_code, turn.observation, turn.command) == (3, "said\n", "bash /solution/solve.sh")
    assert (episode.submitted, episode.ended_by) == (True, "submit")


def test_oracle_gets_its_environment_and_none_of_the_hosts_keys(tmp_path, sandbox, monkeypatch):
    monkeypatch.setenv("HOST_KEY", "secret")
    env = {"A": "1 two", "B": "${HOST_KEY}", "C": "${HOST_KEY:-none}", "D": "x${NOT_SET_ANYWHERE:-y}"}
    task = task_with(tmp_path, 'echo "$A|${B-unset}|$C|$D"', env)
    assert oracle(task, sandbox).turns[0].observation == "1 two|unset|none|xy\n"
    assert oracle(task, sandbox, host_env=("HOST_KEY",)).turns[0].observation == "1 two|secret|secret|xy\n"


def test_oracle_past_its_time(tmp_path, sandbox):
    episode = oracle(task_with(tmp_path, "sleep 60"), sandbox, Budget(seconds=0.3))
    assert (episode.ended_by, episode.submitted, episode.turns[0].exit_code) == ("time", False, 124)
    assert not (sandbox.root / "solution").exists()


def test_oracle_without_a_solution_says_so(tmp_path, sandbox):
    episode = oracle(task_with(tmp_path, None), sandbox)
    assert (episode.ended_by, episode.submitted) == ("error", False)
    assert "solve.sh" in episode.error


def test_noop_does_nothing(tmp_path, sandbox):
    task = task_with(tmp_path, None)
    episode = NoOp().run(task, task.steps[0], sandbox, Budget())
    assert (episode.submitted, episode.turns, sandbox.calls) == (True, (), [])
    assert isinstance(NoOp(), Agent)


def test_scripted_commands_share_a_shell_state(tmp_path, sandbox):
    task = task_with(tmp_path, None)
    episode = ScriptedAgent(["mkdir d; cd d", "false", "echo x > here.txt"]).run(task, task.steps[0], sandbox, Budget())
    assert (sandbox.root / "app/d/here.txt").read_text() == "x\n"
    assert [t.exit_code for t in episode.turns] == [0, 1, 0]
    assert episode.submitted


def test_scripted_limits(tmp_path, sandbox):
    task = task_with(tmp_path, None)
    turns = ScriptedAgent(["true"] * 5).run(task, task.steps[0], sandbox, Budget(turns=2))
    assert (turns.ended_by, len(turns.turns), turns.submitted) == ("turns", 2, False)
    late = ScriptedAgent(["sleep 30", "true"]).run(task, task.steps[0], sandbox, Budget(seconds=0.3))
    assert (late.ended_by, len(late.turns)) == ("time", 1)


def test_scripted_from_files(tmp_path, sandbox):
    task = task_with(tmp_path, None)
    (tmp_path / "part.sh").write_text("for i in 1 2; do\n  echo $i >> n.txt\ndone\n")
    (tmp_path / "part.json").write_text('["echo 3 >> n.txt", "echo 4 >> n.txt"]')
    for name, turns in (("part.sh", 1), ("part.json", 2)):
        episode = get_agent(f"script:{tmp_path / name}").run(task, task.steps[0], sandbox, Budget())
        assert (len(episode.turns), episode.agent) == (turns, f"script:{name}")
    assert (sandbox.root / "app/n.txt").read_text() == "1\n2\n3\n4\n"
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ValueError, match=r"bad\.json"):
        get_agent(f"script:{tmp_path / 'bad.json'}")
