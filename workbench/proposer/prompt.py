"""The `prompt` method: one answer, files parsed out of it, nothing executed (AutoEnvScaling §4.1, after Tmax).

With `feedback` the same call is the first half of `prompt + feedback`: the gate's reasons go back with the question.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path, PurePosixPath

from workbench.agents.turns import turn_of
from workbench.models import Message, Model, Sampling
from workbench.proposer import Assignment, Proposal
from workbench.traces import Episode

FILE = re.compile(r'<file path="([^"\n]{1,200})">\n(.*?)\n?</file>', re.DOTALL)
TOP = {"instruction.md", "task.toml", "README.md", "environment", "solution", "tests", "steps"}
EXECUTABLE = {"solve.sh", "test.sh"}
MAX_BYTES = 4 << 20
SHOWN_FILE_BYTES, SHOWN_BYTES = 8_000, 60_000  # of the parent, in the question

SYSTEM = """You design one training environment for a terminal agent: a Harbor task directory.
The solver sees only instruction.md and works in the container that environment/Dockerfile builds, without network.
solution/solve.sh is your reference solution: after it runs, every test must pass. With nothing done, fewer than half may pass.
tests/test.sh writes the fraction of passed tests to /logs/verifier/reward.txt; tests/test_outputs.py holds independent,
deterministic pytest checks of the files and programs that the instruction asks for, several milestones rather than one.
Only Python's standard library, bash and coreutils are there. Aim at a task that the solver passes about half of the time.

Answer with every file of the task, each exactly like this, and nothing else after the last one:
<file path="instruction.md">
...
</file>
Needed: instruction.md, task.toml, environment/Dockerfile, solution/solve.sh, tests/test.sh, tests/test_outputs.py."""


def parse_files(answer: str) -> tuple[dict[str, str], str]:
    """(path → text, "" or what is wrong). Only relative paths below a task's own names; later duplicates are refused."""
    files: dict[str, str] = {}
    for name, text in FILE.findall(answer):
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or parts[0] not in TOP or "\\" in name or "\0" in name:
            return {}, f"file path {name!r} is not allowed: use relative paths below {', '.join(sorted(TOP))}"
        if name in files:
            return {}, f"file {name!r} is given twice"
        files[name] = text + "\n"
    if not files:
        return {}, 'no <file path="..."> block was found in the answer'
    if sum(len(t) for t in files.values()) > MAX_BYTES:
        return {}, f"the files are larger than {MAX_BYTES} characters together"
    return files, ""


def write_files(files: dict[str, str], target: Path) -> None:
    """Write a parsed answer as a new directory; scripts that must run get their x bit."""
    if target.exists():
        shutil.rmtree(target)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if path.name in EXECUTABLE else 0o644)


def parent_files(parent: Path) -> str:
    """The parent's text files in the answer's own format: the task's words and programs first, data after, all capped."""
    files = [p for p in parent.rglob("*") if p.is_file() and not p.is_symlink()]
    files.sort(key=lambda p: (p.relative_to(parent).parts[0] == "environment" and p.name != "Dockerfile", str(p)))
    shown, left = [], SHOWN_BYTES
    for path in files:
        with path.open("rb") as file:
            data = file.read(min(SHOWN_FILE_BYTES, left))
        if b"\0" in data or not left:
            continue
        left -= len(data)
        shown.append(f'<file path="{path.relative_to(parent)}">\n{data.decode(errors="replace")}\n</file>')
    return "\n".join(shown)


def question(assignment: Assignment, feedback: str, last: str = "") -> str:
    """The user message: the assignment, the parent's files, and why the last version was refused (`last`: its files)."""
    way = (
        "a simpler variant"
        if assignment.direction == "simpler"
        else "a harder variant (longer horizon or one more skill)"
    )
    way += f" (this time: {assignment.way})" if assignment.way else ""
    quoted = f"An attempt that shows it said: {assignment.quote}\n" if assignment.quote else ""
    ask = (
        f"Parent environment: {assignment.parent}\nSolver's mean reward on it: {assignment.pass_rate:.2f}\n"
        f"Most common failure: {assignment.failure}\n{quoted}Build {way}; do not repeat the parent.\n\n"
        f"The parent's files:\n{parent_files(Path(assignment.parent_path))}"
    )
    shown = f"\n\nYour last version:\n{last}" if last else ""
    return ask + (f"{shown}\n\nYour last version was refused:\n{feedback}" if feedback else "")


def last_files(target: Path) -> str:
    """The files of the version that a revision begins with, when it lies at `target` (workbench.proposer.revise)."""
    return parent_files(target) if target.is_dir() else ""


class PromptProposer:
    """Any model as a one-shot proposer. sampling: how it answers (16,384 tokens unless said)."""

    def __init__(self, model: Model, sampling: Sampling | None = None):
        self.model, self.sampling = model, sampling or Sampling(max_tokens=16_384)
        self.name = f"prompt:{model.name}"

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        start = time.monotonic()
        messages: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question(assignment, feedback, last_files(target) if feedback else "")},
        ]
        sampling = Sampling(**{**self.sampling.__dict__, "seed": seed})
        reply = self.model.reply(messages, sampling)
        files, fault = parse_files(reply.text)
        if files:
            write_files(files, target)
        elif reply.finish == "length":
            fault = f"the answer was cut at {reply.completion_tokens} tokens before a whole file was given"
        turn = turn_of(reply, observation=fault)
        episode = Episode(self.name, (turn,), self.model.name, bool(files), "submit" if files else "malformed", system=SYSTEM,
                          instruction=messages[1]["content"])  # fmt: skip
        return Proposal(
            assignment.id,
            self.name,
            str(target) if files else None,
            fault,
            time.monotonic() - start,
            reply.usd,
            1,
            episode,
        )
