"""The list of Tev's tables and figures: what each shows, needs, and the command that gets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.report import paper_figures_tev as tev
from workbench.report import paper_figures_traces as traces
from workbench.report import published, world_phi
from workbench.report import training_figures_tables as tables
from workbench.report.paper_figures import Artefact, Drawn
from workbench.report.paper_figures_autoenvscaling import table
from workbench.report.paper_figures_sources import NoData, Sources, settings_of

if TYPE_CHECKING:
    import pandas as pd

WORLDS = "workbench run 60_worlds"
FLYWHEEL = "workbench run 40_flywheel"
REWARDS = "workbench run 40_flywheel --grid reward pprs terminal pooled direct"
NO_TASKS = "ours are held-out worlds: ALE's and Terminal-Bench's tasks are not in this repository"
LIST = "a list of other people's tasks: printed, not measured"


def suites(prefix: str = "") -> Callable[[Sources], tuple[pd.DataFrame, str]]:
    """Scores of every evaluated set before and after training."""

    def cells(sources: Sources) -> tuple[pd.DataFrame, str]:
        if sources.evaluations.empty:
            raise NoData("no run was evaluated")
        found = tables.suite_scores(sources.evaluations, prefix)
        first = found[found["column"].str.endswith(" S@1")]
        return found, "; ".join(
            f"{r['row'].removeprefix('ours: ').split(' | ')[0]}, {r['column']} {r['value']}"
            for _, r in first.iterrows()
        )

    return cells


def table_05(sources: Sources) -> tuple[pd.DataFrame, str]:
    if not sources.learning_runs:
        raise NoData("no run has solver updates")
    arms = dict(zip(sources.updates["run"], sources.updates["arm"], strict=True))
    variants = {
        r.id: f"{r.params['parameters'].get('reward') or 'fraction'}, {arms[r.id]}" for r in sources.learning_runs
    }
    found = tables.ablation(sources.updates, sources.evaluations, variants)
    shown = found[found["column"].isin(["S@1", "groups discarded"])]
    return found, "; ".join(
        f"{r['row'].removeprefix('ours: ').split(' | ')[0]}: {r['column']} {r['value']}" for _, r in shown.iterrows()
    )


def table_11(sources: Sources) -> tuple[pd.DataFrame, str]:
    if not sources.learning_runs:
        raise NoData("no run has solver updates")
    run = sources.learning_runs[-1]
    found = tables.settings(tables.TEV_RECIPE, *settings_of(run))
    return found, f"{len(found)} settings of run {run.id}"


def fig_02(_: Sources) -> Drawn:
    return Drawn(*tev.ranking())


def fig_04(sources: Sources) -> Drawn:
    """The group whose rollouts end on the most different potentials, of those in which none passes when there are any."""
    groups = sources.progress_groups
    if not groups:
        raise NoData("no run has two attempts at one task that were graded after every turn")
    failed = [g for g in groups if not any(r["passed"] for r in g)] or groups
    best = max(failed, key=lambda g: (len({round(r["phi"], 6) for r in g}), len(g)))
    silent = sum(len({bool(r["passed"] and r["submitted"]) for r in g}) == 1 for g in groups)
    varied = sum(len({round(r["phi"], 6) for r in g}) > 1 for g in groups)
    told = f"{len(best)} rollouts of {best[0]['task']}; of {len(groups)} groups {silent} without variance of terminal reward, {varied} with variance of Φ"
    return Drawn(*world_phi.rollouts_figure(best), told)


def subset(name: str) -> Callable[[Sources], Drawn]:
    def draw(_: Sources) -> Drawn:
        fig, found = tev.representativeness(name)
        rows = found[found["model"].isin(["Pearson", "Spearman"])]
        told = ", ".join(f"{r['model']} {r['measure']} {r['subset']:.2f}" for _, r in rows.iterrows())
        return Drawn(fig, found, f"recomputed from the printed cells: {told}")

    return draw


def traced(case: str) -> Callable[[Sources], Drawn]:
    def draw(sources: Sources) -> Drawn:
        found = traces.decisions(sources.labelled, case)
        if found.empty:
            raise NoData(f"no labelled episode with chosen moments started from {case}")
        return Drawn(
            *traces.traced(sources.labelled, case), f"{found['episode'].nunique()} rollouts, {len(found)} decisions"
        )

    return draw


def table_17(sources: Sources) -> tuple[pd.DataFrame, str]:
    import pandas as pd

    found = traces.traced_scores(sources.labelled)
    rows = [
        [f"ours: {r['task']}", r["rollout"], r["score"], f"{r['role']}, {r['outcome']}, {r['turns']} turns"]
        for _, r in found.iterrows()
    ]
    return pd.DataFrame(
        rows, columns=list(tables.CELLS)
    ), f"{len(found)} traced rollouts of {found['task'].nunique()} tasks"


def saved(notebook: str, name: str, file: str, folder: str) -> Callable[[Sources], Drawn]:
    """A table that another notebook's run saved beside the published one; else the published one alone."""

    def draw(sources: Sources) -> Drawn:
        import pandas as pd

        try:
            path = sources.saved(notebook, folder, f"{file}.csv")
        except NoData:
            return Drawn(None, published.beside(name, pd.DataFrame(columns=list(tables.CELLS))))
        found = pd.read_csv(path, keep_default_na=False)
        return Drawn(None, found, f"{in_words(found)} (run {path.parent.parent.name})")

    return draw


