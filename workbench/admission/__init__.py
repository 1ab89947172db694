"""What gets in: validation, contamination, review, calibration, and the verdict with its reasons.

Here belongs every check that a proposer must pass and cannot edit. May import trials and what is below.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.trials import Trial, plain

Stage = Literal["files", "build", "oracle", "noop", "repeat", "contamination", "review", "calibration", "admitted"]


@dataclass(frozen=True)
class Reason:
    """Why a task was refused. kind: a stable word for machines (docs/admission.md lists them all);
    message: what was wrong, where, and what to do; stage: where it was found."""

    kind: str
    message: str
    stage: Stage

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", plain(self.message))  # it may quote what a sandbox printed


@dataclass(frozen=True)
class Admission:
    """A verdict on one task.

    stage: the last stage reached ("admitted" when it passed everything asked). valid_paper: builds, oracle = 1, no-op < 0.5.
    validated: every stage before calibration. admitted: and calibrated; None when calibration was not asked.
    reward: the proposer's (Eq. 2): -1, -0.25, +1; None while calibration is missing. seconds: of each stage.
    report: what is reported and is no gate (tests passing untouched, solution text in the image, overlaps, verifier strength).
    infra: True when infrastructure failed; then there is no verdict and the task may be tried again.
    """

    id: str
    run_id: str
    time: float
    task: str
    digest: str
    stage: Stage
    valid_paper: bool
    validated: bool
    admitted: bool | None
    reasons: tuple[Reason, ...] = ()
    reward: float | None = None
    rewards: Mapping[str, list[float]] = field(default_factory=dict)  # agent → rewards
    seconds: Mapping[str, float] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    infra: bool = False

    def to_row(self) -> dict[str, Any]:
        row = {k: v for k, v in self.__dict__.items() if k not in ("trials", "reasons")}
        row["reasons"] = [{"kind": r.kind, "message": r.message, "stage": r.stage} for r in self.reasons]
        row["trials"] = [t.id for t in self.trials]
        row["rewards"], row["seconds"], row["report"] = dict(self.rewards), dict(self.seconds), dict(self.report)
        return row


def from_row(row: Mapping[str, Any]) -> Admission:
    """The verdict that `to_row` wrote, without its trials (they are records of their own)."""
    kept = {k: v for k, v in row.items() if k in Admission.__dataclass_fields__ and k != "trials"}
    return Admission(**{**kept, "reasons": tuple(Reason(**reason) for reason in row["reasons"])})


def no_files(id: str, run_id: str, message: str) -> Admission:
    """The verdict on an answer without task files: validation fails at its first stage (r_P = -1)."""
    return Admission(
        id=id, run_id=run_id, time=time.time(), task=id, digest="", stage="files", valid_paper=False, validated=False,
        admitted=False, reasons=(Reason("no-files", message or "no files", "files"),), reward=-1.0,
    )  # fmt: skip
