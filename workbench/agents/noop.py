"""The empty solution: does nothing and says that it is done. What it earns, a task gives away."""

from __future__ import annotations

from workbench.agents import Budget
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import Episode


class NoOp:
    """Submits at once, without a turn."""

    name = "noop"
    model = ""
    idle = True  # needs no sandbox to act in: what it leaves is the image

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        return Episode(self.name, submitted=True, ended_by="submit", instruction=step.instruction)
