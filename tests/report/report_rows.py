"""Records as a journal holds them, some of them hostile."""

from __future__ import annotations

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e${"


def admission(task: str, stage: str, *, kind: str = "", solver: tuple[float, ...] = (), **more) -> dict:
    """A row as Admission.to_row makes it."""
    order = ("files", "build", "oracle", "noop", "repeat", "calibration")
    last = order.index(stage) if stage in order else len(order) - 1
    refused = bool(kind)
    return {
        "task": task, "digest": "d", "stage": stage, "infra": False,
        "valid_paper": not refused or order.index(stage) > 3,
        "validated": not refused or stage == "calibration",
        "admitted": not refused,
        "reasons": [{"kind": kind, "message": f"{kind} at {stage}\nmore", "stage": stage}] if refused else [],
        "reward": -1.0 if refused else 1.0,
        "rewards": {"oracle": [1.0, 1.0], "noop": [0.0, 0.0], **({"solver": list(solver)} if solver else {})},
        "seconds": dict.fromkeys(order[: last + 1], 0.5), "report": {}, "trials": [], **more,
    }  # fmt: skip
