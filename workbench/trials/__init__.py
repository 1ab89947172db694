"""One agent, one task, one grade: the only place that runs and grades.

Here belong the life of a trial, the grader, the strict reading of rewards and who answers for a failure.
May import agents and what is below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.traces import Episode

Outcome = Literal["graded", "policy", "task", "infra"]


def plain(text: str) -> str:
    """Words from a sandbox as they may go to a terminal: control characters but newline and tab are spelled out."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Grade:
    """What a verifier said. reward: None when it said nothing usable; then `fault` names why.

    rewards: the flat object when there is one ("reward", "passed", …). tests: name → "passed" | "failed" | …, from CTRF.
    """

    reward: float | None
    rewards: Mapping[str, float] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""  # a kind of trials.rewards.RewardFault, or "verifier-timeout", "verifier-crash", "no-tests", …
    message: str = ""
    stdout: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Trial:
    """One record of the journal (design: records). reward: in [0, 1] for `graded`, 0 for `policy`, None otherwise.

    overhead_seconds: wall clock outside the agent's turns and the verifier's command. limits: what enforced which limit.
    stands_for: which base layer stood in for which FROM.
    phi: Phi of the final workspace in [0, 1], for a task with a progress contract (Tev §3.2), else None. progress: Phi after each
    turn (empty when the agent's turns are not seen one by one). progress_seconds: what grading it took, within the trial.
    """

    id: str
    run_id: str
    time: float
    task: str
    digest: str
    agent: str
    model: str
    backend: str
    outcome: Outcome
    reward: float | None
    passed: bool | None = None
    reason: str = ""
    message: str = ""
    submitted: bool = False
    ended_by: str = ""
    steps: tuple[Grade, ...] = ()
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = math.nan
    seconds: float = 0.0
    agent_seconds: float = 0.0
    verifier_seconds: float = 0.0
    overhead_seconds: float = 0.0
    seed: int | None = None
    phi: float | None = None
    progress: tuple[float, ...] = ()
    progress_seconds: float = 0.0
    stands_for: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    episodes: tuple[Episode, ...] = ()  # one a step; written to traces/, not to the journal

    @property
    def counts(self) -> bool:
        """Enters groups, calibrations and rates: graded or answerable by the policy; never infrastructure."""
        return self.outcome in ("graded", "policy")

    @property
    def tests(self) -> dict[str, str]:
        """Per-test results, prefixed by the step's index when there are several steps."""
        many = len(self.steps) > 1
        return {(f"{i}:{k}" if many else k): v for i, g in enumerate(self.steps) for k, v in g.tests.items()}

    def to_row(self) -> dict[str, Any]:
        """One flat row for the journal and for DataFrames (traces and per-step outputs left out)."""
        skip = {"episodes", "steps"}
        row = {k: v for k, v in self.__dict__.items() if k not in skip}
        row["tests"] = self.tests
        row["stands_for"], row["limits"] = dict(self.stands_for), dict(self.limits)
        return row
