"""A Harbor task directory: load, scaffold, digest, lint, fraction verifier, n-gram index.

Here belongs what can be said of a task from its files alone; nothing here runs a command.
No other room is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FaultKind = Literal[
    "missing-file", "bad-toml", "unknown-key", "wrong-type", "missing-section", "not-executable", "unsafe-path", "too-large", "lint",
]  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a task's files: what, where (a path inside the task, with a line when known), what to do."""

    kind: FaultKind
    message: str
    where: str = ""


class TaskError(ValueError):
    """The directory is not a usable task. `faults` lists every reason found, not just the first."""

    def __init__(self, path: Path, faults: list[Fault]):
        super().__init__(f"{path}: " + "; ".join(f"{f.where}: {f.message}" if f.where else f.message for f in faults))
        self.path, self.faults = path, faults


@dataclass(frozen=True)
class Step:
    """One instruction with its tests. A single-step task has one, named ""."""

    name: str
    instruction: str
    tests: Path
    solution: Path | None
    min_reward: float | None = None  # a lower reward ends a multi-step task here (Harbor)
    agent_timeout: float | None = None  # seconds
    verifier_timeout: float = 600.0


@dataclass(frozen=True)
class Task:
    """A loaded task. Paths are host paths.

    digest: sha256 over the sorted files (path, mode's x bit, bytes), caches and editors' files left out.
    config: Harbor's task.toml as plain data with Harbor's defaults filled in. separate: the verifier has an image
    of its own (environment_mode = "separate"); artifacts: paths that it receives. keep_services: the task's services
    must live on while it is graded ([metadata.workbench] keep_services = true).
    verifier_env: what [verifier.env] says. network, allowed_hosts: the agent's ([agent], else [environment]).
    cpus, memory_mb, storage_mb: [environment].
    reward_strategy: "mean" or "final" over steps.
    """

    path: Path
    name: str
    steps: tuple[Step, ...]
    digest: str
    config: Mapping[str, Any] = field(default_factory=dict)
    network: str = "no-network"
    allowed_hosts: tuple[str, ...] = ()
    cpus: float = 1.0
    memory_mb: int = 1024
    storage_mb: int = 1024
    build_timeout: float = 600.0
    verifier_network: str = "no-network"
    verifier_env: Mapping[str, str] = field(default_factory=dict)
    separate: bool = False
    artifacts: tuple[str, ...] = ()
    keep_services: bool = False
    reward_strategy: Literal["mean", "final"] = "mean"

    @property
    def environment(self) -> Path:
        return self.path / "environment"

    @property
    def instruction(self) -> str:
        return "\n\n".join(step.instruction for step in self.steps)


def load_task(path: str | Path) -> Task:
    """Read a task directory, or raise TaskError with every fault (see workbench.tasks.load)."""
    from workbench.tasks.load import load

    return load(Path(path))
