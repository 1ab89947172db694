"""A run's finished trials are read back by id: nothing is done twice, and nothing that must be done anew is kept."""

from __future__ import annotations

from workbench.admission.admit import admit
from workbench.agents.noop import NoOp
from workbench.runs.folder import new_run, open_run
from workbench.sandboxes import SandboxError
from workbench.trials.run import run_trial

from .small_tasks import A, B, Commands, Counting, Raises, make, write


def test_a_finished_trial_is_read_back_whole(tmp_path, backend):
    run = new_run("t", results=tmp_path / "results").begin()
    task = make(tmp_path / "task")
    first = run_trial(task, Commands(A), backend, run=run, id="one", seed=3)
    run.close()
    run = open_run(run.folder).begin()
    counting = Counting(backend)
    again = run_trial(task, Commands(A), counting, run=run, id="one", seed=3)
    assert counting.started == []
    assert again == first
    assert len(run.rows("trial")) == 1
    assert run_trial(task, Commands(A), backend, run=run, id="two").id == "two"
    run.close()


def test_infrastructure_and_other_bytes_are_run_anew(tmp_path, backend):
    run = new_run("t", results=tmp_path / "results").begin()
    task = make(tmp_path / "task")
    assert run_trial(task, Raises(SandboxError("lost")), backend, run=run, id="x").outcome == "infra"
    assert run_trial(task, NoOp(), backend, run=run, id="x").reward == 0.0
    changed = write(tmp_path / "task", {"instruction.md": "Something else.\n"})
    counting = Counting(backend)
    run_trial(changed, NoOp(), counting, run=run, id="x")
    assert len(counting.started) == 1
    run.close()


def test_a_leak_is_found_also_when_the_oracle_is_read_back(tmp_path, backend):
    solve = f"#!/bin/bash\n{A}\n{B}\necho a line that no other file of this task happens to hold\n"
    leak = {"solution/solve.sh": solve, "environment/notes/x.txt": "notes\n" + solve}
    task = write(tmp_path / "t", leak)
    run = new_run("t", results=tmp_path / "results").begin()
    first = admit(task, backend, repeats=1, run=run, id="a")
    second = admit(task, backend, repeats=1, run=run, id="a")
    assert "solution-in-image" in [r.kind for r in first.reasons]
    assert [r.kind for r in first.reasons] == [r.kind for r in second.reasons]
    assert [t.id for t in first.trials] == [t.id for t in second.trials]
    assert dict(first.report["solution_in_image"]) == dict(second.report["solution_in_image"])
    run.close()
