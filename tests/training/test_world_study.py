"""What 60_worlds runs: groups on several seeds, and two verifiers on workspaces whose standing is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.proposer.ablation_corpus import build, open_ablation
from workbench.proposer.world import WorldProposer
from workbench.runs import load_profile, new_run
from workbench.sandboxes import SandboxError, get_backend
from workbench.training import world_study


@pytest.fixture(scope="module")
def backend():
    try:
        found = get_backend("bubblewrap")
        found.capabilities()
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")
    return found


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_PROFILE", raising=False)
    with new_run("60_try") as opened:
        yield opened


@pytest.fixture
def values(run):
    return load_profile("60_worlds", "smoke")


def test_the_task_is_written_once_and_whole(run, values):
    environment = world_study.open_environment(values)
    first = world_study.task_of(run, environment)
    (first.path / "mark").write_text("x")
    again = world_study.task_of(run, environment)
    assert (again.path / "mark").is_file()
    assert [p.name for p in (run.folder / "tasks").iterdir()] == [environment.task_id]


def test_phi_along_the_reference_ends_at_one_with_every_node(values):
    grades = world_study.reference_grades(world_study.open_environment(values))
    phis = [phi for _, phi, _ in grades]
    assert phis == sorted(phis)
    assert phis[-1] == 1
    assert set(grades[-1][2].values()) == {1.0}
    assert all(credit == 0 for stage, phi, nodes in grades if phi == 0 for credit in nodes.values())


@pytest.mark.slow
def test_a_group_is_one_environment_and_its_rollouts_differ(run, values, backend):
    table = world_study.starve(run, backend, load_profile("60_worlds", "smoke", group_size=4, skills=[0.5]))
    assert table["group"].nunique() == 1
    assert len(table) == 4
    assert set(table["population"]) == {"skill 0.5"}
    assert table["phi"].nunique() > 1


@pytest.mark.slow
def test_a_public_view_verifier_accepts_a_report_that_lies(run, backend):
    """The shipped one recomputes what the inputs tell; what was repaired stands in the sealed truth alone."""
    values = load_profile("60_worlds", "smoke", workspaces=0)
    worlds = WorldProposer(generators=("retail_warehouse",), tiers=("unit",))
    rows = build(open_ablation("public-view:sample", worlds), 1, run, backend, repeats=1)
    judged = {
        r["workspaces"]: r for r in world_study.compare_verifiers(run, backend, [Path(r["path"]) for r in rows], values)
    }
    assert judged["right"]["sealed_pass"] == judged["right"]["written_pass"] == judged["right"]["rollouts"] > 1
    assert judged["stale"]["sealed_pass"] == judged["unfinished"]["sealed_pass"] == 0
    assert judged["stale"]["false_pass"] == 1
    assert judged["unfinished"]["false_pass"] == 0
