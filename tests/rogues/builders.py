"""Makes small Harbor tasks from pieces, so that no hostile file has to be committed.

`write_task` writes one sound task (four numbers to compute, a quarter of the reward each) and lays the pieces of a
case over it: bytes or text replace a file, None takes it away, and the classes below stand for what is not a plain file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Link:
    """A symbolic link to `target`, as written."""

    target: str


@dataclass(frozen=True)
class Sparse:
    """A file of `size` bytes that takes no room."""

    size: int


@dataclass(frozen=True)
class Mode:
    """A file with other permission bits than 0644 (0755 for *.sh)."""

    data: str
    mode: int


class Fifo:
    """A named pipe: whoever opens it waits for ever."""


class Socket:
    """A socket's file."""


class Folder:
    """An empty folder where a file should be."""


Piece = str | bytes | None | Link | Sparse | Mode | Fifo | Socket | Folder
Pieces = Mapping[str, Piece]

DOCKERFILE = "FROM python:3.13-slim\nWORKDIR /app\nCOPY numbers.txt /app/numbers.txt\n"
INSTRUCTION = """# Four numbers

`/app/numbers.txt` holds one whole number a line. Write their count to `/app/count.txt`, their sum to `/app/sum.txt`,
the largest to `/app/max.txt` and the smallest to `/app/min.txt`: digits and nothing else in each file.
"""
SOLVE = """#!/bin/bash
set -e
cd /app
wc -l < numbers.txt | tr -d ' ' > count.txt
awk '{ s += $1 } END { print s }' numbers.txt > sum.txt
sort -n numbers.txt | tail -1 > max.txt
sort -n numbers.txt | head -1 > min.txt
"""
# One quarter of SOLVE: hostile agents do this much honestly, so that a trick that works, a trick that does not and a
# grader that fell over earn three different rewards (1, 0.25 and 0).
QUARTER = "echo 5 > /app/count.txt"
TESTS = '''"""Each file holds the right number."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(("name", "number"), [("count", 5), ("sum", 93), ("max", 41), ("min", 3)])
def test_number(name, number):
    assert int(Path(f"/app/{name}.txt").read_text()) == number
'''
# A plug-in, conftest.py or sitecustomize.py of this text makes every test pass where it is loaded.
FORCE_PASS = """import atexit, os, sys
def pytest_runtest_call(item):
    item.runtest = lambda: None
    item.obj = lambda *a, **k: None
def pytest_pyfunc_call(pyfuncitem):
    return True
def _reward():
    open("/logs/verifier/reward.txt", "w").write("1")
if "/tests" in " ".join(sys.orig_argv):
    atexit.register(_reward)
"""
# The same four checks without pytest: a tenth of the time, and a place to write other rewards into.
SHELL_TESTS = """#!/bin/bash
n=0
check() { [ -f "/app/$1.txt" ] && [ "$(head -c 20 "/app/$1.txt" 2>/dev/null)" = "$2" ] && n=$((n + 1)); }
check count 5; check sum 93; check max 41; check min 3
rewards=(0 0.25 0.5 0.75 1)
reward=${rewards[$n]}
echo "passed $n of 4"
"""
WRITE = 'echo "$reward" > /logs/verifier/reward.txt\n'
TOML = """schema_version = "1.4"

[task]
name = "rogues/{name}"
description = "Four numbers of a short list"

[metadata]
difficulty = "easy"

[agent]
timeout_sec = {agent_timeout}

[verifier]
timeout_sec = {verifier_timeout}
environment_mode = "shared"

[environment]
network_mode = "no-network"
build_timeout_sec = {build_timeout}
cpus = 1
memory_mb = 256
storage_mb = 64
"""


def toml(
    name: str = "sound", *, agent_timeout: float = 20.0, verifier_timeout: float = 15.0, build_timeout: float = 15.0
) -> str:
    """task.toml of the sound task; times in seconds."""
    times = {"agent_timeout": agent_timeout, "verifier_timeout": verifier_timeout, "build_timeout": build_timeout}
    return TOML.format(name=name, **times)


