"""Who acts: the terminal agent (one bash tool), the coding agents that people use, the oracle, the no-op.

Here belongs what turns a model's words into commands in a sandbox; grading is not an agent's business.
May import tasks, sandboxes, models, traces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.models import Model
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import Episode

CODING = ("claude-code", "codex", "pi")


@dataclass(frozen=True)
class Budget:
    """Limits of one episode: model calls, sampled tokens in all, wall clock in seconds, and per command."""

    turns: int = 32
    tokens: int = 65_536
    seconds: float = 900.0
    command_seconds: float = 120.0


@runtime_checkable
class Agent(Protocol):
    """Acts once at one step of a task. `model` is the model's name, "" when there is none. An agent that is a program
    of its own has `mounts` too: what its sandbox is to be started with."""

    name: str
    model: str

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        """Act in `sandbox` at `step.instruction` until done or out of budget. Never raises for what the policy did;
        SandboxError and ModelError pass through (the trial makes them `infra`)."""


def get_agent(spec: str, model: Model | None = None, **options: object) -> Agent:
    """An agent from one string: "terminal" (with `model`; options: sampling, prompt), "oracle", "noop", "script:FILE"
    (a shell script, or a JSON list of commands), or a coding agent: "claude-code", "codex", "pi" (option `endpoint`, see
    coding.endpoint.Endpoint: it asks the endpoint itself, not a `model`; further: context, keep_logs)."""
    kind, _, rest = spec.partition(":")
    if kind == "script" and rest:
        from workbench.agents.script import ScriptedAgent

        return ScriptedAgent.from_file(rest)
    if spec == "oracle":
        from workbench.agents.oracle import Oracle

        return Oracle(**options)
    if spec == "noop":
        from workbench.agents.noop import NoOp

        return NoOp()
    if spec in CODING:
        return _coding(spec, model, options)
    if spec != "terminal":
        raise ValueError(f"no agent {spec!r}: use terminal, oracle, noop, script:FILE, {', '.join(CODING)}")
    if model is None:
        raise ValueError("the terminal agent needs a model: get_agent('terminal', get_model(...))")
    from workbench.agents.terminal import TerminalAgent

    return TerminalAgent(model, **options)


def _coding(name: str, model: Model | None, options: dict[str, object]) -> Agent:
    if model is not None or "endpoint" not in options:
        raise ValueError(
            f"{name} asks an endpoint itself: get_agent({name!r}, endpoint=Endpoint(url, model, key_env=...))"
        )
    from workbench.agents.coding.agent import CodingAgent

    return CodingAgent(name, **options)
