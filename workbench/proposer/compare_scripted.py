"""A scripted designer of known validity: it answers each method in that method's own form, and its faults are counted beforehand.

No model. It makes the program proposer's small file tasks; in a stated share of first drafts it puts one real fault (broken
task.toml, a build that fails, a reference solution that does nothing, tests that pass untouched). Where its faults are shown
to it, it repairs them with a stated probability an attempt. What must come out can be computed without running anything
(`known`), so that a comparison can be checked against it. Everything is drawn from the assignment's own words.
"""

from __future__ import annotations

import hashlib
import random
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.models import Message, Reply, Sampling
from workbench.proposer import Assignment
from workbench.proposer.program import draw, write_task
from workbench.runs.temporary import prefix

FAULTS = ("files", "build", "oracle-fails", "noop-passes")
# What a log says of each fault, in validate's own words.
SIGNS = {
    "files": "bad-toml",
    "build": "task: build:",
    "oracle-fails": "reward=0 (oracle",
    "noop-passes": "below 0.5): NOT OK",
}
_COUNT = (
    "grep -ho "
    + " ".join(f"-e {shlex.quote(sign)}" for sign in SIGNS.values())
    + " past_rewards/logs/*.json | sort | uniq -c"
)
VALIDATIONS = 4  # at most, in a harness episode
LESSON = "LESSON"
_PARENT = re.compile(r"Parent environment: `?([^`\s]+)")
_FAILURE = re.compile(r"ost common failure: (.*)")
_DIRECTION = re.compile(r"Build a (simpler|harder) variant([^\n]*)")
_WAY = re.compile(r"\(this time: ([^)]*)\)")
_ENV = re.compile(r"Write the finished task to `([^`]+?)/?`")


@dataclass(frozen=True)
class Designer:
    """faults: share of first drafts with a fault. repairs: probability that a shown fault is gone in the next version."""

    faults: float
    repairs: float = 1.0
    seed: int = 0

    @property
    def name(self) -> str:
        return f"designer:{self.faults:g}:{self.repairs:g}"

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        text = self._answer([*messages])
        words = sum(len(m["content"].split()) for m in messages)
        return Reply(text, prompt_tokens=words, completion_tokens=len(text.split()), usd=0.0)

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0

    def known(self, assignment: Assignment, method: str, *, rounds: int = 1, self_check: bool = True) -> bool:
        """Whether the first submission must be valid_paper. rounds: answers of the feedback method."""
        key = _key(assignment.parent, assignment.failure, assignment.direction, assignment.way)
        shown = {"prompt": 0, "feedback": rounds - 1, "harness": VALIDATIONS - 1 if self_check else 0}[method]
        return self.fault(key, shown) == ""

    def fault(self, key: str, shown: int) -> str:
        """The fault of a version after its fault was shown `shown` times; "" for none."""
        rng = random.Random(f"designer {self.name} {self.seed} {key}")
        kind = rng.choice(FAULTS) if rng.random() < self.faults else ""
        return "" if any(rng.random() < self.repairs for _ in range(shown)) else kind

    def files(self, key: str, fault: str) -> dict[str, str]:
        """The task's files."""
        rng = random.Random(f"designer task {key}")
        rung = rng.randrange(0, 3) if " simpler " in key else rng.randrange(2, 6)
        with tempfile.TemporaryDirectory(prefix=prefix("designer")) as home:
            name = "designed-" + hashlib.sha256(key.encode()).hexdigest()[:8]
            write_task(draw(rung, rng.randrange(10**6)), Path(home) / name, name)
            paths = [p for p in sorted((Path(home) / name).rglob("*")) if p.is_file()]
            files = {p.relative_to(Path(home) / name).as_posix(): p.read_text() for p in paths}
        return _broken(files, fault)

    def _answer(self, messages: list[Message]) -> str:
        asked = messages[1]["content"] if len(messages) > 1 else ""
        if "# Between two rounds" in asked:
            return _improve(messages)
        key = key_of(asked)
        if '<file path="' in messages[0]["content"]:
            shown = sum(m["role"] == "assistant" for m in messages) + asked.count("Your last version was refused")
            return _blocks(self.files(key, self.fault(key, shown)))
        return self._act(messages, asked, key)

    def _act(self, messages: list[Message], asked: str, key: str) -> str:
        """One turn of a harness episode: look, write, validate, repair, submit."""
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        if not said:
            return _turn("I read my notes first.", "cat memory/*.md; ls past_environments past_trajectories")
        env = found[1] if (found := _ENV.search(asked)) else "/workspace/env_000"
        checks = "- validate:" in asked
        notes = next((m["content"] for m in messages[2:] if m["role"] == "user"), "")
        known = set(re.findall(rf"{LESSON} ([a-z-]+)", notes))
        tried = sum("validate.py" in text for text in said)
        if (tried and "NOT-IN-ORDER" not in messages[-1]["content"]) or (len(said) > 1 and not checks):
            return _turn("Done.", "submit")
        if tried >= VALIDATIONS:
            return _turn("I cannot repair it.", "submit")
        fault = self.fault(key, tried + asked.count("Your last version was refused"))
        return _turn("I write it and try it.", _write(self.files(key, "" if fault in known else fault), env, checks))


