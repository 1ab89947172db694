"""Who acts: the terminal agent (one bash tool), the oracle, the no-op, later Harbor's coding agents.

Here belongs what turns a model's words into commands in a sandbox; grading is not an agent's business.
May import tasks, sandboxes, models, traces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import Episode


@dataclass(frozen=True)
class Budget:
    """Limits of one episode: model calls, sampled tokens in all, wall clock in seconds, and per command."""

    turns: int = 32
    tokens: int = 65_536
    seconds: float = 900.0
    command_seconds: float = 120.0


@runtime_checkable
class Agent(Protocol):
    """Acts once at one step of a task. `model` is the model's name, "" when there is none."""

    name: str
    model: str

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        """Act in `sandbox` at `step.instruction` until done or out of budget. Never raises for what the policy did;
        SandboxError and ModelError pass through (the trial makes them `infra`)."""
