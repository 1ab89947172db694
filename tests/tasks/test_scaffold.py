from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.tasks import load_task
from workbench.tasks.lint import GATES, REPORTED, lint
from workbench.tasks.scaffold import scaffold, scaffold_texts
from workbench.tasks.verifier import is_managed


def test_layout_is_harbors(pristine):
    names = {str(p.relative_to(pristine / "one")) for p in (pristine / "one").rglob("*") if p.is_file()}
    assert names >= {
        "instruction.md", "task.toml", "environment/Dockerfile", "solution/solve.sh", "tests/test.sh", "tests/test_outputs.py",
        "README.md", ".gitignore",
    }  # fmt: skip
    task = load_task(pristine / "one")
    assert task.config["schema_version"] == "1.4"
    assert task.network == "no-network"
    assert is_managed(task.steps[0].tests / "test.sh")
    assert all(is_managed(step.tests / "test.sh") for step in load_task(pristine / "two").steps)


@pytest.mark.parametrize("kind", ["one", "two"])
def test_harbors_lint_has_nothing_against_it(pristine, kind):
    found = lint(pristine / kind)
    assert found.gates == ()
    assert {note.message.partition(":")[0] for note in found.notes} <= {
        "shared-verifier",
        "root-agent",
        "unpinned-image",
    }


def test_names(tmp_path):
    assert scaffold(tmp_path / "my-task").name == "local/my-task"
    for name in ("no-slash", "a/b/c", "a/..b", "", "a/b$name", "-a/b", "a/b\n"):
        with pytest.raises(ValueError, match="org/name"):
            scaffold(tmp_path / "never", name)
    assert not (tmp_path / "never").exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FileExistsError, match="not an empty folder"):
        scaffold(tmp_path, "a/b")
    with pytest.raises(FileExistsError):
        scaffold(tmp_path / "mine", "a/b")
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def graded(task: Path, work: Path, *, solve: bool) -> list[float]:
    """Rewards of the steps, played in a folder that stands for /app, by this interpreter."""
    rewards = []
    shutil.copytree(task / "environment", work / "app")
    for step in load_task(task).steps:
        local = work / (step.name or "step")
        shutil.copytree(step.tests, local / "tests")
        shutil.copytree(step.solution, local / "solution")
        for file in [p for p in local.rglob("*") if p.is_file()]:
            file.write_text(
                file.read_text()
                .replace("/app", f"{work}/app")
                .replace("/logs/verifier", f"{work}/logs")
                .replace("/opt/verifier/bin", str(Path(sys.executable).parent))
            )
        if solve:
            subprocess.run([local / "solution/solve.sh"], check=True, timeout=60)
        subprocess.run([local / "tests/test.sh"], check=True, timeout=60, capture_output=True)
        rewards.append(float((work / "logs/reward.txt").read_text()))
    return rewards


@pytest.mark.parametrize("kind", ["one", "two"])
def test_oracle_earns_everything_and_no_op_nothing(pristine, tmp_path, kind):
    assert set(graded(pristine / kind, tmp_path / "oracle", solve=True)) == {1.0}
    assert set(graded(pristine / kind, tmp_path / "noop", solve=False)) == {0.0}


def test_texts_are_the_instructions_it_writes(pristine):
    written = {p.read_text() for p in pristine.rglob("instruction.md")}
    assert written == set(scaffold_texts())
    assert not any(re.search(r"\$", text) for text in written)


def test_lint_sorts_harbors_rules(one):
    from harbor.lint.models import LintRule

    assert {str(rule) for rule in LintRule} == GATES | REPORTED
    assert not GATES & REPORTED
    (one / "environment/Dockerfile").write_text("FROM python\nWORKDIR /app\nCOPY tests/test_outputs.py /app/\n")
    (one / "solution/solve.sh").write_text("#!/bin/sh\npip install requests\n")
    found = lint(one)
    assert [(f.kind, f.where) for f in found.gates] == [("lint", "environment/Dockerfile:3")]
    assert found.gates[0].message.startswith("agent-image-test-leak")
    assert {note.where for note in found.notes} >= {"task.toml", "solution/solve.sh:2"}


def test_lint_survives_files_that_are_no_text(one):
    (one / "solution/solve.sh").write_bytes(b"#!/bin/sh\n\xff\xfe\n")
    assert "cannot read" in lint(one).gates[0].message