def key_of(question: str) -> str:
    """What a question says of its assignment, the same in every method's form."""
    parent, failure, asked = _PARENT.search(question), _FAILURE.search(question), _DIRECTION.search(question)
    if parent is None or failure is None or asked is None:
        return _key("unknown", "", "harder", "")
    way = _WAY.search(asked[2])
    return _key(parent[1], failure[1], asked[1], way[1] if way else "")


def _key(parent: str, failure: str, direction: str, way: str) -> str:
    return f"{parent} {direction} {way} {' '.join(failure.split())}"


def _broken(files: dict[str, str], fault: str) -> dict[str, str]:
    if fault == "files":
        files["task.toml"] = "schema_version = \n" + files["task.toml"]
    elif fault == "build":
        files["environment/Dockerfile"] += "COPY nowhere.csv /app/\n"
    elif fault == "oracle-fails":
        files["solution/solve.sh"] = "#!/bin/bash\ntrue\n"
    elif fault == "noop-passes":
        files["tests/test.sh"] = "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"
    return files


def _blocks(files: dict[str, str]) -> str:
    return "\n".join(f'<file path="{name}">\n{text.removesuffix(chr(10))}\n</file>' for name, text in files.items())


def _write(files: dict[str, str], env: str, checks: bool) -> str:
    lines = [f"rm -rf {env}"]
    for name, text in files.items():
        folder = f"{env}/{name}".rpartition("/")[0]
        mode = " && chmod 755 " + f"{env}/{name}" if name.endswith(".sh") else ""
        lines.append(f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {env}/{name}{mode}")
    if checks:
        tools = " && ".join(f"python3 /opt/tools/validate.py {env} {which}" for which in ("oracle", "noop"))
        lines.append(f"{tools} || echo NOT-IN-ORDER")
    return "\n".join(lines)


def _improve(messages: list[Message]) -> str:
    """Between two rounds: read the records, note every kind of fault that was refused, keep a tool, submit."""
    said = sum(m["role"] == "assistant" for m in messages)
    if said == 0:
        return _turn(
            "I read what became of my tasks, and what my own turns saw.", f"{_COUNT}; cat past_rewards/index.jsonl"
        )
    if said > 1:
        return _turn("Done.", "submit")
    seen = [kind for kind, sign in SIGNS.items() if sign in messages[-1]["content"]]
    notes = "".join(f"{LESSON} {kind}: look for it before the first build.\n" for kind in seen)
    tool = '#!/bin/sh\npython3 /opt/tools/validate.py "$1" oracle && python3 /opt/tools/validate.py "$1" noop\n'
    return _turn(
        "I keep what I learned.",
        f"printf %s {shlex.quote(notes)} > memory/lessons.md\nprintf %s {shlex.quote(tool)} > tools/both.sh\n"
        "chmod 755 tools/both.sh",
    )


def _turn(words: str, command: str) -> str:
    return f"{words}\n```bash\n{command}\n```"
