"""A proposer of one short turn: a line of words goes in, one `worlds compose` line comes out. For very small models.

The harness gives a model a workspace, a sandbox and tools, and takes seconds an episode before the first token; a policy of a million weights
needs one action of it, the `worlds` tool. Here that action is read from the model's bash block and the host carries it out on the library itself.
No sandbox is needed because nothing else can run: the block is never given to a shell, and its words are only compared with what the library
has. Same contract otherwise: the host draws the seed from the training partition, and what was composed goes through the whole gate.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path

from workbench.agents.prompts import Prompt
from workbench.agents.protocol import parse_action
from workbench.agents.turns import turn_of
from workbench.models import ContextFull, Model, OutOfTime, Reply, Sampling
from workbench.proposer import Assignment, Proposal
from workbench.proposer.latent import LatentWorlds
from workbench.proposer.world import rung_of
from workbench.traces import Episode

RATES = ((0.1, "never"), (0.35, "rarely"), (0.65, "sometimes"), (0.9, "often"), (1.01, "always"))
USAGE = "worlds compose GENERATOR TIER [CORRUPTION ...]"
PLAIN = Prompt(
    system=f"You choose a training environment by answering with one bash block that holds one line: {USAGE}"
)
MOST_WORDS = 16


def rate_word(rate: float) -> str:
    """never (below 0.1), rarely (0.35), sometimes (0.65), often (0.9) or always."""
    return next(word for limit, word in RATES if rate < limit)


def assignment_line(assignment: Assignment) -> str:
    """The assignment in closed words: the parent's generator and corruptions, how often it is solved, which way to go.

    A parent that is no latent world is "other"."""
    rung = rung_of(Path(assignment.parent_path))
    parent = f"{rung.generator} {' '.join(rung.kinds) or 'none'}" if rung else "other none"
    return f"{parent} {rate_word(assignment.pass_rate)} {assignment.direction}"


def parse_compose(text: str) -> tuple[tuple[str, str, tuple[str, ...]] | None, str]:
    """((generator, tier, corruptions), "") of a model's turn, or (None, what is wrong with it). Never raises."""
    action = parse_action(text)
    if action.command is None:
        return None, action.problem or f"submitted nothing: write {USAGE}"
    try:
        words = shlex.split(action.command)
    except ValueError as error:
        return None, f"the command can't be read: {error}"
    if "\n" in action.command.strip() or words[:2] != ["worlds", "compose"] or not 4 <= len(words) <= MOST_WORDS:
        return None, f"the command is not {USAGE}"
    if len(set(words[4:])) != len(words[4:]):
        return None, "a corruption is named twice"
    return (words[2], words[3], tuple(words[4:])), ""


class ComposeProposer:
    """One model call a proposal.

    model: a Model, or an EngineModel: then each proposal is the conversation `key(assignment, seed)` of it, whose segments train. Proposals of one
    group need different seeds: the seed draws the world, and the model's tokens too unless sampling.seed is None. A malformed answer or an
    impossible choice gives no path, so that the gate's verdict is that of no files (r_P = -1).
    """

    def __init__(
        self,
        model: Model,
        library: LatentWorlds,
        *,
        prompt: Prompt = PLAIN,
        sampling: Sampling = Sampling(max_tokens=20, temperature=1.0),
    ):
        self.model, self.library, self.prompt, self.sampling = model, library, prompt, sampling
        self.name = f"compose:{model.name}"

    def key(self, assignment: Assignment, seed: int) -> str:
        return f"proposer/{assignment.id}/{seed}"

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        began = time.monotonic()
        messages = self.prompt.opening(assignment_line(assignment))
        conversation = getattr(self.model, "conversation", None)
        model = conversation(self.key(assignment, seed)) if conversation else self.model
        sampling = replace(self.sampling, seed=None if self.sampling.seed is None else self.sampling.seed + seed)
        try:
            reply = model.reply(messages, sampling)
        except (ContextFull, OutOfTime) as error:  # the policy's own doing, as in a solver's episode
            return Proposal(assignment.id, self.name, None, str(error), time.monotonic() - began, 0.0, 1)
        path, message = self._compose(reply.text, target, f"{assignment.run_id}/{assignment.id}/{seed}/{feedback}")
        return Proposal(
            assignment=assignment.id,
            proposer=self.name,
            path=None if path is None else str(path),
            message=message,
            seconds=time.monotonic() - began,
            usd=reply.usd,
            calls=1,
            episode=self._episode(messages[-1]["content"], reply, path, message),
        )

    def _compose(self, text: str, target: Path, draw: str) -> tuple[Path | None, str]:
        choice, problem = parse_compose(text)
        if choice is None:
            return None, problem
        generator, tier, kinds = choice
        try:
            path = self.library.compose(generator, tier, kinds, target, draw=draw)
        except ValueError as error:
            return None, str(error)
        return path, f"{generator} {tier}: {', '.join(kinds) or 'its whole plan'}"

    def _episode(self, line: str, reply: Reply, path: Path | None, message: str) -> Episode:
        turn = turn_of(reply, command=parse_action(reply.text).command, observation=message)
        return Episode(
            agent=self.name,
            turns=(turn,),
            model=self.model.name,
            submitted=path is not None,
            ended_by="submit" if path is not None else "malformed",
            system=self.prompt.system,
            instruction=line,
        )
