"""Other ways to be graded: several steps, a verifier in an image of its own, services that live on."""

from __future__ import annotations

import pytest

from workbench.agents.noop import NoOp
from workbench.agents.oracle import Oracle
from workbench.tasks.verifier import VERIFIER_TEMPLATE
from workbench.trials.run import run_trial

from .small_tasks import FILES, TOML, A, B, Commands, make

R = "/logs/verifier/reward.txt"
HEAD = TOML.format(name="t", agent=20, verifier=20)


def check(path: str, word: str) -> str:
    return f'#!/bin/bash\n[ "$(cat {path} 2>/dev/null)" = {word} ] && echo 1 > {R} || echo 0 > {R}\n'


def steps(strategy: str = "mean", min_reward: str = "", **more: str) -> dict[str, str | None]:
    head = HEAD.replace("[task]", f'multi_step_reward_strategy = "{strategy}"\n[task]')
    files: dict[str, str | None] = dict.fromkeys(FILES)
    files |= {name: FILES[name] for name in ("environment/Dockerfile", "environment/hello.txt")}
    files["task.toml"] = head + f'[[steps]]\nname = "one"\n{min_reward}\n[[steps]]\nname = "two"\n'
    for name, path, word in (("one", "/app/a.txt", "alpha"), ("two", "/app/b.txt", "beta")):
        files[f"steps/{name}/instruction.md"] = f"Write {word} to {path}.\n"
        files[f"steps/{name}/tests/test.sh"] = check(path, word)
        files[f"steps/{name}/solution/solve.sh"] = f"#!/bin/bash\necho {word} > {path}\n"
    return {**files, **more}


class ByStep(Commands):
    """Runs one list of commands a step."""

    def __init__(self, **commands):
        super().__init__()
        self.by_step = commands

    def run(self, task, step, sandbox, budget):
        return Commands(*self.by_step.get(step.name, ())).run(task, step, sandbox, budget)


@pytest.mark.parametrize(
    ("strategy", "min_reward", "commands", "reward", "graded"),
    [
        ("mean", "", {"one": [A], "two": [B]}, 1.0, 2),
        ("mean", "", {"one": [A]}, 0.5, 2),
        ("final", "", {"two": [B]}, 1.0, 2),
        ("final", "", {"one": [A]}, 0.0, 2),
        ("mean", "min_reward = 1.0", {"two": [A, B]}, 0.0, 1),
        ("mean", "min_reward = 1.0", {"one": [A]}, 0.5, 2),
    ],
)
def test_steps(tmp_path, backend, strategy, min_reward, commands, reward, graded):
    trial = run_trial(make(tmp_path / "t", steps(strategy, min_reward)), ByStep(**commands), backend)
    assert (trial.outcome, trial.reward, len(trial.steps)) == ("graded", reward, graded), trial.message


def test_a_step_goes_on_where_the_last_one_stopped_but_without_its_processes(tmp_path, backend):
    look = "cat /app/a.txt; find /logs/verifier /tests -type f 2>/dev/null; ps -e 2>/dev/null | grep -c [s]leep; ls /proc/*/exe -l 2>/dev/null | grep -c /sleep"
    agent = ByStep(one=[A, "setsid sleep 1000 >/dev/null 2>&1 &"], two=[look])
    trial = run_trial(make(tmp_path / "t", steps()), agent, backend)
    lines = trial.episodes[1].turns[0].observation.split()
    assert lines[0] == "alpha"
    assert set(lines[1:]) == {"0"}
    assert run_trial(make(tmp_path / "u", steps()), Oracle(), backend).reward == 1.0


def test_a_steps_own_files_and_set_up(tmp_path, backend):
    extra = {
        "steps/two/workdir/setup.sh": "#!/bin/bash\ncp extra.txt b.txt\n",
        "steps/two/workdir/extra.txt": "beta\n",
    }
    trial = run_trial(make(tmp_path / "t", steps(**extra)), NoOp(), backend)
    assert [grade.reward for grade in trial.steps] == [0.0, 1.0]
    extra["steps/two/workdir/setup.sh"] = "#!/bin/bash\necho cannot; exit 9\n"
    task = make(tmp_path / "u", steps(**extra))
    trial = run_trial(task, NoOp(), backend)
    assert (trial.outcome, trial.reason) == ("task", "step-setup")
    assert "cannot" in trial.message
    assert run_trial(task, NoOp(), backend, admitted=True).reward == 0.0


def separate(**more: str) -> dict[str, str]:
    toml = HEAD.replace('"shared"', '"separate"').replace("[task]", 'artifacts = ["/app/out", "b.txt"]\n[task]')
    look = "for f in /app/out/a.txt /app/b.txt /app/c.txt /logs/artifacts/d.txt; do [ -e $f ] && echo saw $f; done\n"
    grade = (
        f"#!/bin/bash\n{look}[ -e /image-of-its-own ] && echo saw its image\ncat /app/out/a.txt > {R} || echo 0 > {R}\n"
    )
    files = {
        "task.toml": toml,
        "tests/Dockerfile": "FROM python:3.13-slim\nWORKDIR /app\nCOPY . /tests/\nRUN touch /image-of-its-own\n",
        "tests/test.sh": grade,
        "solution/solve.sh": "#!/bin/bash\nmkdir -p /app/out && echo 1 > /app/out/a.txt\n",
    }
    return {**files, **more}


