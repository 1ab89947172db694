"""Tables of training beside the published ones: scores of arms, settings, Cold-Start and its solving control, ablations.

Each returns cells (columns row, column, value, note) that `workbench.report.published.beside` sets beside the paper's. Our rows keep
their own names where task set and model differ from the paper's, so that no cell claims to be the same measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from workbench.report.compare_paired import compare, sign_test
from workbench.statistics import bootstrap_interval, pass_at_k, wilson

if TYPE_CHECKING:
    import pandas as pd

CELLS = ("row", "column", "value", "note")

# Published rows of AutoEnvScaling Table 12 and Tev Table 11 → names of settings that runs record.
SHARED_MODEL = {
    "model": ("policy",),
    "solver groups per update": ("groups",),
    "rollouts per solver group": ("group",),
    "rollouts per proposer group": ("proposer_group",),
    "solver updates between proposer updates": ("proposer_every",),
    "solver updates between pool reviews": ("review_every",),
    "calibration rollouts, first": ("calibration_rollouts",),
    "calibration rollouts, near an edge": ("calibration_more",),
    "revisions": ("revisions",),
    "solver updates": ("steps",),
    "learning rate": ("learning_rate",),
    "divergence bound": ("delta",),
    "temperature": ("temperature",),
}
TEV_RECIPE = {
    "trust region": ("delta",),
    "rollouts per task (G)": ("group",),
    "tasks per step": ("groups",),
    "learning rate": ("learning_rate",),
    "temperature": ("temperature",),
    "tokens per turn": ("max_tokens",),
    "tool calls": ("turns",),
    "seed": ("seed",),
}


def settings(names: Mapping[str, Sequence[str]], values: Mapping[str, Any], where: Mapping[str, str]) -> pd.DataFrame:
    """AutoEnvScaling Table 12, Tev Table 11: the settings of a run under the published names; a run's other settings are left out.
    values, where: of workbench.report.paper_figures_sources.settings_of. A name that the run does not have has no cell."""
    rows = []
    for name, keys in names.items():
        found = [key for key in keys if values.get(key) not in (None, "")]
        if found:
            rows.append([name, "value", values[found[0]], where[found[0]]])
    return _cells(rows)


def endpoint_scores(common: pd.DataFrame) -> pd.DataFrame:
    """AutoEnvScaling Table 3: score of each arm at the common endpoint.
    common: of workbench.report.training_figures_arms.at_common_step. One row a set."""
    rows = [[f"ours | {r['set']}", r["arm"], round(r["percent"], 2), f"update {r['step']}, mean of {r['runs']} runs"]
            for _, r in common.iterrows()]  # fmt: skip
    return _cells(rows)


def task_measures(scores: Sequence[Mapping[str, Any]], k: int) -> dict[str, float]:
    """S@1, S@k, P@1, P@k over tasks (Tev Table 2). scores: task, rewards (graded ones), passes; tasks with fewer than k graded
    attempts are left out of S@k and P@k. NaN when no task is left."""
    graded = [s for s in scores if s["rewards"]]
    deep = [s for s in graded if len(s["rewards"]) >= k]
    return {
        "S@1": _mean([fmean(s["rewards"]) for s in graded]),
        f"S@{k}": _mean([_best(s["rewards"], k) for s in deep]),
        "P@1": _mean([s["passes"] / len(s["rewards"]) for s in graded]),
        f"P@{k}": _mean([pass_at_k(len(s["rewards"]), s["passes"], k) for s in deep]),
    }


def suite_scores(evaluations: pd.DataFrame, prefix: str = "") -> pd.DataFrame:
    """Tev Tables 2, 3 and 4: S@1, S@k, P@1, P@k of the first and the last evaluation of each arm on each set. The sets are ours: held-out
    worlds, or the folder of tasks that the run was given."""
    rows = []
    for (set_, arm, run), part in evaluations.sort_values("step").groupby(["set", "arm", "run"], sort=False):
        for when, one in dict(zip(("before", "after"), (part.iloc[0], part.iloc[-1]), strict=True)).items():
            for measure, value in task_measures(one["scores"], int(one["k"])).items():
                note = f"{one['tasks']} tasks, {one['k']} attempts, update {one['step']}, run {run}"
                rows.append([f"ours: {arm}, {when} | {run}", f"{prefix}{set_} {measure}", _rounded(value), note])
    return _cells(rows)


def ablation(updates: pd.DataFrame, evaluations: pd.DataFrame, variants: Mapping[str, str]) -> pd.DataFrame:
    """Tev Table 5: scores, time of a step and share of dropped groups of each reward variant. variants: run id → its name, say the
    parameter `reward`. Scores are of each run's last evaluation on its first set."""
    rows = []
    for run, name in variants.items():
        row, own = f"ours: {name} | {run}", updates[updates["run"] == run]
        if len(own):
            judged = own["accepted"].sum() + own["dropped"].sum()
            rows.append([row, "minutes per step", _rounded(own["step_minutes"].mean()), f"{len(own)} updates"])
            share = 100 * own["dropped"].sum() / judged if judged else math.nan
            rows.append([row, "groups discarded", _rounded(share, 1), f"of {judged} groups"])
        part = evaluations[evaluations["run"] == run].sort_values("step")
        if len(part):
            last = part[part["set"] == part["set"].iloc[0]].iloc[-1]
            for measure, value in task_measures(last["scores"], int(last["k"])).items():
                rows.append([row, measure, _rounded(value), f"{last['set']}, update {last['step']}"])
    return _cells(rows)


