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

from workbench.cli.parser import build_parser

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
