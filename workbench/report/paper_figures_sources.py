"""What paper figures are drawn from: run folders, and labelled traces. Read once, and only when a figure asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import paths
from workbench.report import training_figures_rows as rows
from workbench.runs.folder import Run, find_run, list_runs, open_run
from workbench.runs.profiles import ProfileError, load_profile

if TYPE_CHECKING:
    import pandas as pd

    from workbench.report.labelled import Labelled


class NoData(ValueError):
    """A figure has nothing to be drawn from. The message says what it needs."""


@dataclass(frozen=True)
class Sources:
    """runs: to read. traces, labels: labelled episodes (see workbench.report.labelled.load_labelled)."""

    runs: Sequence[Run]
    traces: Path = field(default_factory=lambda: paths.DATA / "labels" / "episodes")
    labels: Path = field(default_factory=lambda: paths.DATA / "labels" / "labels")

    @cached_property
    def updates(self) -> pd.DataFrame:
        return rows.updates(self.runs)

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        return rows.evaluations(self.runs)

    @cached_property
    def phases(self) -> pd.DataFrame:
        return rows.phases(self.runs)

    @cached_property
    def progress_groups(self) -> list[list[dict[str, Any]]]:
        return rows.groups_with_progress(self.runs)

    @cached_property
    def cold_start(self) -> pd.DataFrame:
        return rows.cold_start(self.runs)

    @cached_property
    def cold_start_pairs(self) -> pd.DataFrame:
        return rows.cold_start_pairs(self.runs)

    @cached_property
    def cold_start_solving(self) -> pd.DataFrame:
        return rows.cold_start_solving(self.runs)

    @cached_property
    def labelled(self) -> Labelled:
        from workbench.report.labelled import load_labelled

        return load_labelled(self.traces, self.labels)

    @cached_property
    def learning_runs(self) -> list[Run]:
        """The runs with solver updates."""
        return [run for run in self.runs if run.id in set(self.updates["run"])]

    def of(self, notebook: str) -> list[Run]:
        """The runs of one notebook, by its name or its number."""
        return [run for run in self.runs if notebook in (run.notebook, run.notebook.split("_")[0])]

    def saved(self, notebook: str, kind: str, name: str) -> Path:
        """A file that the newest run of a notebook saved, say saved("60", "tables", "composition.csv"). NoData without one."""
        for run in reversed(self.of(notebook)):
            if (path := run.folder / kind / name).is_file():
                return path
        raise NoData(f"no run of notebook {notebook} has {kind}/{name}")


def default_runs(results: Path | None = None) -> list[Run]:
    """The newest finished run of each notebook below `results`, and of each of its arms, rewards and seeds where it has such parameters; those
    of `results/published` stand in for notebooks without a finished run. Runs of one notebook are of one profile: the newest run's."""
    results = results or paths.results()
    finished = [run for run in map(open_run, list_runs(results)) if run.state()["state"] == "done"]
    home = results if paths.CHECKOUT else paths.PACKAGE / "results"  # an installed package brings its own
    published = [open_run(p.parent) for p in sorted(home.glob("published/*/params.json"))]
    there = {run.notebook for run in finished}
    return _newest(finished) + _newest(run for run in published if run.notebook not in there)


def _newest(runs: Iterable[Run]) -> list[Run]:
    kept: dict[tuple[str, ...], Run] = {}
    ordered = [run for run in runs if not run.notebook.startswith("90_")]
    profile = {run.notebook: run.profile for run in ordered}  # the last one's
    for run in ordered:
        if run.profile == profile[run.notebook]:
            said = run.params["parameters"]
            apart = (said.get("arm") or "full", said.get("reward") or "fraction", said.get("seed", 0))
            kept[run.notebook, *map(str, apart)] = run
    return list(kept.values())


def settings_of(run: Run) -> tuple[dict[str, Any], dict[str, str]]:
    """(values, where each is from) of a run: its own parameters, and below them its profile's values as the profile is now."""
    said = {k: v for k, v in run.params["parameters"].items() if v not in (None, "")}
    try:
        profile = load_profile(run.notebook, run.profile).values_by_name
    except ProfileError:  # a run of another version, or of a notebook that is gone
        profile = {}
    values = {k: v for k, v in profile.items() if v not in (None, "")} | said
    return values, {k: f"parameter {k}" if k in said else f"profile {run.profile}, {k}" for k in values}


def chosen_runs(specs: Sequence[str], results: Path | None = None) -> list[Run]:
    """The runs that were asked for, by folder, id, or notebook/id; the default ones when none is. RunError names an unknown one."""
    return [open_run(find_run(spec)) for spec in specs] if specs else default_runs(results)
