"""From a notebook's values to a comparison: the configuration, the opened parts, the assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from workbench.admission.calibration import Calibration
from workbench.agents import Agent, Budget
from workbench.models.budget import Budget as Cap
from workbench.proposer import Assignment
from workbench.proposer.assignments import make_assignments
from workbench.proposer.compare import Comparison, attempts, share_past
from workbench.proposer.compare_config import Entry, entries, read_config
from workbench.proposer.compare_open import Opener
from workbench.proposer.compare_replies import Remembered
from workbench.proposer.tools import SolverTool
from workbench.runs.folder import Run
from workbench.sandboxes import get_backend
from workbench.tasks import Task

KEYS = ("models", "methods", "controls", "self_check", "optimize")


def configuration(values: Mapping[str, Any]) -> dict[str, Any]:
    """The profile's entries; a file (`config`) takes their place: what it does not say is the methods, self-check and
    controls of the profile, and no optimization."""
    config = {key: values[key] for key in KEYS}
    if not values["config"]:
        return config
    return {**config, "optimize": [], **read_config(values["config"])}


def make_comparison(
    run: Run, values: Mapping[str, Any], solver: Callable[[int], Agent], budget: Budget, cap: Cap | None = None
) -> Comparison:
    """All parts. solver: the agent of an attempt's number; budget: of its attempts; cap: of all dollars. CompareError tells what is wrong with
    the configuration before anything is spent."""
    backend, solver = get_backend(values["backend"]), remembered(solver, run)
    opener = Opener(
        run, backend, run.folder / "harness", rounds=values["feedback_rounds"],
        budget=Budget(values["harness_turns"], values["harness_tokens"], values["harness_seconds"], 900.0),
        solver=SolverTool(solver, values["calibration_rollouts"], budget), cap=cap,
        worlds={"tiers": tuple(values["world_tiers"])}, harness_worlds=values["harness_worlds"],
    )  # fmt: skip
    calibration = None
    if values["calibration_rollouts"]:
        calibration = Calibration(
            solver, values["calibration_rollouts"], values["calibration_more"], budget=budget, workers=values["workers"]
        )
    held_out = Path(values["held_out"]) if values["held_out"] else None
    return Comparison(
        run, backend, opener, entries(configuration(values)), revisions=values["revisions"], calibration=calibration,
        held_out=held_out, review=values["review"], workers=values["workers"], seed=values["seed"],
    )  # fmt: skip


def remembered(solver: Callable[[int], Agent], run: Run) -> Callable[[int], Agent]:
    """The solver with a model whose replies the run remembers; one without a `model` of its own as it is."""
    if not (is_dataclass(solver) and hasattr(solver, "model")):
        return solver
    return replace(solver, model=Remembered(solver.model, run, "solver"))  # type: ignore[type-var]


def make_list(comparison: Comparison, values: Mapping[str, Any], parents: Sequence[Task]) -> list[Assignment]:
    """The assignments that every entry answers, from the solver's attempts at the parents; recorded once."""
    assert comparison.opener.solver is not None
    solver = comparison.opener.solver
    found = attempts(
        comparison.run, parents, solver.agent_factory, comparison.backend, rollouts=values["rollouts"], budget=solver.budget,
        workers=values["workers"],
    )  # fmt: skip
    made = make_assignments(found, values["assignments"], run_id=comparison.run.id, round=1)
    if not made:
        last = found[-1][1][-1] if found and found[-1][1] else None
        why = f"{last.reason}: {last.message[:300]}" if last else "there are no parents"
        raise RuntimeError(f"no attempt on the parent environments counts; the last: {why}")
    rows = [comparison.run.once("assignment", a.id, a.to_row) for a in made]
    share_past(comparison.opener, comparison.entries, found)
    return [from_row(row) for row in rows]


def from_row(row: Mapping[str, Any]) -> Assignment:
    fields = {k: v for k, v in row.items() if k in Assignment.__dataclass_fields__}
    return Assignment(**{**fields, "evidence": tuple(fields["evidence"])})


def entry_table(values: Sequence[Entry]) -> list[dict[str, Any]]:
    """Who is compared, as rows."""
    shown = []
    for entry in values:
        spec, row = entry.spec, entry.to_row()
        price = (
            "none"
            if spec is None
            else f"{spec.price.input:g} / {spec.price.output:g}"
            if spec.price.known
            else "not stated"
        )
        shown.append({**row, "asks": spec.model if spec else "no model", "usd_per_million_in_out": price})
    return shown
