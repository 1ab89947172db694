"""Tables of a comparison of proposers, from its journal alone. Every rate shows its denominator.

Three columns, never mixed: `valid_paper` (builds, reference solution earns 1, doing nothing less than half: AutoEnvScaling
Fig. 4 and Table 2), `validated` (every stage before calibration) and `admitted` (and calibrated: the rate of Table 11).
The rates are of first submissions unless `last` is asked for: what a proposer made before the gate told it anything.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from workbench.report.tables import funnel, records
from workbench.runs.folder import Run
from workbench.statistics import beta_cdf, bootstrap_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("valid_paper", "validated", "admitted")
IDENTITY = ("entry", "kind", "model", "method", "agent", "family", "place", "self_check", "optimized")


def answers(run: Run) -> pd.DataFrame:
    """One row a unit with a verdict, in the order of the entries: IDENTITY (kind: model, scripted or program), assignment, the verdicts of the first and the last
    submission (`first_valid_paper` …), r_P, usd, turns, files, the solver's mean turns and reward on it, and `known`."""
    import pandas as pd

    solved = _solved(run)
    order = {row["id"]: n for n, row in enumerate(run.rows("entry"))}
    proposals = {row["id"]: row for row in run.rows("proposal")}
    rows = []
    for row in {r["id"]: r for r in run.rows("answer")}.values():
        flat = {k: row.get(k) for k in (*IDENTITY, "assignment", "reward", "first_reward", "usd", "turns", "first_turns",
                "seconds", "files", "data_files", "known")}  # fmt: skip
        for which in ("first", "last"):
            flat |= {f"{which}_{k}": v for k, v in row[which].items()}
        flat |= {
            "key": row["submissions"][-1],
            "first_key": row["submissions"][0],
            "submissions": len(row["submissions"]),
        }
        flat["solver_turns"], flat["solver_reward"] = solved.get(row["submissions"][-1], (math.nan, math.nan))
        flat["tokens"] = sum(proposals.get(key, {}).get("tokens", 0) for key in row["submissions"])
        rows.append(flat)
    scripted = {row["model"] for row in rows if row["known"] is not None}
    for row in rows:
        row["kind"] = (
            "program" if row["method"] in ("world", "program") else "scripted" if row["model"] in scripted else "model"
        )
    rows.sort(key=lambda r: (order.get(r["entry"], 99), r["assignment"]))
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else [*IDENTITY, "assignment"])


def _solved(run: Run) -> dict[str, tuple[float, float]]:
    """Submission → (mean turns, mean reward) of the solver's calibration attempts."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in run.rows("trial"):
        key, mark, rest = str(row["id"]).rpartition("-solver-")
        if mark and rest.isdigit() and row["outcome"] in ("graded", "policy"):
            found[key].append((float(row["turns"]), float(row["reward"] or 0.0)))
    return {k: (math.fsum(t for t, _ in v) / len(v), math.fsum(r for _, r in v) / len(v)) for k, v in found.items()}


def _groups(frame: pd.DataFrame) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in records(frame):
        groups.setdefault(row["entry"], []).append(row)
    return [({k: rows[0].get(k) for k in IDENTITY}, rows) for rows in groups.values()]


def validity(frame: pd.DataFrame, run: Run | None = None, submission: str = "first") -> pd.DataFrame:
    """One row an entry and column: k of n with Wilson's 95 % interval. n: units with a verdict; `admitted` has n = 0 when the
    comparison did not calibrate. no_verdict: units that infrastructure or the spending cap left without one."""
    import pandas as pd

    missing = _missing(run) if run is not None else {}
    open_columns = {c for c in COLUMNS for m in records(frame) if m.get(f"{submission}_{c}") is None}  # not calibrated
    rows = []
    for head, members in _groups(frame):
        for column in COLUMNS:
            values = [] if column in open_columns else [m[f"{submission}_{column}"] for m in members]
            k, n = sum(map(bool, values)), len(values)
            low, high = wilson(k, n)
            rows.append({**head, "column": column, "k": k, "n": n, "share": k / n if n else math.nan, "low": low,
                         "high": high, "no_verdict": missing.get(head["entry"], 0)})  # fmt: skip
    names = [*IDENTITY, "column", "k", "n", "share", "low", "high", "no_verdict"]
    return pd.DataFrame(rows, columns=names)


def _missing(run: Run) -> dict[str, int]:
    done = {row["id"] for row in run.rows("answer")}
    count: dict[str, int] = defaultdict(int)
    for row in {r["id"]: r for r in run.rows("unanswered")}.values():
        count[row["entry"]] += row["id"] not in done
    return dict(count)


def plain_entries(table: pd.DataFrame) -> pd.DataFrame:
    """Without the ablation's and the optimized harnesses: what the methods are compared by."""
    return table[table["self_check"].astype(bool) & ~table["optimized"].astype(bool)].reset_index(drop=True)


