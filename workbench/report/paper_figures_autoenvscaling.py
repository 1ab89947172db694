"""AutoEnvScaling's tables and figures: how each is drawn from runs (see workbench.report.paper_figures)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.report import compare_figures, compare_paired, compare_tables, published, trace_figures
from workbench.report import training_figures as training
from workbench.report import training_figures_arms as arms
from workbench.report import training_figures_tables as tables
from workbench.report.paper_figures import Drawn
from workbench.report.paper_figures_sources import NoData, Sources, settings_of

if TYPE_CHECKING:
    import pandas as pd


def table(name: str, cells: Callable[[Sources], tuple[pd.DataFrame, str]] | None = None) -> Callable[[Sources], Drawn]:
    """A published table with our cells beside it, or alone when there are none."""

    def draw(sources: Sources) -> Drawn:
        import pandas as pd

        try:
            ours, told = cells(sources) if cells else (pd.DataFrame(columns=list(tables.CELLS)), "")
        except NoData:
            ours, told = pd.DataFrame(columns=list(tables.CELLS)), ""
        return Drawn(None, published.beside(name, ours), told)

    return draw


def _need(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    if frame.empty:
        raise NoData(f"no run has {what}")
    return frame


def _comparison(sources: Sources) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(answers, rates) of the newest comparison of proposers."""
    runs = [run for run in sources.of("20") if run.rows("answer")]
    if not runs:
        raise NoData("no run compares proposers")
    frame = compare_tables.answers(runs[-1])
    return frame, compare_tables.validity(frame, runs[-1])


def _rates(rates: pd.DataFrame) -> str:
    part = compare_tables.plain_entries(rates[rates["column"] == "valid_paper"])
    found = part.groupby("method", sort=False)[["k", "n"]].sum()
    return "; ".join(f"{method} {row['k']}/{row['n']} valid" for method, row in found.iterrows())


def fig_01_left(sources: Sources) -> Drawn:
    _, rates = _comparison(sources)
    return Drawn(*compare_figures.method_means(compare_tables.method_means(rates)), _rates(rates))


def fig_01_middle(sources: Sources) -> Drawn:
    found = arms.at_common_step(
        sources.evaluations[sources.evaluations["arm"].isin(["external proposer", "static pool (Tmax)"])]
    )
    two = found[found["set"].isin(_sets_with(found, 2))]
    return Drawn(*arms.gains("autoenvscaling_fig_01_middle", _bars(two), "score (%)"), _scores(two))


def fig_01_right(sources: Sources) -> Drawn:
    chosen = sources.evaluations[sources.evaluations["arm"].isin(["full", "static pool (Tmax)"])]
    found = arms.at_common_step(chosen)
    start = chosen[chosen["step"] == 0].groupby("set")["avg"].mean()
    bars = [{"row": s, "column": "cold start", "value": 100 * v} for s, v in start.items() if s in set(found["set"])]
    return Drawn(*arms.gains("autoenvscaling_fig_01_right", [*bars, *_bars(found)], "score (%)"), _scores(found))


def _sets_with(found: pd.DataFrame, count: int) -> list[str]:
    counts = found.groupby("set")["arm"].nunique()
    return list(counts[counts >= count].index)


def _bars(found: pd.DataFrame) -> list[dict[str, object]]:
    return [{"row": r["set"], "column": r["arm"], "value": r["percent"]} for _, r in found.iterrows()]


def _scores(found: pd.DataFrame) -> str:
    parts = [f"{s}: " + ", ".join(f"{r['arm']} {r['percent']:.1f} %" for _, r in part.iterrows()) + f" (update {part['step'].iloc[0]})"
             for s, part in found.groupby("set", sort=False)]  # fmt: skip
    return "; ".join(parts)


def fig_04(sources: Sources) -> Drawn:
    _, rates = _comparison(sources)
    return Drawn(*compare_figures.validity_by_model(rates), _rates(rates))


def fig_06(sources: Sources) -> Drawn:
    rows = sources.evaluations
    told = []
    for (set_, arm), part in rows.sort_values("step").groupby(["set", "arm"], sort=False):
        first, last = (part[part["step"] == part["step"].agg(end)]["avg"].mean() for end in ("min", "max"))
        told.append(f"{set_}, {arm}: {100 * first:.1f} → {100 * last:.1f} % in {part['step'].max()} updates")
    return Drawn(*training.learning_curves(rows), "; ".join(told))


def fig_07(sources: Sources) -> Drawn:
    rows = _need(sources.updates, "solver updates")
    cells = training.collection_summary(rows)
    told = []
    for row, part in cells.groupby("row", sort=False):
        rate, time = part.set_index("column")["value"][["useful-group rate", "collection time"]]
        told.append(
            f"{row}: {rate:g} times, time {time:+g} %"
            if " against " in row
            else f"{row} {rate:g} % useful, {time:g} minutes"
        )
    return Drawn(*training.collection(rows), "; ".join(told))


def fig_20(sources: Sources) -> Drawn:
    rows = sources.phases
    told = []
    for arm, part in rows.sort_values("step").groupby("arm", sort=False):
        first, last = part[part["step"] == part["step"].min()], part[part["step"] == part["step"].max()]
        ends = [
            f"{100 * p['valid'].sum() / p['verdicts'].sum():.1f}" if p["verdicts"].sum() else "–" for p in (first, last)
        ]
        told.append(f"{arm}: {ends[0]} → {ends[1]} % valid, updates {part['step'].min()} to {part['step'].max()}")
    return Drawn(*training.proposer_validity(rows), "; ".join(told))


