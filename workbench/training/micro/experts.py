"""Scripted experts for both roles: what the Cold-Start imitates. Models, so that their episodes run as a policy's do.

A solver's expert reads the note and writes one line of shell a job, wrong with a stated probability; a proposer's expert chooses corruptions by
the direction, as workbench.proposer.world does, and is wrong as often as it is told to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.agents.protocol import SUBMIT
from workbench.models import Message, Reply, Sampling
from workbench.proposer.compose import RATES
from workbench.worlds.draw import Draw

LOOK = "mkdir -p output; cat input/note.txt"
FILTERS = {
    "clean": "cat input/{name}.txt",
    "stale": "cat input/new/{name}.txt",
    "double": "uniq input/{name}.txt",
    "void": "grep -v void input/{name}.txt",
}
SINKS = {"top": "head -3", "seal": "md5sum", "order": "sort -r"}
CORRUPTIONS = ("duplicate_records", "orphan_records", "stale_copy")


def block(command: str) -> str:
    return f"```bash\n{command}\n```"


def job_line(job: str, name: str, remark: str) -> str:
    """The line of shell that does one job of a note."""
    return f"{FILTERS[remark].format(name=name)} | {SINKS[job]} > output/{job}.txt"


def jobs_of(note: str) -> list[tuple[str, str, str]]:
    """(job, name, remark) for each three words."""
    words = note.split()
    return list(zip(words[::3], words[1::3], words[2::3], strict=False))


class _Scripted:
    """A Model that costs nothing."""

    name = "expert"

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        text = self.answer(messages)
        return Reply(text, "stop", (), (), (), len(messages), len(text.split()), 0.0, 0.0)

    def answer(self, messages: Sequence[Message]) -> str:
        raise NotImplementedError

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0


class SolverExpert(_Scripted):
    """noise: probability that a job's line takes another remark's filter or another job's list. draw: its stream. opening: how many messages
    come before its first turn."""

    name = "expert-solver"

    def __init__(self, draw: Draw, noise: float = 0.0, opening: int = 2):
        self.draw, self.noise, self.opening = draw, noise, opening

    def answer(self, messages: Sequence[Message]) -> str:
        own = messages[self.opening :]
        turn = sum(m["role"] == "assistant" for m in own)
        if turn == 0:
            return block(LOOK)
        jobs = jobs_of(own[1]["content"].partition("\n")[2])
        if turn > len(jobs):
            return block(SUBMIT)
        job, name, remark = jobs[turn - 1]
        draw = self.draw.fork(turn)
        if draw.chance(self.noise):
            if draw.chance(0.5):
                remark = draw.choice([r for r in FILTERS if r != remark])
            else:
                name = draw.choice([n for _, n, _ in jobs if n != name] or [name])
        return block(job_line(job, name, remark))


class ProposerExpert(_Scripted):
    """Drops a corruption for "simpler", adds one for "harder", two steps when the parent is never or always solved; with probability `noise` any
    choice."""

    name = "expert-proposer"

    def __init__(self, draw: Draw, noise: float = 0.0):
        self.draw, self.noise = draw, noise

    def answer(self, messages: Sequence[Message]) -> str:
        generator, *parent, rate, direction = messages[-1]["content"].split()
        kinds = [kind for kind in parent if kind in CORRUPTIONS]
        steps = 2 if rate in (RATES[0][1], RATES[-1][1]) else 1
        for step in range(steps):
            kinds = self._step(kinds, direction, self.draw.fork(step))
        if self.draw.chance(self.noise):
            kinds = self.draw.sample(CORRUPTIONS, self.draw.integer(1, len(CORRUPTIONS)))
        return block(" ".join(["worlds compose", generator, "micro", *sorted(kinds)]))

    def _step(self, kinds: list[str], direction: str, draw: Draw) -> list[str]:
        if direction == "simpler":
            if len(kinds) < 2:
                return kinds
            gone = draw.choice(kinds)
            return [kind for kind in kinds if kind != gone]
        left = [k for k in CORRUPTIONS if k not in kinds]
        return [*kinds, draw.choice(left)] if left else kinds
