"""Each command in the documentation is run, or, where a test cannot (a key, hours, a person), at least understood by the program.

`PLANS` says which: the first pattern that matches decides. A command that no pattern knows fails, so a new page can't show one that
nobody tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.endpoint import Endpoint, answer
from workbench.cli.parser import build_parser
from workbench.runs.grid import points
from workbench.runs.notebooks import resolve_notebook
from workbench.sandboxes import SandboxError, get_backend
from workbench.training.arms import get_arm

from .shown import ROOT, Shown, commands

BIN = Path(sys.executable).parent
LABELS = ROOT / "data" / "labels" / "labels"
SAMPLES = ROOT / "tests" / "traces" / "samples"

# pattern -> how it is tried: "run", "parse" (with the reason why it is not run), or "target" (of the Makefile)
PLANS: tuple[tuple[str, str], ...] = (
    (r"make (\S+)", "target"),
    (r"workbench runs (live|compare|open)", "parse: needs runs; tests/runs and tests/report make some"),
    (r"workbench (task new|check|runs\b|traces|worlds (list|new|export|coverage)|agents list)", "run"),
    (r"workbench validate", "run"),
    (r"workbench calibrate", "parse: the embedded model takes a minute; tests/cli runs it"),
    (r"workbench (run|resume)", "parse: notebooks are run by tests/notebooks, tests/runs and nbval"),
    (r"workbench train-plan", "parse: reads model shapes from transformers, half a minute; tests/training runs it"),
    (r"workbench worlds (gates|corpus|overlap)", "parse: minutes; tests/worlds runs them on small choices"),
    (r"workbench agents install", "parse: hundreds of megabytes; tests/agents installs them"),
    (r"workbench clean", "parse: would take what other tests of this machine left"),
    (r"python -m benchmarks", "parse: benchmarks take minutes to hours"),
    (r"python -m workbench\.", "parse: needs several processes; tests/training launches it"),
    (r"python -m (pytest|vllm|pip|build)", "parse: not ours"),
    (r"python \S+\.py", "parse: named file"),
    (r"(harbor|jupyter) ", "parse: not ours"),
    (r"sh scripts/", "parse: installs software; scripts/test.sh runs it"),
)
FILLED: dict[str, Callable[[], str]] = {
    "SESSION…": lambda: str(SAMPLES / "codex-rollout.jsonl"), "SESSION": lambda: str(SAMPLES / "codex-rollout.jsonl"),
    "FILE…": lambda: str(SAMPLES / "codex-rollout.jsonl"), "FILE": lambda: str(SAMPLES / "codex-rollout.jsonl"),
    "TEXT": lambda: "ls", "a.jsonl": lambda: str(LABELS / "claude-a.jsonl"), "b.jsonl": lambda: str(LABELS / "claude-c.jsonl"),
    "DIR": lambda: "imported", "FILE.json": lambda: "out.json",
}  # fmt: skip
KNOWN = commands()


def plain(text: str) -> str:
    return re.sub(r"\.venv/bin/|^([A-Z_]+=\S+ )+", "", text)


def find_backend(name: str) -> bool:
    try:
        get_backend(name).capabilities()
    except SandboxError:
        return False
    return True


def plan(shown: Shown) -> str:
    return next((how for pattern, how in PLANS if re.match(pattern, plain(shown.text))), "unknown")


def filled(shown: Shown) -> list[str]:
    return [FILLED[word]() if word in FILLED else word for word in shown.words]


def test_there_are_commands_and_each_is_known():
    assert len(KNOWN) > 30
    assert not [str(shown) for shown in KNOWN if plan(shown) == "unknown"]


@pytest.mark.parametrize("shown", [s for s in KNOWN if "workbench " in s.text and "python" not in s.text], ids=str)
def test_the_program_takes_it(shown, tmp_path):
    words = filled(shown)
    build_parser().parse_args(words[next(n for n, w in enumerate(words) if w.endswith("workbench")) + 1 :])


@pytest.mark.parametrize("shown", [s for s in KNOWN if plain(s.text).startswith("workbench run ")], ids=str)
def test_the_notebook_has_these_parameters(shown):
    """Names, types and profiles; and arms, which are checked by the notebook only."""
    words = shown.words
    asked = build_parser().parse_args(words[words.index(next(w for w in words if w.endswith("workbench"))) + 1 :])
    grid, given = {name: values for name, *values in asked.grid}, dict(asked.parameters)
    assert points(resolve_notebook(asked.notebook), grid, given)
    for arm in [*grid.get("arm", []), *([given["arm"]] if "arm" in given else [])]:
        assert get_arm(arm)
    fixed = {"solver", "proposer"} & given.keys() and "40_flywheel" in asked.notebook
    assert not fixed or given.get("learn") == "false", "a flywheel that learns asks neither"


@pytest.mark.parametrize("shown", [s for s in KNOWN if plan(s) == "target"], ids=str)
def test_the_makefile_has_it(shown):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert {word for word in shown.words[1:] if "=" not in word} <= set(targets)


@pytest.mark.parametrize("shown", [s for s in KNOWN if re.match(r"(python|sh) \S+\.(py|sh)", plain(s.text))], ids=str)
def test_the_named_file_is_there(shown):
    assert (ROOT / plain(shown.text).split()[1]).is_file()


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A working folder in which a reader follows the pages from top to bottom."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("a", "b"):
        shutil.copy(SAMPLES / "codex-rollout.jsonl", folder / f"{name}-session.jsonl")
    return folder


@pytest.mark.parametrize("shown", [s for s in KNOWN if plan(s) == "run"], ids=str)
def test_it_runs(shown, desk, tmp_path_factory):
    """In the order of the pages, in one folder; a command that makes something anew may find it made by an earlier page."""
    words = filled(shown)
    if "docker" in words and not find_backend("docker"):
        pytest.skip("no Docker engine answers here (scripts/docker_engine.sh start)")
    at = next(n for n, word in enumerate(words) if word.endswith("workbench"))
    where = desk
    if "new" in words[at : at + 3] and any((desk / word).exists() for word in words):
        where = tmp_path_factory.mktemp("again")
    if "agreement" in words or "--labels" in words or "coverage" in words:
        where = ROOT if "coverage" not in words else where
    if "coverage" in words:
        made = subprocess.run([BIN / "workbench", "worlds", "corpus", str(desk / "corpus"), "--size", "3", "--tier", "micro"],
                              cwd=desk, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
        assert made.returncode == 0, made.stderr
    env = {**os.environ, "WORKBENCH_GENERATORS": str(desk / "generators")}  # nothing is made in the package
    done = subprocess.run(
        [BIN / "workbench", *words[at + 1 :]],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=env,
    )
    assert done.returncode == 0, f"{shown}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"


@pytest.mark.parametrize("shown", [s for s in KNOWN if "_API_BASE=" in s.text], ids=str)
def test_a_server_of_ones_own_is_asked(shown, tmp_path):
    """The command as it stands there, but for the server's port and fewer attempts."""
    subprocess.run([BIN / "workbench", "task", "new", "my-task"], cwd=tmp_path, check=True, capture_output=True)
    settings = dict(word.split("=", 1) for word in shown.words if re.match(r"[A-Z_]+=", word))
    command = plain(shown.text).split()[1:]
    with Endpoint(answer("```bash\ncat orders.csv\n```"), answer("```bash\nsubmit\n```")) as server:
        env = {**os.environ, **{k: server.url if "://" in v else v for k, v in settings.items()}}
        env["WORKBENCH_RESULTS"] = str(tmp_path / "results")
        done = subprocess.run([BIN / "workbench", *command, "--rollouts", "2", "--more", "1", "--turns", "2", "--json"], cwd=tmp_path,
                              env=env, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 1, done.stderr  # nothing was solved: a verdict, not a failure to ask
    assert "too-hard" in done.stdout
    assert {r["model"] for r in server.requests} == {"policy"}