def test_a_separate_verifier_sees_the_artifacts_and_nothing_else(tmp_path, backend):
    task = make(tmp_path / "t", separate())
    act = Commands(
        "mkdir out; echo 0.75 > out/a.txt; echo x > b.txt; echo x > c.txt; echo x > /logs/artifacts/d.txt",
        f"mkdir -p /logs/verifier; echo 1 > {R}; ln -s /etc/passwd out/link; touch /image-of-its-own",
    )
    trial = run_trial(task, act, backend)
    assert (trial.outcome, trial.reward) == ("graded", 0.75), trial.message
    seen = set(trial.steps[0].stdout.splitlines())
    assert seen == {"saw /app/out/a.txt", "saw /app/b.txt", "saw /logs/artifacts/d.txt", "saw its image"}
    assert run_trial(task, Oracle(), backend).reward == 1.0
    nothing = run_trial(task, NoOp(), backend)
    assert nothing.reward == 0.0
    assert "the artifact /app/out was not there" in nothing.steps[0].message


def test_a_separate_verifier_without_an_image_of_its_own_gets_the_environments(tmp_path, backend):
    files = separate()
    files["tests/Dockerfile"] = None
    trial = run_trial(make(tmp_path / "t", files), Commands("mkdir out; echo 0.5 > out/a.txt; echo x > c.txt"), backend)
    assert trial.reward == 0.5
    assert trial.steps[0].stdout == "saw /app/out/a.txt\n"


SERVER = "cd /app && (setsid python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &) ; for i in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.05; done"
ASK = """#!/bin/bash
if exec 3<>/dev/tcp/127.0.0.1/8123; then printf 'GET /hello.txt HTTP/1.0\\r\\n\\r\\n' >&3; grep -q hello <&3 && echo 1 > /logs/verifier/reward.txt; fi
[ -e /logs/verifier/reward.txt ] || echo 0 > /logs/verifier/reward.txt
"""


@pytest.mark.parametrize(("keep", "reward"), [("true", 1.0), ("false", 0.0)])
def test_services_live_on_only_where_the_task_says_so(tmp_path, backend, keep, reward):
    toml = HEAD + f"[metadata.workbench]\nkeep_services = {keep}\n"
    task = make(tmp_path / "t", {"task.toml": toml, "tests/test.sh": ASK})
    trial = run_trial(task, Commands(SERVER), backend)
    assert (trial.outcome, trial.reward) == ("graded", reward), trial.message


def test_a_living_service_cannot_write_the_reward(tmp_path, backend):
    toml = HEAD + "[metadata.workbench]\nkeep_services = true\n"
    race = f"(setsid bash -c 'while :; do mkdir -p /logs/verifier; echo 1 > {R}; echo beta > /app/b.txt; sleep 0.01; done' >/dev/null 2>&1 &)"
    slow = check("/app/b.txt", "never").replace("#!/bin/bash\n", "#!/bin/bash\nsleep 0.3\n")
    trial = run_trial(make(tmp_path / "t", {"task.toml": toml, "tests/test.sh": slow}), Commands(race), backend)
    assert (trial.outcome, trial.reward) == ("graded", 0.0), trial.message


def test_the_fraction_verifier_pays_for_each_test(tmp_path, backend):
    tests = """from pathlib import Path
import pytest

@pytest.mark.parametrize(("name", "word"), [("a", "alpha"), ("b", "beta"), ("c", "gamma"), ("hello", "hello")])
def test_file(name, word):
    assert Path(f"/app/{name}.txt").read_text().strip() == word
"""
    task = make(tmp_path / "t", {"tests/test.sh": VERIFIER_TEMPLATE, "tests/test_outputs.py": tests})
    trial = run_trial(task, Commands(A, B), backend)
    assert (trial.outcome, trial.reward, trial.passed) == ("graded", 0.75, False), trial.message
    assert sorted(trial.tests.values()) == ["failed", "passed", "passed", "passed"]
    # a program that the tests run writes over the reward and is gone: the report gives it away
    sly = tests + "\ndef test_program():\n    import subprocess\n    subprocess.run(['bash', '/app/p.sh'])\n"
    late = f"(while ! [ -s {R} ]; do sleep 0.001; done; echo 1 > {R}) >/dev/null 2>&1 &"
    task = make(tmp_path / "u", {"tests/test.sh": VERIFIER_TEMPLATE, "tests/test_outputs.py": sly})
    trial = run_trial(task, Commands(A, f"cat > /app/p.sh <<'EOF'\n{late}\nEOF"), backend, admitted=True)
    assert trial.reward != 1.0
