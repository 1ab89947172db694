"""Every world is a Harbor task like any other: its reference earns 1 in a sandbox, nothing earns 0, admission lets it in."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.admission.admit import admit
from workbench.agents import get_agent
from workbench.sandboxes import SandboxError, get_backend
from workbench.tasks import load_task
from workbench.trials.run import run_trial
from workbench.worlds import build
from workbench.worlds.catalog import get, names
from workbench.worlds.export import export_environment


@pytest.fixture(scope="session")
def backend():
    try:
        found = get_backend("bubblewrap")
        found.capabilities()
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")
    return found


def tier_of(name):
    return get(name).world.SPEC.tiers[0]


def bytes_of(folder: Path) -> str:
    out = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        out.update(
            path.relative_to(folder).as_posix().encode() + path.read_bytes() + bytes([path.stat().st_mode & 0o100])
        )
    return out.hexdigest()


FEW = (
    "micro_shelf",
    "retail_warehouse",
    "building_control",
)  # the others, in the slow suite, differ in their files only


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in names()])
def test_the_reference_earns_one_and_nothing_earns_zero(tmp_path, backend, name):
    task = load_task(export_environment(build(name, 11, tier_of(name)), tmp_path / "t"))
    oracle = run_trial(task, get_agent("oracle"), backend)
    assert (oracle.outcome, oracle.reward, oracle.passed, oracle.phi) == ("graded", 1.0, True, 1.0), oracle.message
    noop = run_trial(task, get_agent("noop"), backend)
    assert (noop.outcome, noop.reward, noop.passed) == ("graded", 0.0, False), noop.message


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_admission_lets_it_in(tmp_path, backend, name):
    for tier in get(name).world.SPEC.tiers:
        verdict = admit(export_environment(build(name, 12, tier), tmp_path / tier), backend)
        assert verdict.validated, [reason.message for reason in verdict.reasons]


@pytest.mark.parametrize("name", names())
def test_the_same_bytes_twice_and_no_answer_in_sight(tmp_path, name):
    first = export_environment(build(name, 5, tier_of(name)), tmp_path / "a")
    again = export_environment(build(name, 5, tier_of(name)), tmp_path / "b")
    assert bytes_of(first) == bytes_of(again)
    assert {p.name for p in (first / "environment").iterdir()} == {"Dockerfile", "input"}
    assert not any(p.is_symlink() for p in first.rglob("*"))


def test_a_stale_output_earns_nothing_though_its_files_are_plausible(tmp_path, backend):
    name = "retail_warehouse"
    environment = build(name, 11, "unit")
    path = export_environment(environment, tmp_path / "t")
    stale = get(name).hidden.stale(environment.world, environment.defects)
    for index, (what, tree) in enumerate(sorted(stale.items())):
        shutil.copytree(path, tmp_path / f"s{index}")
        solve = tmp_path / f"s{index}" / "solution"
        for file, data in tree.items():
            (solve / file).parent.mkdir(parents=True, exist_ok=True)
            (solve / file).write_bytes(data)
        (solve / "solve.sh").write_text("#!/bin/bash\nmkdir -p /app/output && cp -r /solution/output/. /app/output/\n")
        trial = run_trial(load_task(tmp_path / f"s{index}"), get_agent("oracle"), backend)
        assert (trial.outcome, trial.reward, trial.passed) == ("graded", 0.0, False), what


def test_a_hostile_output_is_graded_and_earns_nothing(tmp_path):
    """The grader by itself, on what an agent may leave: links, pipes, huge files, deep folders, bytes that are no text."""
    path = export_environment(build("retail_warehouse", 11, "unit"), tmp_path / "t")
    for case in ("link", "links", "pipe", "noise", "deep", "sparse"):
        workspace, logs = tmp_path / case / "app", tmp_path / case / "logs"
        logs.mkdir(parents=True)
        workspace.mkdir()
        output = workspace / "output"
        if case == "link":
            output.symlink_to(path / "tests")
        else:
            output.mkdir()
        if case == "links":
            for file in ("warehouse.sqlite", "summary.json", "quality_report.json"):
                (output / file).symlink_to(path / "tests" / "truth.json")
        elif case == "pipe":
            os.mkfifo(output / "summary.json")
        elif case == "noise":
            for file in ("warehouse.sqlite", "summary.json", "quality_report.json"):
                (output / file).write_bytes(b"\xff\xfe\x00" + b"[" * 200_000)
        elif case == "deep":
            (output / "/".join(["d"] * 200)).mkdir(parents=True)
        elif case == "sparse":
            with (output / "summary.json").open("wb") as file:
                file.truncate(1 << 40)
        env = {"WORKBENCH_WORKSPACE": str(workspace), "WORKBENCH_LOGS": str(logs), "PATH": os.environ["PATH"]}
        done = subprocess.run([sys.executable, "-I", "-S", path / "tests" / "grade.py"], env=env, capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0, (case, done.stderr)
        assert json.loads((logs / "reward.json").read_text()) == {"reward": 0.0, "passed": 0}, case


def test_a_folder_that_holds_files_is_not_written_over(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine").write_text("x")
    with pytest.raises(FileExistsError, match="not an empty folder"):
        export_environment(build("retail_warehouse", 11, "unit"), tmp_path / "t")