def sound(name: str = "sound", **times: float) -> dict[str, Piece]:
    """Every file of the sound task, with the quick shell verifier."""
    return {
        "task.toml": toml(name, **times),
        "instruction.md": INSTRUCTION,
        "environment/Dockerfile": DOCKERFILE,
        "environment/numbers.txt": "7\n41\n3\n12\n30\n",
        "solution/solve.sh": SOLVE,
        "tests/test.sh": SHELL_TESTS + WRITE,
    }


def with_pytest() -> dict[str, Piece]:
    """Pieces that put the project's own fraction verifier (pytest) in the place of the shell one."""
    from workbench.tasks.verifier import VERIFIER_TEMPLATE

    return {"tests/test.sh": VERIFIER_TEMPLATE, "tests/test_outputs.py": TESTS}


def write_task(folder: Path, pieces: Pieces = MappingProxyType({}), **times: float) -> Path:
    """The sound task at `folder` with `pieces` laid over it. Returns `folder`."""
    for name, piece in {**sound(folder.name, **times), **pieces}.items():
        if piece is not None:
            put(folder / name, piece)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def put(path: Path, piece: Piece) -> None:
    """Write one piece at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match piece:
        case Link(target):
            path.symlink_to(target)
        case Sparse(size):
            with path.open("wb") as file:
                file.truncate(size)
        case Fifo():
            os.mkfifo(path)
        case Socket():
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case Folder():
            path.mkdir()
        case Mode(data, mode):
            path.write_text(data)
            path.chmod(mode)
        case _:
            path.write_bytes(piece.encode() if isinstance(piece, str) else piece)
            path.chmod(0o755 if path.suffix == ".sh" else 0o644)


def verifier(body: str, *, first: str = "") -> str:
    """A tests/test.sh that runs `first`, computes $reward as the sound one does, then runs `body`."""
    shebang, _, rest = SHELL_TESTS.partition("\n")
    return f"{shebang}\n{first}\n{rest}{body}\n"


def writes(printf: str, file: str = "reward.txt") -> dict[str, Piece]:
    """A verifier that computes its reward honestly, and writes `printf` (a shell word) when that is 1, else 0."""
    line = f'[ "$reward" = 1 ] && printf {printf} > /logs/verifier/{file} || echo 0 > /logs/verifier/reward.txt'
    return {"tests/test.sh": verifier(line)}


@dataclass(frozen=True)
class TaskCase:
    """A task that goes through admission.

    kind: the fault in one sentence. source: the public report of the kind, or "ours". make: its pieces, or a function
    that writes the whole folder. stage: the last one reached. reasons: the kinds that it may be refused for, each reason
    given being one of them (none: the task is sound in spite of looks). rewards: agent → every reward it must have got. report: names that the
    report must hold and that must not be empty. times: agent_timeout, verifier_timeout, build_timeout (seconds).
    """

    name: str
    kind: str
    source: str
    make: Pieces | Callable[[Path], Path]
    stage: str = "files"
    reasons: tuple[str, ...] = ()
    message: str = ""  # a word that the message must have, so that the author knows what to mend
    rewards: Mapping[str, float] = field(default_factory=dict)
    report: tuple[str, ...] = ()
    times: Mapping[str, float] = field(default_factory=dict)
    slow: bool = False

    @property
    def valid(self) -> bool:
        return not self.reasons

    def write(self, folder: Path) -> Path:
        if callable(self.make):
            return self.make(folder)
        return write_task(folder, self.make, **self.times)


@dataclass(frozen=True)
class AgentCase:
    """An agent that acts on a sound task by shell commands.

    commands: what it runs, one exec each. reward: what it must get (0.25 for its honest quarter). outcome, ended_by,
    reason: of the trial. pytest: grade with the fraction verifier, not the shell one. task: pieces over the sound task.
    seconds: budget of the episode; command_seconds: of one command.
    """

    name: str
    kind: str
    source: str
    commands: tuple[str, ...]
    reward: float | None = 0.25
    outcome: str = "graded"
    reason: str = ""
    ended_by: str = "submit"
    pytest: bool = False
    task: Pieces = field(default_factory=dict)
    seconds: float = 30.0
    command_seconds: float = 10.0
    times: Mapping[str, float] = field(default_factory=dict)
    slow: bool = False
