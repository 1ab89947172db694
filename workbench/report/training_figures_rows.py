"""A flywheel's journals as tables for figures: one row an update, an evaluation, a proposer phase, a task.

Read from the rows `update`, `evaluation`, `rollout` and `trial` (docs/records.md); a run without them gives empty tables. Arms have
the names under which the papers' numbers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from workbench.runs.folder import Run

if TYPE_CHECKING:
    import pandas as pd

ARMS = {
    "full": "full",
    "static-pool": "static pool (Tmax)",
    "no-proposer-training": "no proposer training",
    "no-feedback": "no solver feedback",
    "external": "external proposer",
}
UPDATES = (
    "run",
    "arm",
    "step",
    "accepted",
    "collected",
    "useful",
    "minutes",
    "reward",
    "rollouts",
    "pool",
    "dropped",
    "step_minutes",
)
EVALUATIONS = (
    "run", "arm", "set", "step", "k", "tasks", "attempts", "ungraded", "avg", "low", "high", "pass@1", "pass@k", "S@k", "scores",
)  # fmt: skip
PHASES = ("run", "arm", "step", "asked", "verdicts", "malformed", "valid", "out_of_band", "admitted", "mean_reward")


def arm_of(run: Run, row: dict[str, Any]) -> str:
    """The row's arm, else the run's parameter `arm`, else "full"."""
    said = row.get("arm") or run.params["parameters"].get("arm") or "full"
    return ARMS.get(str(said), str(said))


def updates(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a solver update: columns UPDATES. accepted: groups that vary and train. collected: groups that were completed in this
    step. useful: accepted of those that were judged for this step (accepted and dropped). minutes: of collection."""
    rows = []
    for run in runs:
        for row in _last(run.rows("update")):
            collect = row["collect"]
            rows.append([
                run.id, arm_of(run, row), row["step"], collect["accepted"], collect["collected"], collect["useful"],
                collect["seconds"] / 60, row["solver_reward"], row["rollouts"], row["pool"], sum(collect["dropped"].values()),
                row["step_seconds"] / 60,
            ])  # fmt: skip
    return _table(rows, UPDATES)


def evaluations(runs: Iterable[Run]) -> pd.DataFrame:
    """One row an evaluation of a policy on a set: columns EVALUATIONS. low, high: 95 %, by bootstrap over tasks. scores: of each
    task, as they stand in the journal."""
    rows = []
    for run in runs:
        for row in (r for r in _last(run.rows("evaluation")) if "step" in r):  # Cold-Start's have none
            k, (low, high) = row["k"], row["avg_interval"]
            rows.append([
                run.id, arm_of(run, row), row["set"], row["step"], k, row["tasks"], row["attempts"], row["ungraded"], row["avg"], low,
                high, row["pass@1"], row[f"pass@{k}"], row[f"S@{k}"], row["scores"],
            ])  # fmt: skip
    return _table(rows, EVALUATIONS)


def phases(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a proposer phase: columns PHASES. The policy is the one before the update `step`. valid: passed every check before
    calibration, of those with a verdict."""
    rows = []
    for run in runs:
        for row in _last(run.rows("update")):
            if found := row.get("proposer"):
                rows.append([run.id, arm_of(run, row), row["step"] - 1, *(found[name] for name in PHASES[3:])])
    return _table(rows, PHASES)


def groups_with_progress(runs: Iterable[Run]) -> list[list[dict[str, Any]]]:
    """Groups of attempts at one task that were graded after every turn (Tev §3.2), of `trial` and of `rollout` rows; each attempt
    with agent, progress, phi, passed, submitted, reward. Attempts that infrastructure ended are left out."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for run in runs:
        for row in _last(run.rows("trial")):
            _graded(found, (run.id, "trial", row["digest"]), row, str(row.get("agent", "")))
        for row in _last(run.rows("rollout")):
            if row["role"] == "solver":
                _graded(found, (run.id, "rollout", row["group"]), row, str(row.get("what", "")))
    return [rows for rows in found.values() if len(rows) > 1]


def _graded(
    found: dict[tuple[str, ...], list[dict[str, Any]]], key: tuple[str, ...], row: dict[str, Any], who: str
) -> None:
    progress = list(row.get("progress") or ())
    if progress and row.get("outcome") in ("graded", "policy"):
        phi = row["phi"] if row.get("phi") is not None else progress[-1]
        kept = {"agent": who, "progress": progress, "phi": phi, "task": row.get("task", "")}
        found.setdefault(key, []).append(kept | {name: row.get(name) for name in ("passed", "submitted", "reward")})


def cold_start(runs: Iterable[Run]) -> pd.DataFrame:
    """Valid environments before and after Cold-Start: columns model, k (passed every check before calibration), n (with a verdict)."""
    found = cold_start_pairs(runs)
    names = {"before": "before Cold-Start", "after": "after Cold-Start"}
    return _table(
        [[names[when], int(found[when].sum()), len(found)] for when in names if len(found)], ("model", "k", "n")
    )


def cold_start_pairs(runs: Iterable[Run]) -> pd.DataFrame:
    """Assignments that both policies answered, with a verdict: columns assignment, before, after (valid or not). From `proposal` rows
    whose ids are before-N and after-N (workbench.training.cold_start_measures)."""
    rows = []
    for run in runs:
        sides: dict[str, dict[str, bool]] = {"before": {}, "after": {}}
        for row in _last(run.rows("proposal")):
            when, _, number = str(row["id"]).partition("-")
            if when in sides and row.get("reward") is not None and "valid" in row:
                sides[when][number] = bool(row["valid"])
        rows += [
            [f"{run.id}/{n}", said, sides["after"][n]] for n, said in sides["before"].items() if n in sides["after"]
        ]
    return _table(rows, ("assignment", "before", "after"))


def cold_start_solving(runs: Iterable[Run]) -> pd.DataFrame:
    """Tasks that both policies attempted, from the `evaluation` rows "before" and "after": columns task, before, after, each a list
    of passed or not. Tasks without a graded attempt on one side are left out."""
    rows = []
    for run in runs:
        sides: dict[str, dict[str, list[bool]]] = {"before": {}, "after": {}}
        for row in _last(run.rows("evaluation")):
            for score in row["scores"] if row["id"] in sides else ():
                sides[row["id"]][score["digest"]] = [i < score["passes"] for i in range(len(score["rewards"]))]
        both = [d for d, tries in sides["before"].items() if tries and sides["after"].get(d)]
        rows += [[d, sides["before"][d], sides["after"][d]] for d in both]
    return _table(rows, ("task", "before", "after"))


def common_step(table: pd.DataFrame) -> int | None:
    """The last update at which every arm of the table was evaluated (G.1: arms are compared at a common endpoint)."""
    reached = [set(part["step"]) for _, part in table.groupby("arm")]
    both = set.intersection(*reached) if reached else set()
    return int(max(both)) if both else None


def _last(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last record of each id: a resumed run may have written a step twice."""
    return list({row["id"]: row for row in rows}.values())


def _table(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))
