"""Figures of training from the journal of a real flywheel: tiny weights, real sandboxes (tests/training/learning_parts.py)."""

from __future__ import annotations

import pytest

from tests.training.learning_parts import VALUES, parents, tiny_policy
from workbench.report import paper_figures
from workbench.report import training_figures_rows as rows
from workbench.report.paper_figures_sources import Sources, default_runs
from workbench.runs.folder import new_run

pytestmark = pytest.mark.slow


def learned(folder, tasks, arm: str, steps: int):
    from workbench.training.setup_learning import make_learning

    values = {
        **VALUES,
        "parents": str(tasks),
        "arm": arm,
        "steps": steps,
        "proposer_every": 1,
        "evaluate_on": str(tasks),
        "attempts": 2,
    }
    run = new_run("40_flywheel", values, results=folder).begin()
    made = make_learning(run, values, policy=tiny_policy())
    made.say = lambda text: None
    made.learn()
    made.policy.close()
    run.write_status("done", 0)
    run.close()


def test_a_real_flywheels_journal_is_what_the_figures_read(tmp_path, run):
    tasks = parents(tmp_path / "parents")
    learned(tmp_path / "results", tasks, "full", 3)
    learned(tmp_path / "results", tasks, "static-pool", 2)
    sources = Sources(default_runs(tmp_path / "results"))
    assert sources.updates["step"].tolist() == [1, 2, 3, 1, 2]
    assert not sources.updates.isna().any(axis=None)
    assert (sources.phases["verdicts"] == 4).all()
    assert len(sources.phases) == 2  # the static pool has none
    assert set(sources.evaluations["arm"]) == {rows.ARMS[a] for a in ("full", "static-pool")}
    names = [
        "autoenvscaling_fig_06",
        "autoenvscaling_fig_07",
        "autoenvscaling_fig_20",
        "autoenvscaling_table_12",
        "tev_table_02",
        "tev_table_05",
    ]
    results = paper_figures.draw(run, sources, paper_figures.named(names))
    assert {r.status for r in results} == {"ours"}, [r.why for r in results]