def paired_acceptance(pairs: pd.DataFrame) -> pd.DataFrame:
    """AutoEnvScaling Table 13, environments: acceptance before and after Cold-Start on the same assignments, with the disagreements.
    pairs: columns assignment, before, after (whether the answer was accepted)."""
    found = compare(list(pairs["after"]), list(pairs["before"]))
    rows: list[list[Any]] = [["both models", "assignments", found["pairs"], ""]]
    for name, only in (("before", "only_second"), ("after", "only_first")):
        k, n = found["both"] + found[only], found["pairs"]
        low, high = wilson(k, n)
        note = f"{k} of {n}, 95 % [{100 * low:.1f}, {100 * high:.1f}]"
        rows.append([f"ours: {name} Cold-Start", "acceptance rate", round(100 * k / n, 1) if n else "", note])
    rows.append(
        ["acceptance", "disagreements", found["only_first"] + found["only_second"], f"sign test p = {found['p']:.3g}"]
    )
    rows.append(["acceptance", "for Cold-Start", found["only_first"], ""])
    return _cells([*rows, ["acceptance", "for the base", found["only_second"], ""]])


def paired_solving(pairs: pd.DataFrame, k: int = 5) -> pd.DataFrame:
    """AutoEnvScaling Table 13, solving: mean paired change in points with its bootstrap interval over tasks, and whether more tasks are solved
    at least once. pairs: columns task, before, after: the passes (bool) of each task's attempts. The p of pass@k is a sign test over
    tasks solved at least once (the paper does not name its test)."""
    change = [100 * (fmean(a) - fmean(b)) for b, a in zip(pairs["before"], pairs["after"], strict=True)]
    low, high = bootstrap_interval(change)
    rows: list[list[Any]] = [["solving", "mean paired change", _rounded(_mean(change), 2), f"{len(pairs)} tasks"]]
    rows.append(["solving", "95 % bootstrap interval, low", _rounded(low, 2), ""])
    rows.append(["solving", "95 % bootstrap interval, high", _rounded(high, 2), ""])
    p = sign_test(sum(c > 0 for c in change), sum(c < 0 for c in change))
    rows.append(["solving", "sign test p", _rounded(p), "tasks without a change are left out"])
    once = compare([any(a) for a in pairs["after"]], [any(b) for b in pairs["before"]])
    deep = min(map(len, [*pairs["before"], *pairs["after"]]), default=0)
    if deep < k:  # fewer attempts: the row is told as what it is
        return _cells(
            [
                *rows,
                [f"solved in {deep} attempts", "p", _rounded(once["p"]), "sign test over tasks solved at least once"],
            ]
        )
    return _cells([*rows, [f"pass@{k}", "p", _rounded(once["p"]), "sign test over tasks solved at least once"]])


def _best(rewards: Sequence[float], k: int) -> float:
    """Expected best of k of these, drawn without replacement (as workbench.training.evaluate.best_of_k, which this room may not import)."""
    ordered = sorted(rewards)
    return math.fsum(r * math.comb(i, k - 1) for i, r in enumerate(ordered)) / math.comb(len(ordered), k)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _rounded(value: float, digits: int = 3) -> float | str:
    return "" if math.isnan(value) else round(value, digits)


def _cells(rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(CELLS), dtype=object)  # 4 stays 4 beside 0.01
