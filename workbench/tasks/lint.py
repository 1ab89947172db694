"""Harbor's own lint as faults: which of its rules keep a task out, and which are only reported.

A gate is a rule whose breach makes the task unsafe, ungradable or unfair whatever the back end. Reported are matters of
taste or of reproduction: above all `shared-verifier`, since the workbench grades every task from a mount that the agent's
processes do not see, separate image or not (docs/tasks.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.tasks import Fault
from workbench.tasks.config import harbor_model

GATES = frozenset(
    {
        "invalid-task-config", "unknown-config-field", "invalid-task-files", "overlapping-artifacts", "artifact-log-overlap",
        "compose-privileged", "compose-additional-capabilities", "compose-writable-bind-mount",
        "compose-external-bind-mount", "compose-symlink-bind-mount", "agent-image-test-leak",
    }
)  # fmt: skip
REPORTED = frozenset(
    {
        "shared-verifier", "root-agent", "unpinned-image", "unpinned-python-dependency", "verifier-runtime-install",
        "verifier-network-download", "unused-harborignore",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Lint:
    """gates: faults that keep the task out. notes: what is worth knowing. All of kind "lint"; messages begin with the rule."""

    gates: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()


def lint(path: str | Path) -> Lint:
    """Run Harbor's lint over a task directory that `load` has accepted (Harbor follows links; `load` refuses bad ones).

    A rule that this table does not know (a newer Harbor's) is reported, not a gate. Nothing is executed.
    """
    root = Path(path).resolve()
    harbor_model()  # telemetry off before anything else of Harbor's is imported
    from harbor.lint.task import lint_task

    try:
        findings = lint_task(root)
    except (OSError, ValueError, RecursionError) as error:  # such as a script that is not UTF-8
        return Lint(gates=(Fault("lint", f"Harbor's lint cannot read the task: {str(error)[:300]}"),))
    return Lint(
        tuple(_fault(root, f) for f in findings if f.rule in GATES),
        tuple(_fault(root, f) for f in findings if f.rule not in GATES),
    )


def _fault(root: Path, finding: Any) -> Fault:
    path = Path(finding.path)
    where = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return Fault("lint", f"{finding.rule}: {finding.message}", f"{where}:{finding.line}" if finding.line else where)