def fig_21(sources: Sources) -> Drawn:
    measured = sources.cold_start
    told = ", ".join(f"{r['model']} {r['k']}/{r['n']}" for _, r in measured.iterrows())
    return Drawn(*training.cold_start_validity(measured), told)


def fig_05(sources: Sources) -> Drawn:
    frame, _ = _comparison(sources)
    measured = compare_tables.richness(frame)
    part = compare_tables.plain_entries(measured[measured["measure"] == "files"])
    return Drawn(
        *compare_figures.richness(measured),
        ", ".join(f"{r['entry']} {r['mean']:.1f} files" for _, r in part.iterrows() if r["n"]),
    )


def fig_22(sources: Sources) -> Drawn:
    frame, _ = _comparison(sources)
    turns = _need(compare_tables.turns(frame), "proposer episodes with turns")
    return Drawn(
        *compare_figures.turns(turns), ", ".join(f"{r['entry']} median {r['median']:g}" for _, r in turns.iterrows())
    )


def fig_08(case: str) -> Callable[[Sources], Drawn]:
    """Fig. 8, 23, 24: the labelled paths of the proposers that started from one failed task."""

    def draw(sources: Sources) -> Drawn:
        found = sources.labelled
        part = found.of(case=case, role="propose")
        _need(part, f"labelled episodes that started from {case}")
        drawn = trace_figures.label_paths(
            part, found.moments, names=found.names(), title=f"Environment design from one failed task: {case}"
        )
        agree = 100 * (part["label"] == part["guess"]).groupby(part["episode"]).mean()
        told = f"{part['episode'].nunique()} episodes, {len(part)} turns, classifier agrees on {agree.min():.0f} to {agree.max():.0f} %"
        return Drawn(*drawn, told)

    return draw


def fig_03(sources: Sources) -> Drawn:
    runs = _need(sources.labelled.of(role="propose"), "labelled proposer episodes")
    return Drawn(*trace_figures.spent_over_time(runs), f"{runs['episode'].nunique()} episodes, {len(runs)} turns")


def table_03(sources: Sources) -> tuple[pd.DataFrame, str]:
    common = _need(arms.at_common_step(sources.evaluations), "evaluations of arms at a common update")
    return tables.endpoint_scores(common), _scores(common)


def table_02(sources: Sources) -> tuple[pd.DataFrame, str]:
    """Our entries in rows of their own: rate of first submissions, cost of last ones."""
    frame, rates = _comparison(sources)
    part = compare_tables.plain_entries(rates[rates["column"] == "valid_paper"])
    rows = [[f"ours: {r['entry']}", "valid-environment rate", round(100 * r["share"], 1), f"{r['k']} of {r['n']}"]
            for _, r in part.iterrows() if r["n"]]  # fmt: skip
    for _, r in compare_tables.plain_entries(compare_tables.costs(frame)).iterrows():
        if r["usd_per_valid"] == r["usd_per_valid"]:
            rows.append([f"ours: {r['entry']}", "cost per valid environment", round(r["usd_per_valid"], 4), "USD"])
    return _cells(rows), _rates(rates)


def table_11(sources: Sources) -> tuple[pd.DataFrame, str]:
    frame, _ = _comparison(sources)
    found = _need(compare_paired.self_check(frame), "harness entries with and without the self-check")
    rows = []
    for _, r in found[found["column"] == "valid_paper"].iterrows():
        for side, column in (("without_check", "self-check disabled"), ("with_check", "self-check enabled")):
            rows.append(
                [f"ours: {r['first']}", column, round(100 * r[side], 1), f"{r['pairs']} assignments, p = {r['p']:.3g}"]
            )
    return _cells(rows), "; ".join(f"{r[1]} {r[2]} %" for r in rows)


def table_12(sources: Sources) -> tuple[pd.DataFrame, str]:
    if not sources.learning_runs:
        raise NoData("no run has solver updates")
    cells = tables.settings(tables.SHARED_MODEL, *settings_of(sources.learning_runs[-1]))
    return cells, f"{len(cells)} settings of run {sources.learning_runs[-1].id}"


def table_13(sources: Sources) -> tuple[pd.DataFrame, str]:
    pairs, solving = sources.cold_start_pairs, sources.cold_start_solving
    if pairs.empty and solving.empty:
        raise NoData("no run compares a policy before and after Cold-Start")
    parts = [tables.paired_acceptance(pairs)] if len(pairs) else []
    parts += [tables.paired_solving(solving)] if len(solving) else []
    cells = _cells([row for part in parts for row in part.to_numpy().tolist()])
    shown = ("acceptance rate", "for Cold-Start", "for the base", "mean paired change")
    told = [
        f"{c['row'].removeprefix('ours: ')}, {c['column']} {c['value']}"
        for _, c in cells.iterrows()
        if c["column"] in shown
    ]
    return cells, "; ".join(told)


def _cells(rows: list[list[object]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(tables.CELLS), dtype=object)  # counts stay whole numbers
