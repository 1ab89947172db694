"""Rows as workbench.training.learning and cold_start write them, with numbers that a test can follow by hand.

That the real loop writes these fields is tested in tests/report/test_training_figures_real.py.
"""

from __future__ import annotations

from typing import Any


def update_row(step: int, arm: str = "full", *, accepted: int = 2, dropped: int = 2, seconds: float = 60.0, proposer: dict | None = None, **more: Any) -> dict[str, Any]:  # fmt: skip
    collect = {
        "version": step - 1, "wanted": 2, "accepted": accepted, "collected": accepted + dropped, "dropped": {"no-variation": dropped},
        "useful": accepted / (accepted + dropped), "seconds": seconds,
    }  # fmt: skip
    return {"id": str(step), "step": step, "arm": arm, "collect": collect, "solver_reward": 0.5, "rollouts": 16, "pool": 4,
            "proposer": proposer, "step_seconds": 2 * seconds, **more}  # fmt: skip


def proposer_row(valid: int, verdicts: int = 10) -> dict[str, Any]:
    return {"asked": verdicts, "verdicts": verdicts, "malformed": verdicts - valid, "valid": valid, "out_of_band": 0, "admitted": valid, "mean_reward": 0.0}  # fmt: skip


def evaluation_row(step: int, rewards: dict[str, list[float]], arm: str = "full", name: str = "held-out seeds", **more: Any) -> dict[str, Any]:  # fmt: skip
    """rewards: task → its attempts; 1.0 counts as passed."""
    scores = [{"task": t, "digest": f"d-{t}", "rewards": r, "passes": sum(x == 1.0 for x in r), "attempts": len(r)} for t, r in rewards.items()]  # fmt: skip
    k = min(map(len, rewards.values()))
    avg = sum(sum(r) / len(r) for r in rewards.values()) / len(rewards)
    return {"id": f"{name}-{step}", "set": name, "version": step, "step": step, "arm": arm, "k": k, "tasks": len(rewards),
            "attempts": k * len(rewards), "ungraded": 0, "avg": avg, "avg_interval": [avg - 0.1, avg + 0.1], "pass@1": 0.5,
            f"pass@{k}": 0.6, f"S@{k}": 0.7, "scores": scores, **more}  # fmt: skip


def rollout_row(id: str, group: str, progress: list[float], **more: Any) -> dict[str, Any]:
    return {"id": id, "group": group, "what": "w000", "role": "solver", "outcome": "graded", "progress": progress, "passed": False,
            "submitted": False, "reward": 0.0, "task": "d-task", **more}  # fmt: skip


def write(run: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        run.record(kind, row, id=row["id"])
