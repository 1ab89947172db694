"""The `prompt + feedback` method: the host runs what the model wrote and returns the logs; the model revises (AutoEnvScaling §4.1).

After each answer the host does what the gate does first: files, build, reference solution, empty solution, each in fresh
sandboxes. The model sees the typed reasons with the builder's and the verifier's words, and answers with the files that
it changes. How many rounds the paper allows is not published; ours are bounded by `rounds`.
"""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import replace
from pathlib import Path

from workbench.admission.validation import Desk, Stopped, validate
from workbench.agents.turns import turn_of
from workbench.models import ContextFull, Message, Model, Reply, Sampling
from workbench.proposer import Assignment, Proposal
from workbench.proposer.prompt import SYSTEM, last_files, parse_files, question, write_files
from workbench.sandboxes import Backend, SandboxError
from workbench.traces import EndedBy, Episode, Turn
from workbench.trials import plain

ROUNDS = 3  # answers to one question, the first one counted
MAX_LOG = 6_000  # characters of one round's logs
AGAIN = "Answer with every file that you change, each whole and in the same form; the other files stay as they are."


class FeedbackProposer:
    """Any model, asked up to `rounds` times: what the host's run of its files said goes back with the question.

    backend: where the files are built and run. sampling: of each answer (16,384 tokens unless said).
    """

    def __init__(self, model: Model, backend: Backend, *, rounds: int = ROUNDS, sampling: Sampling | None = None):
        if rounds < 1:
            raise ValueError(f"rounds={rounds}: at least one answer is needed")
        self.model, self.backend, self.rounds = model, backend, rounds
        self.sampling = sampling or Sampling(max_tokens=16_384)
        self.name = f"feedback:{model.name}"

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        """A conversation of at most `rounds` answers. ModelError and SandboxError pass through."""
        began = time.monotonic()
        talk = _Talk(self, assignment, target, seed, feedback)
        turns, ended, passed = talk.play()
        there = target.is_dir()
        episode = Episode(
            self.name, tuple(turns), self.model.name, passed, ended, system=SYSTEM, instruction=talk.asked
        )
        tools = {"calls": {"host_run": talk.runs}, "validated": {"oracle": passed, "noop": passed}}
        message = "" if there else talk.fault
        return Proposal(
            assignment.id, self.name, str(target) if there else None, message, time.monotonic() - began,
            math.fsum(t.usd for t in turns), len(turns), episode, tools=tools,
        )  # fmt: skip


class _Talk:
    """One conversation: question, answer, logs, answer, …"""

    def __init__(self, proposer: FeedbackProposer, assignment: Assignment, target: Path, seed: int, feedback: str):
        self.proposer, self.target, self.seed = proposer, Path(target), seed
        self.asked = question(assignment, feedback, last_files(target) if feedback else "")
        self.messages: list[Message] = [
            {"role": "system", "content": SYSTEM}, {"role": "user", "content": self.asked},
        ]  # fmt: skip
        if self.target.exists():  # the last version is in the question; nothing of it may be taken for an answer
            shutil.rmtree(self.target)
        self.files: dict[str, str] = {}
        self.fault, self.runs = "", 0

    def play(self) -> tuple[list[Turn], EndedBy, bool]:
        """(turns, how it ended, whether the host's last run found nothing wrong)."""
        turns: list[Turn] = []
        for number in range(self.proposer.rounds):
            try:
                reply = self._ask(number)
            except ContextFull:
                if not turns:
                    raise
                return turns, "context", False
            passed, log = self._answered(reply)
            turns.append(turn_of(reply, number, observation=log))
            if passed:
                return turns, "submit", True
            again = {"role": "user", "content": f"{log}\n\n{AGAIN}"}
            self.messages += [{"role": "assistant", "content": reply.text}, again]  # type: ignore[list-item]
        return turns, "turns", False

    def _ask(self, number: int) -> Reply:
        sampling = replace(self.proposer.sampling, seed=(self.seed + 7919 * number) % 2**31)
        return self.proposer.model.reply(self.messages, sampling)

    def _answered(self, reply: Reply) -> tuple[bool, str]:
        """(nothing is wrong, what the model is told)."""
        changed, fault = parse_files(reply.text)
        if not changed:
            if reply.finish == "length":
                fault = f"the answer was cut at {reply.completion_tokens} tokens before a whole file was given"
            self.fault = fault
            return False, f"Your answer could not be used: {fault}."
        self.files |= changed
        write_files(self.files, self.target)
        self.runs += 1
        return run_checks(self.target, self.proposer.backend)


def run_checks(path: Path, backend: Backend) -> tuple[bool, str]:
    """Files, build, reference solution and empty solution, as the gate runs them: (all in order, the log for the model).
    SandboxError when infrastructure failed."""
    desk = Desk(path, backend)
    try:
        validate(desk, repeats=1)
    except Stopped as stopped:
        if stopped.infra:
            raise SandboxError(stopped.infra) from stopped
    earned = "".join(f"\n{who}: rewards {' '.join(f'{r:g}' for r in got)}" for who, got in desk.rewards.items())
    if not desk.reasons:
        return True, f"The host ran your files: nothing is wrong.{earned}"
    said = "\n".join(f"[{r.stage}] {r.kind}: {plain(r.message)}" for r in desk.reasons)
    return False, f"The host ran your files and found faults.{earned}\n{said[:MAX_LOG]}"


def open_feedback(
    spec: str,
    *,
    backend: Backend | None = None,
    rounds: int = ROUNDS,
    sampling: Sampling | None = None,
    **options: object,
) -> FeedbackProposer:
    """A FeedbackProposer from "feedback:MODEL". backend: default bubblewrap. `options` are the model's."""
    from workbench.models import get_model
    from workbench.sandboxes import get_backend

    model = get_model(spec.removeprefix("feedback:"), **options)
    return FeedbackProposer(model, backend or get_backend("bubblewrap"), rounds=rounds, sampling=sampling)
