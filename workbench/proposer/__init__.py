"""Who designs environments: assignments from rollouts, and the methods that answer them.

Here belongs what turns a pool and its rollouts into new task directories; what gets in is admission's to say.
May import admission, worlds and what is below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from workbench.traces import Episode

Direction = Literal["simpler", "harder"]


@dataclass(frozen=True)
class Assignment:
    """What a proposer is asked for (AutoEnvScaling §3.1): a parent environment, how the solver does on it, which way to go.

    pass_rate: the solver's mean reward on the parent, in [0, 1]. failure: the most common way it failed, in words;
    failures: every way with its count. evidence: ids of trials that show it. quote: a line of what the verifier or the last
    turns of trial `quoted` said. way: how to go in that direction, in words. parent_path: the parent's folder.
    """

    id: str
    run_id: str
    time: float
    round: int
    parent: str
    parent_path: str
    parent_digest: str
    direction: Direction
    pass_rate: float
    failure: str
    failures: Mapping[str, int] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    quote: str = ""
    quoted: str = ""
    way: str = ""

    def to_row(self) -> dict[str, Any]:
        return {**self.__dict__, "failures": dict(self.failures), "evidence": list(self.evidence)}


@dataclass(frozen=True)
class Proposal:
    """One answer to an assignment: a task directory, or none with the reason. usd is NaN when the price is unknown.

    tools: what the harness's tools used (calls, seconds, usd), which of the host's own validations the files have passed, and
    how often each violation was seen. violations: names of what was tried and may not be (docs/proposer.md)."""

    assignment: str
    proposer: str
    path: str | None
    message: str = ""
    seconds: float = 0.0
    usd: float = math.nan
    calls: int = 0
    episode: Episode | None = None
    tools: Mapping[str, Any] = field(default_factory=dict)
    violations: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        row = {k: v for k, v in self.__dict__.items() if k != "episode"}
        return {**row, "tools": dict(self.tools), "violations": list(self.violations)}


@runtime_checkable
class Proposer(Protocol):
    """Answers an assignment with a task directory at `target` (which does not exist yet)."""

    name: str

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        """Write a complete Harbor task. `feedback`: the gate's reasons, when this is a revision of `target`'s last version.
        Never raises for what a model answered; ModelError passes through (infrastructure)."""


def get_proposer(spec: str, **options: object) -> Proposer:
    """A proposer from one string, so that a notebook parameter can name any:

    "program"           a seeded program that varies small file tasks by direction; no model
    "world"             latent worlds chosen by pass rate and failures; no model. Options: of proposer.latent.LatentWorlds
    "harness:AGENT:MODEL"  an agent (see workbench.agents.get_agent; say "terminal") with a model, in a workspace with tools:
                        the `harness` method. "harness:script:FILE" acts by a script. Options: see harness_spec.open_harness
    "feedback:MODEL"    the `prompt + feedback` method: the host runs what a model answers and returns the logs. Options:
                        `backend`, `rounds`, `sampling` (see proposer.feedback), and the model's
    "public-view:MODEL", "prompt-first:MODEL"  Tev's data ablations (see proposer.ablation): terminal reward, no hidden truth. Options:
                        `worlds` (who chooses a public-view task's world), and the model's
    anything else       a model (see workbench.models.get_model) that is asked once for all files: the `prompt` method
    """
    if spec == "program":
        from workbench.proposer.program import ProgramProposer

        return ProgramProposer(**options)
    if spec == "world":
        from workbench.proposer.world import WorldProposer

        return WorldProposer(**options)  # type: ignore[arg-type]
    if spec.startswith("harness:"):
        from workbench.proposer.harness_spec import open_harness

        return open_harness(spec, **options)  # type: ignore[arg-type]
    if spec.startswith("feedback:"):
        from workbench.proposer.feedback import open_feedback

        return open_feedback(spec, **options)  # type: ignore[arg-type]
    if spec.startswith(("public-view:", "prompt-first:")):
        from workbench.proposer.ablation_corpus import open_ablation

        return open_ablation(spec, **options)  # type: ignore[arg-type]
    from workbench.models import get_model
    from workbench.proposer.prompt import PromptProposer

    return PromptProposer(get_model(spec, **options))
