"""Overhead of the harness over the model's own time, and how busy an endpoint is kept by many episodes at once.

python -m benchmarks proposer      targets: overhead under 5 % with an endpoint that answers in 1 s; 64 episodes at once on 2 cores
                                   keep that endpoint busy at least 80 % of the time (busy: replies in flight, of 64)

The model is a script that sleeps 1 s a reply. An episode has 53 turns, as many as the nine of AutoEnvScaling's appendix I have on
average (475 in all): reading, writing a task file by file, a build, five validations, a run, a repair. Grading is what it is for
a task with a plain-script grader. CPU seconds count this process, its sandboxes and their wardens; other work on the machine
slows the wall clock down but not them, so `cores_needed` says what the target asks of a quiet machine.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workbench.agents.terminal import TerminalAgent
from workbench.models import Message, Reply, Sampling
from workbench.proposer import Assignment, Proposal
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.limits import Slots
from workbench.proposer.program import draw, write_task
from workbench.proposer.tools import Toolbox
from workbench.sandboxes import get_backend

SECONDS = 1.0
TOOL = "python3 /opt/tools/"
_READ = (
    "cat assignment.md", "ls past_environments/*", "cat past_trajectories/index.jsonl", "cat memory/*; ls tools",
    "cat past_environments/parent/instruction.md", "cat past_environments/parent/tests/*", "cat skills/create_task.md",
)  # fmt: skip
_BREAK = "mv ENV/solution/solve.sh /tmp/s; printf '#!/bin/bash\\ntrue\\n' > ENV/solution/solve.sh; chmod +x ENV/solution/solve.sh"
_WRITE = tuple(f"echo 'Line {n}.' >> /tmp/draft.md; wc /tmp/draft.md" for n in range(20))
_TEST = (
    "cp -r past_environments/parent ENV; ls -R ENV", "echo 'Work in /app.' >> ENV/instruction.md",
    f"{TOOL}build.py ENV", f"{_BREAK}; {TOOL}validate.py ENV oracle", "cp -p /tmp/s ENV/solution/solve.sh",
    f"{TOOL}validate.py ENV oracle", f"{TOOL}validate.py ENV noop",
    f"{TOOL}run.py ENV --solution 'bash /solution/solve.sh; ls -l'", *("sed -n 1,20p ENV/task.toml",) * 6,
    f"{TOOL}validate.py ENV oracle", f"{TOOL}validate.py ENV noop",
)  # fmt: skip
_END = ("echo 'A note.' >> memory/notes.md", "cat memory/notes.md")


def script(number: int) -> tuple[str, ...]:
    """The commands of an episode. Each tests at another time, as episodes do that were not begun by one clap of hands."""
    before = number % len(_WRITE)
    commands = (*_READ, *_READ, *_WRITE[:before], *_TEST, *_WRITE[before:], *_END)
    return tuple(command.replace("ENV", f"env_{number:03d}") for command in commands)


TURNS = len(script(0)) + 1


class Sleeping:
    """An endpoint that answers the same script to everybody, each reply after `seconds`; sums the replies in flight over time."""

    name = "sleeping"

    def __init__(self) -> None:
        self.lock, self.flying, self.changed, self.area, self.seconds = threading.Lock(), 0, time.monotonic(), 0.0, 0.0

    def _step(self, change: int) -> None:
        with self.lock:
            now = time.monotonic()
            self.area += self.flying * (now - self.changed)
            self.flying, self.changed = self.flying + change, now

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        self._step(1)
        began = time.monotonic()
        time.sleep(self.seconds)
        self._step(-1)
        said = sum(m["role"] == "assistant" for m in messages)
        commands = script(int(re.search(r"# Assignment r1-a(\d+)", messages[1]["content"])[1]))
        command = commands[said] if said < len(commands) else "submit"
        return Reply(f"Next.\n```bash\n{command}\n```", seconds=time.monotonic() - began, usd=0.0)


def run(many: int = 64) -> Iterator[dict[str, object]]:
    home = Path(tempfile.mkdtemp(prefix="bench-proposer-"))
    try:
        write_task(draw(4, 1), home / "parent", "parent")
        yield _measure(home, 1)
        yield _measure(home, many)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measure(home: Path, many: int) -> dict[str, object]:
    """`many` episodes at once. busy: the time that replies were in flight, of all that `many` episodes could have."""
    model, backend = Sleeping(), get_backend("bubblewrap", idle_slots=many + 16)
    toolbox = Toolbox(backend, slots=Slots(task=4, solver=2))
    agent = TerminalAgent(model)
    proposer = HarnessProposer(agent, backend=backend, toolbox=toolbox, store=home / f"store-{many}")
    _propose(proposer, home / f"warm-{many}", 0)  # layers and images that every later episode finds
    model.seconds, model.area, began, cpu = SECONDS, 0.0, time.monotonic(), _cpu_seconds()
    with ThreadPoolExecutor(many) as threads:
        episodes = list(threads.map(lambda n: _propose(proposer, home / f"{many}-{n}", n), range(many)))
    wall, area = time.monotonic() - began, model.area
    backend.close()  # the wardens' seconds are known when they have ended
    cpu = (_cpu_seconds() - cpu) / many
    asked = sum(sum(turn.model_seconds for turn in p.episode.turns) for p in episodes) / many
    took = sum(p.seconds for p in episodes) / many
    row = {"what": f"{many} episodes of {TURNS} turns at once", "seconds": wall, "overhead": (took - asked) / asked,
           "busy": area / (many * wall), "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}  # fmt: skip
    if many > 8:  # where the first episode and the wardens' own start are a small part of the sum
        row |= {"cpu_seconds_an_episode": cpu, "cores_needed": 0.8 * cpu * many / (TURNS * SECONDS)}
    return row


def _propose(proposer: HarnessProposer, target: Path, number: int) -> Proposal:
    assignment = Assignment(
        f"r1-a{number}", "bench", 0.0, 1, "parent", str(target.parent / "parent"), "", "harder", 0.9, "none"
    )
    found = proposer.propose(assignment, target, seed=0)
    told = [turn.observation for turn in found.episode.turns]
    assert found.tools["validated"] == {"oracle": True, "noop": True}, told
    return found


def _cpu_seconds() -> float:
    """Of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