def in_words(found: pd.DataFrame) -> str:
    """The first few cells of a table of 60_worlds, whatever its form."""
    if {"row", "column", "ours"} <= set(found.columns):
        cells = [f"{r['row']} {r['column']} {r['ours']}" for r in found[found["ours"] != ""].to_dict("records")]
    elif {"passed", "of"} <= set(found.columns):
        cells = [f"{found['passed'].sum()} of {found['of'].sum()} passed"]
    elif len(found.columns) == 2:
        cells = [f"{name} {value}" for name, value in found.to_numpy().tolist() if value != ""]
    else:
        cells = (
            [f"{name} {value}" for name, value in found.iloc[:1].to_dict("records")[0].items()] if len(found) else []
        )
    return ", ".join(cells[:4]) + (", …" if len(cells) > 4 else "")


def _graded(number: int, title: str, cells: tuple[tuple[str, str], ...]) -> Artefact:
    name = f"tev_table_{number:02d}"
    return Artefact(
        name, title, "evaluations before and after training", FLYWHEEL, table(name, suites()), cells, NO_TASKS
    )


def _subset(number: int, title: str, cells: tuple[tuple[str, str], ...]) -> Artefact:
    name = f"tev_table_{number:02d}"
    return Artefact(name, title, "published values", "workbench run 90_paper_figures", subset(name), cells)


def _worlds(
    name: str, file: str, title: str, needs: str, cells: tuple[tuple[str, str], ...] = (), folder: str = "tables"
) -> Artefact:
    return Artefact(name, title, needs, WORLDS, saved("60", name, file, folder), cells)


def _listed(number: int, title: str) -> Artefact:
    name = f"tev_table_{number:02d}"
    return Artefact(name, title, "–", "–", table(name), (), LIST)


def _trace(number: int, case: str) -> Artefact:
    name = f"tev_fig_{number:02d}"
    base = (("Qwen3.8-27B", "score"), ("Tev-27B", "score"))
    return Artefact(
        name,
        f"traced rollouts (ours: {case})",
        "labelled episodes with chosen moments",
        "workbench run 50_label_traces",
        traced(case),
        base,
    )


ALL = "All S@1"
ARTEFACTS = (
    _worlds("tev_table_01", "difficulty", "a corpus beside others", "worlds with measured difficulty", (("Tev-Gym", "P@1"), ("Tev-Gym", "P@8"))),
    Artefact("tev_fig_02", "models on TB 4.0-CM, ranked", "published values", "–", fig_02,
             (("Tev-27B", "gain over base"), ("Tev-320B", "gain over base")), NO_TASKS),
    _graded(2, "main results on ALE-CM", (("Qwen3.5-9B", ALL), ("Tev-9B", ALL), ("Qwen3.8-27B", ALL), ("Tev-27B", ALL))),
    _graded(3, "TB 3.0-CM and 4.0-CM", (("Qwen3.8-27B", "TB 4.0 All P@1"), ("Tev-27B", "TB 4.0 All P@1"))),
    _graded(4, "TB 2.1", (("Qwen3.5-9B", "Pass@1"), ("Tev-9B", "Pass@1"))),
    Artefact("tev_fig_04", "Φ along one group of rollouts", "rollouts graded after every turn", FLYWHEEL, fig_04,
             (("24 groups", "groups with variance of terminal reward"), ("24 groups", "groups with variance of Φ"))),
    Artefact("tev_table_05", "reward and data ablations", "runs that differ in the parameter reward", REWARDS, table("tev_table_05", table_05),
             (("Tev-9B", "S@1"), ("Sparse (terminal only)", "S@1"), ("Public-view verifier", "groups discarded")),
             "the data ablations make worlds, and train nothing here"),
    _trace(5, "chunk-recovery"),
    _listed(6, "the seven subdomains"),
    _worlds("tev_table_07", "gates", "qualification gates", "generated worlds", folder="figures"),
    _worlds("tev_table_08", "composition", "composition of the corpus", "generated worlds"),
    Artefact("tev_table_09", "how corpora are generated and gated", "–", "–", table("tev_table_09"), (), "printed statements on corpora, not measured"),
    _worlds("tev_table_10", "overlap", "overlap with evaluation tasks", "generated worlds and a folder of evaluation tasks"),
    Artefact("tev_table_11", "hyperparameters", "a run with solver updates", FLYWHEEL, table("tev_table_11", table_11),
             (("rollouts per task (G)", "value"), ("learning rate", "value"))),
    _listed(12, "the tasks of ALE-CM"),
    _listed(13, "the tasks of the TB subsets"),
    _subset(14, "TB 3.0: subset and whole", (("all models", "Pearson P@1"), ("all models", "Spearman P@1"))),
    _subset(15, "TB 4.0: subset and whole", (("all models", "Pearson P@1"), ("all models", "Spearman P@1"))),
    _subset(16, "ALE: split and whole", (("all models", "Pearson score"), ("all models", "Spearman score"))),
    _trace(7, "stack-language"),
    _trace(8, "config-merge"),
    Artefact("tev_fig_09", "traced rollouts, a fourth task", "a fourth task with labelled episodes", "workbench run 50_label_traces",
             traced("a fourth task"), (("Qwen3.8-27B", "score"), ("Tev-27B", "score")), "the shipped labelled episodes start from three tasks"),
    Artefact("tev_table_17", "scores of the traced rollouts", "labelled episodes", "workbench run 50_label_traces", table("tev_table_17", table_17),
             (("branch_bound_atsp", "base rollout"), ("branch_bound_atsp", "ours"))),
)  # fmt: skip
