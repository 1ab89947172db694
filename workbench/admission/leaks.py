"""Can the agent read the solution or the tests? Looked up in the build context and in a running, untouched sandbox.

A whole copy is a reason for refusal (a task's tests and solution never belong in its image). Single long lines are
reported: an environment may rightly hold a line that its solution repeats. The look into the sandbox uses the image's
own `find` and `grep` and leaves out `/usr` (but for `/usr/local/bin` and `/usr/src`) and the package manager's files, so it finds careless copies, and
not what a task's author hides on purpose (an archive, an encoding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.agents import Budget
from workbench.agents.oracle import Oracle
from workbench.sandboxes import Backend, Image, Sandbox
from workbench.tasks import Step, Task
from workbench.tasks.verifier import is_managed
from workbench.traces import Episode
from workbench.trials.setting import agent_limits

LONG = 40  # characters of a line that is unlikely to stand somewhere by chance
SMALLEST = 40  # bytes of a file whose copy means something (not an empty __init__.py)
MAX_FILE = 1 << 20
MAX_PROBES, MAX_HITS = 60, 40

_FIND = r"""
probes=$(cat)
for folder in /*; do
  case $folder in /usr|/proc|/sys|/dev|/lib*|/bin|/sbin|/boot|/nix) ;; *) set -- "$@" "$folder" ;; esac
done
for folder in /usr/local/bin /usr/src; do [ -d "$folder" ] && set -- "$@" "$folder"; done
find "$@" -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt \) -prune -o \
  -type f -size -2048 -exec grep -lFI -e "$probes" {} + 2>/dev/null | head -n 40
"""


@dataclass(frozen=True)
class Leaks:
    """copies: visible path → the file of the task that it repeats whole. lines: visible path → how many of the long
    lines it holds (only files that are no copies). looked: False when the sandbox could not be searched."""

    copies: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    looked: bool = False

    @property
    def solution(self) -> dict[str, str]:
        return {path: name for path, name in self.copies.items() if "solution/" in name}

    @property
    def tests(self) -> dict[str, str]:
        return {path: name for path, name in self.copies.items() if "solution/" not in name}


class Secrets:
    """The files of a task that an agent must not see, and how to recognise them."""

    def __init__(self, task: Task):
        self.files = {path.relative_to(task.path).as_posix(): _text(path) for path in _secret_files(task)}
        solution = [text for name, text in self.files.items() if "solution/" in name]
        self.long = {line for text in solution for line in _lines(text) if len(line) >= LONG}

    def probes(self) -> list[str]:
        """Lines to search for: the long ones, and the two longest of every file."""
        best = [line for text in self.files.values() for line in sorted(_lines(text), key=len)[-2:] if len(line) > 11]
        return list(dict.fromkeys([*sorted(self.long, key=len, reverse=True), *best]))[:MAX_PROBES]

    def match(self, text: str) -> tuple[str, int]:
        """(the file that `text` holds whole, "" when none; how many of the solution's long lines it has)."""
        there = set(_lines(text))
        whole = next((name for name, own in self.files.items() if _holds(name, own, text, there)), "")
        return whole, len(self.long & there)


def look(task: Task, sandbox: Sandbox) -> Leaks:
    """Search the build context, then an untouched sandbox of the task."""
    secrets = Secrets(task)
    copies: dict[str, str] = {}
    lines: dict[str, int] = {}

    def note(where: str, text: str) -> None:
        whole, count = secrets.match(text)
        if whole:
            copies[where] = whole
        elif count:
            lines[where] = count

    for path in sorted(task.environment.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE:
            note(path.relative_to(task.path).as_posix(), _text(path))
    probes = secrets.probes()
    if not probes:
        return Leaks(copies, lines, True)
    result = sandbox.exec(["/bin/bash", "-c", _FIND], cwd="/", stdin="\n".join(probes).encode(), timeout=30)
    for name in result.stdout.splitlines()[:MAX_HITS]:
        try:
            note(name, sandbox.read(name, max_bytes=MAX_FILE).decode("utf-8", "replace"))
        except (FileNotFoundError, ValueError):
            continue
    return Leaks(copies, lines, result.killed_by is None)


class LookingOracle(Oracle):
    """The oracle, which looks for leaks in its untouched sandbox before it acts. leaks: None until it has looked (also when
    its trial was read back from a run's journal)."""

    def __init__(self) -> None:
        super().__init__()
        self.leaks: Leaks | None = None

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        if self.leaks is None:
            self.leaks = look(task, sandbox)
        return super().run(task, step, sandbox, budget)


def look_alone(task: Task, backend: Backend, image: Image) -> Leaks:
    """The same in a sandbox of its own."""
    sandbox = backend.start(image, limits=agent_limits(task, None))
    try:
        return look(task, sandbox)
    finally:
        sandbox.stop()


def _holds(name: str, own: str, text: str, lines: set[str]) -> bool:
    """A copy of any file; for a shell script also a file with all its lines, however they are arranged. (Not for other
    files: a repaired program whose repair is to take a line out has no line that the broken one lacks.)"""
    if own.strip() == text.strip():
        return True
    needed = set(_lines(own))
    return name.endswith(".sh") and len(needed) >= 3 and lines >= needed


def _secret_files(task: Task) -> list[Path]:
    """All of a solution; of the tests only `*.sh` and `test_*.py`, for a test may bring its own copy of an input or a
    module of the environment's. Our public fraction verifier is no secret."""
    found = []
    for step in task.steps:
        solution = sorted(step.solution.rglob("*")) if step.solution is not None else []
        tests = (
            [*sorted(step.tests.rglob("*.sh")), *sorted(step.tests.rglob("test_*.py"))] if step.tests.is_dir() else []
        )
        found += [path for path in [*solution, *tests] if path.is_file() and not path.is_symlink()]
    sized = [path for path in dict.fromkeys(found) if SMALLEST <= path.stat().st_size <= MAX_FILE]
    return [path for path in sized if not is_managed(path) and _lines(_text(path))]


def _lines(text: str) -> list[str]:
    """The lines that say something: no blanks, no comments, no shell or Python boilerplate, no lone words of syntax."""
    stripped = (line.strip() for line in text.splitlines())
    dull = ("#", "import ", "from ", "set -", "cd ", '"""')
    return [line for line in stripped if len(line) > 5 and not line.startswith(dull)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
