"""Tables from a run's records: plain DataFrames in, plain DataFrames out. Every rate shows its denominator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from workbench.statistics import mean_std, wilson

if TYPE_CHECKING:
    import pandas as pd

STAGES = ("files", "build", "oracle", "noop", "repeat", "contamination", "review", "calibration")


def verdict(row: dict[str, Any]) -> str:
    """One word for an admission record: admitted, validated, refused, or no verdict (infrastructure failed)."""
    if row.get("infra"):
        return "no verdict"
    if row.get("admitted"):
        return "admitted"
    return "validated" if row.get("validated") and row.get("admitted") is None else "refused"


def admission_table(admissions: pd.DataFrame) -> pd.DataFrame:
    """What was admitted, and why the rest was not.

    admissions: a run's records of kind `admission`. Columns: task, verdict, stage, reason (kinds), message (the first
    reason's first line), rewards (the solver's), proposer_reward, seconds (of all stages).
    """
    import pandas as pd

    columns = ["task", "verdict", "stage", "reason", "message", "rewards", "proposer_reward", "seconds"]
    rows = []
    for row in records(admissions):
        reasons = row.get("reasons") or []
        first = (reasons[0]["message"].splitlines() or [""])[0] if reasons else ""
        rows.append(
            {
                "task": row["task"],
                "verdict": verdict(row),
                "stage": row["stage"],
                "reason": ", ".join(dict.fromkeys(r["kind"] for r in reasons)),
                "message": first,
                "rewards": solver_rewards(row),
                "proposer_reward": row.get("reward"),
                "seconds": math.fsum((row.get("seconds") or {}).values()),
            }
        )
    return pd.DataFrame(rows, columns=columns)


def solver_rewards(row: dict[str, Any]) -> list[float]:
    """The solver's calibration rewards in one admission record; [] when it was not calibrated."""
    return list((row.get("rewards") or {}).get("solver") or [])


def rates(admissions: pd.DataFrame, usd: float = math.nan) -> pd.DataFrame:
    """The three rates, never mixed: valid_paper, validated, admitted; each k of n with Wilson's 95 % interval.

    n: submissions with a verdict (infrastructure failures are left out, and counted in `no_verdict`); `admitted` has
    n = 0 when no submission was calibrated. usd: all that was spent, failures included; cost per valid environment is
    usd over valid_paper, NaN when the price of a call is unknown.
    """
    import pandas as pd

    judged = [r for r in records(admissions) if not r.get("infra")]
    left_out = len(admissions) - len(judged)
    rows = []
    for name in ("valid_paper", "validated", "admitted"):
        asked = judged if name != "admitted" or any(_entered(r, "calibration") for r in judged) else []
        k, n = sum(bool(r[name]) for r in asked), len(asked)
        low, high = wilson(k, n)
        share = k / n if n else math.nan
        rows.append({"rate": name, "k": k, "n": n, "share": share, "low": low, "high": high, "no_verdict": left_out})
    table = pd.DataFrame(rows)
    valid = rows[0]["k"]
    table["usd_per_valid"] = [usd / valid if valid else math.nan, math.nan, math.nan]
    return table


def funnel(admissions: pd.DataFrame) -> pd.DataFrame:
    """How many environments entered and passed each stage that was asked of any of them.

    Columns: stage, entered, passed, share (passed of entered), low, high (Wilson, 95 %), of_all (passed of all with a
    verdict). Infrastructure failures are left out.
    """
    import pandas as pd

    judged = [r for r in records(admissions) if not r.get("infra")]
    rows = []
    for stage in STAGES:
        entered = [r for r in judged if _entered(r, stage)]
        if not entered:
            continue
        passed = sum(not _refused_at(r, stage) for r in entered)
        low, high = wilson(passed, len(entered))
        share = {"share": passed / len(entered), "low": low, "high": high, "of_all": passed / len(judged)}
        rows.append({"stage": stage, "entered": len(entered), "passed": passed, **share})
    return pd.DataFrame(rows, columns=["stage", "entered", "passed", "share", "low", "high", "of_all"])


def _entered(row: dict[str, Any], stage: str) -> bool:
    return stage in (row.get("seconds") or {}) or row["stage"] == stage


def _refused_at(row: dict[str, Any], stage: str) -> bool:
    return row["stage"] == stage and verdict(row) == "refused"


def trial_table(trials: pd.DataFrame) -> pd.DataFrame:
    """One row for each task and agent: n (attempts that count), mean and population std of reward, and what did not count."""
    import pandas as pd

    columns = ["task", "agent", "model", "n", "mean", "std", "policy", "not_counted", "turns", "seconds", "usd"]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in records(trials):
        groups.setdefault((row["task"], row["agent"], row.get("model") or ""), []).append(row)
    rows = []
    for (task, agent, model), members in groups.items():
        counted = [m for m in members if m["outcome"] in ("graded", "policy")]
        mean, std = mean_std([float(m["reward"] or 0) for m in counted]) if counted else (math.nan, math.nan)
        rows.append(
            {
                "task": task, "agent": agent, "model": model, "n": len(counted), "mean": mean, "std": std,
                "policy": sum(m["outcome"] == "policy" for m in counted), "not_counted": len(members) - len(counted),
                "turns": sum(m.get("turns") or 0 for m in members), "seconds": _total(members, "seconds"),
                "usd": _total(members, "usd"),
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _total(rows: Iterable[dict[str, Any]], key: str) -> float:
    """The sum; NaN when one part is unknown, since a sum of known prices would pass for the whole."""
    return math.fsum(math.nan if r.get(key) is None else float(r[key]) for r in rows)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts, with what pandas filled in for absent values as None."""
    rows = frame.to_dict("records") if len(frame) else []
    return [{str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in rows]
