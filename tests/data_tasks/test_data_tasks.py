"""Every committed task earns what it declares: oracle 1, no-op and two partial solutions as in task.toml.

The declarations stand in [metadata.workbench]: `noop`, and `partials` (name → reward) for the scripts
`solution/partial/<name>.sh` (of each step, where a task has steps; a step without the script is left undone).
"""

from __future__ import annotations

import re
import shutil
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.agents.noop import NoOp
from workbench.agents.oracle import Oracle
from workbench.paths import TASKS
from workbench.sandboxes import SandboxError, get_backend
from workbench.tasks import load_task
from workbench.tasks.verifier import is_managed
from workbench.traces import Episode
from workbench.trials.run import run_trial

FOLDERS = {path.parent.name: path.parent for path in sorted(TASKS.glob("*/task.toml"))}
NAMES = list(FOLDERS)
ATTEMPTS = ("oracle", "noop", "a", "b")


class Partial:
    """Runs a partial solution from a place where the agent's own scripts could stand."""

    model = ""

    def __init__(self, which):
        self.which, self.name = which, f"partial-{which}"

    def run(self, task, step, sandbox, budget):
        script = step.solution / "partial" / f"{self.which}.sh"
        if script.is_file():
            sandbox.write("/tmp/partial.sh", script.read_bytes())
            done = sandbox.exec(["bash", "/tmp/partial.sh"], timeout=budget.seconds)
            assert done.ok, done.output
        return Episode(self.name, submitted=True, ended_by="submit", instruction=step.instruction)


def declared(name):
    own = tomllib.loads((FOLDERS[name] / "task.toml").read_text())["metadata"]["workbench"]
    return {"oracle": 1.0, "noop": own["noop"], **own["partials"]}


@pytest.fixture(scope="module")
def trials():
    """(task, attempt) → its trial, or future trial: all run at once, two at a time, on one back end."""
    try:
        backend = get_backend("bubblewrap")
        backend.capabilities()
    except (SandboxError, ImportError, OSError) as why:
        pytest.skip(f"bubblewrap cannot be used here: {why}")
    agents = {"oracle": Oracle(), "noop": NoOp(), "a": Partial("a"), "b": Partial("b")}
    with ThreadPoolExecutor(2) as pool:
        yield {(n, who): pool.submit(run_trial, FOLDERS[n], agents[who], backend) for n in NAMES for who in ATTEMPTS}
        pool.shutdown(cancel_futures=True)


def test_there_are_enough_of_them():
    assert len(NAMES) >= 12
    categories = {tomllib.loads((f / "task.toml").read_text())["metadata"]["category"] for f in FOLDERS.values()}
    assert len(categories) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_files(name, tmp_path):
    task = load_task(FOLDERS[name])
    assert task.name == f"workbench/{name}"
    assert task.network == task.verifier_network == "no-network"
    for step in task.steps:
        assert len(step.instruction.split()) > 40
        grader = step.tests / "grade.py"
        assert grader.is_file() or is_managed(step.tests / "test.sh"), "test.sh is not the fraction verifier"
    copy = shutil.copytree(FOLDERS[name], tmp_path / name)
    assert load_task(copy).digest == task.digest
    (copy / "environment" / "Dockerfile").open("a").write("# changed\n")
    assert load_task(copy).digest != task.digest


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_tests_or_solution_is_in_the_environment(name):
    """No COPY from outside of environment/, and no file there that names where the answers are."""
    environment = FOLDERS[name] / "environment"
    lines = (environment / "Dockerfile").read_text().splitlines()
    assert lines[0] == "FROM python:3.12-slim"
    assert all(
        re.match(r"(FROM|WORKDIR|COPY|RUN) (?!.*(\.\./|\b(pip|apt|apt-get|curl)\b))", line) for line in lines if line
    )
    solutions = [line.strip() for s in FOLDERS[name].rglob("solve.sh") for line in s.read_text().splitlines()]
    shipped = "\n".join(p.read_text(errors="replace") for p in environment.rglob("*.py"))
    own = [line for line in solutions if len(line) > 60 and line in shipped]
    assert own == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_declared_leaves_room(name):
    rewards = declared(name)
    assert rewards["noop"] < 0.5
    assert set(rewards) == set(ATTEMPTS)
    assert all(rewards["noop"] < rewards[p] < 1 for p in "ab")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_reward(trials, name, attempt):
    trial = trials[name, attempt].result()
    said = "\n".join(grade.stdout[-3000:] for grade in trial.steps)
    assert trial.outcome == "graded", f"{trial.reason}: {trial.message}\n{said}"
    assert trial.reward == pytest.approx(declared(name)[attempt], abs=1e-9), said
    assert trial.tests, "no test is named in the report"


def test_the_field_format_s_own_lint():
    lint = pytest.importorskip("harbor.lint.task", reason="harbor is not installed")
    # A digest cannot be pinned where base images are made locally; the workbench grades apart from the agent by itself.
    accepted = {"unpinned-image", "root-agent", "shared-verifier"}
    found = [
        (n, f.rule.value, f.message) for n in NAMES for f in lint.lint_task(FOLDERS[n]) if f.rule.value not in accepted
    ]
    assert found == []