def method_means(rates: pd.DataFrame, column: str = "valid_paper") -> pd.DataFrame:
    """Mean rate over models of each method with its 95 % t interval (Fig. 1 left; the paper does not say which interval).
    Models and scripted designers are never averaged together. One model has no interval. Programs are left out."""
    import pandas as pd

    rows = []
    part = plain_entries(rates[(rates["column"] == column) & (rates["kind"] != "program")])
    for kind, method in dict.fromkeys(zip(part["kind"], part["method"], strict=True)):
        shares = [float(s) for s in part[(part["method"] == method) & (part["kind"] == kind)]["share"].dropna()]
        if not shares:
            continue
        mean, half = math.fsum(shares) / len(shares), t_half_width(shares)
        low, high = (max(0.0, mean - half), min(1.0, mean + half)) if len(shares) > 1 else (math.nan, math.nan)
        rows.append({"kind": kind, "method": method, "n": len(shares), "mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["kind", "method", "n", "mean", "low", "high"])


def t_half_width(values: list[float], conf: float = 0.95) -> float:
    """Half the width of Student's interval for a mean; NaN for one value."""
    n = len(values)
    if n < 2:
        return math.nan
    mean = math.fsum(values) / n
    error = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    low, high, nu = 0.0, 1e3, n - 1
    for _ in range(80):  # P(|T| > t) = I_{nu/(nu+t²)}(nu/2, 1/2) falls in t
        t = (low + high) / 2
        low, high = (t, high) if beta_cdf(nu / (nu + t * t), nu / 2, 0.5) > 1 - conf else (low, t)
    return (low + high) / 2 * error


def weakening(rates: pd.DataFrame, column: str = "valid_paper") -> pd.DataFrame:
    """Rates of models that belong to a family, strongest first (Fig. 4 right)."""
    part = plain_entries(rates[(rates["column"] == column) & (rates["family"].fillna("") != "")])
    return part.sort_values(["family", "method", "place"], kind="stable").reset_index(drop=True)


def costs(frame: pd.DataFrame) -> pd.DataFrame:
    """What a valid environment costs (Table 2): all spend, failures included, over `valid_paper` of last submissions; also
    sampled tokens and the proposer's seconds. NaN: a price is unknown, or nothing is valid (`valid` says which)."""
    import pandas as pd

    rows = []
    for head, members in _groups(frame):
        valid = sum(bool(m["last_valid_paper"]) for m in members)
        usd = math.fsum(math.nan if m["usd"] is None else m["usd"] for m in members)
        tokens, seconds = sum(m["tokens"] or 0 for m in members), math.fsum(m["seconds"] or 0.0 for m in members)
        each = {f"{k}_per_valid": v / valid if valid else math.nan
                for k, v in (("usd", usd), ("tokens", tokens), ("seconds", seconds))}  # fmt: skip
        rows.append({**head, "assignments": len(members), "valid": valid, "usd": usd, **each})
    names = ["assignments", "valid", "usd", "usd_per_valid", "tokens_per_valid", "seconds_per_valid"]
    return pd.DataFrame(rows, columns=[*IDENTITY, *names])


MEASURES = ("files", "data_files", "solver_turns", "solver_reward")


def richness(frame: pd.DataFrame) -> pd.DataFrame:
    """Files, the solver's turns and its mean reward of environments that are `valid_paper` (Fig. 5), one row an entry and
    measure: n environments, mean, bootstrap 95 % interval. Turns and reward need a calibrated environment."""
    import pandas as pd

    rows = []
    for head, members in _groups(frame):
        valid = [m for m in members if m["last_valid_paper"]]
        for measure in MEASURES:
            values = [float(m[measure]) for m in valid if m[measure] is not None]
            low, high = bootstrap_interval(values)
            mean = math.fsum(values) / len(values) if values else math.nan
            rows.append({**head, "measure": measure, "n": len(values), "mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows, columns=[*IDENTITY, "measure", "n", "mean", "low", "high"])


def turns(frame: pd.DataFrame) -> pd.DataFrame:
    """Turns per proposer episode (Fig. 22): quartiles, and whiskers at the furthest turn within 1.5 interquartile ranges.
    Entries without turns (no model) are left out. Turns are of the first submission's episode."""
    import pandas as pd

    rows = []
    for head, members in _groups(frame):
        values = pd.Series([float(m["first_turns"]) for m in members if m["first_turns"]])
        if not len(values):
            continue
        q1, med, q3 = (float(values.quantile(q)) for q in (0.25, 0.5, 0.75))
        inside = values[(values >= q1 - 1.5 * (q3 - q1)) & (values <= q3 + 1.5 * (q3 - q1))]
        rows.append(
            {**head, "n": len(values), "low": inside.min(), "q1": q1, "median": med, "q3": q3, "high": inside.max()}
        )
    return pd.DataFrame(rows, columns=[*IDENTITY, "n", "low", "q1", "median", "q3", "high"])


def stages(frame: pd.DataFrame, run: Run) -> pd.DataFrame:
    """How many first submissions of each entry entered and passed each stage of the gate, with Wilson's interval."""
    import pandas as pd

    parts, verdicts = [], {row["id"]: row for row in run.rows("admission")}
    for head, members in _groups(frame):
        part = funnel(pd.DataFrame([verdicts[m["first_key"]] for m in members]))
        parts.append(part.assign(**head)[[*IDENTITY, *part.columns]])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*IDENTITY, "stage"])


def known(frame: pd.DataFrame) -> pd.DataFrame:
    """Entries whose validity is known beforehand: what had to come out, what came out, and on how many units they differ."""
    import pandas as pd

    rows = []
    for head, members in _groups(frame):
        pairs = [(m["known"], bool(m["first_valid_paper"])) for m in members if m["known"] is not None]
        if pairs:
            rows.append({"entry": head["entry"], "n": len(pairs), "known_valid": sum(bool(k) for k, _ in pairs),
                         "measured_valid": sum(v for _, v in pairs), "differ": sum(bool(k) != v for k, v in pairs)})  # fmt: skip
    return pd.DataFrame(rows, columns=["entry", "n", "known_valid", "measured_valid", "differ"])


def unanswered(run: Run) -> pd.DataFrame:
    """Units without a verdict: entry, assignment, why (infra, cap), message."""
    import pandas as pd

    done = {row["id"] for row in run.rows("answer")}
    rows = [r for r in {r["id"]: r for r in run.rows("unanswered")}.values() if r["id"] not in done]
    return pd.DataFrame(rows, columns=["entry", "assignment", "why", "message"])
