"""A comparison that is killed and goes on: the same tables as one that was not, nothing lost, nothing paid for twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from workbench.report import compare_paired, compare_tables
from workbench.runs.folder import new_run, open_run

CHILD = Path(__file__).with_name("compare_child.py")
UNITS = 9  # three entries, three assignments
TIMES = ["seconds"]  # what two runs of the same work may differ in


def start(folder: Path, paid: Path, *more: str) -> subprocess.Popen:
    env = {**os.environ, "WORKBENCH_PROGRESS": "plain"}
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), str(paid), *more], env=env, start_new_session=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(folder: Path, paid: Path) -> None:
    child = start(folder, paid)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 0, err[-3000:]
    assert out.strip().endswith("done")


def tables(folder: Path) -> dict[str, str]:
    run = open_run(folder)
    frame = compare_tables.answers(run)
    pairs = compare_paired.method_pairs(frame)
    found = {
        "answers": frame.drop(columns=TIMES), "validity": compare_tables.validity(frame, run), "turns": compare_tables.turns(frame),
        "stages": compare_tables.stages(frame, run), "known": compare_tables.known(frame),
        "costs": compare_tables.costs(frame).drop(columns=["seconds_per_valid"]), "richness": compare_tables.richness(frame),
        "last": compare_tables.validity(frame, run, "last"),
        "paired": compare_paired.paired(frame, [("told-feedback", "asked-prompt"), *pairs]),
    }  # fmt: skip
    return {name: table.to_csv(index=False) for name, table in found.items()}


def whole(folder: Path) -> None:
    """Every unit has exactly one answer and every submission one proposal, however often the run was killed."""
    run = open_run(folder)
    assert len(run.rows("answer")) == UNITS == len({r["id"] for r in run.rows("answer")})
    for kind in ("proposal", "admission", "reply"):
        assert max(Counter(r["id"] for r in run.rows(kind)).values()) == 1, kind
    assert run.rows("unanswered") == []


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory, backend_of_session):
    home = tmp_path_factory.mktemp("unbroken")
    run = new_run("20_try", {}, results=home)
    finish(run.folder, home / "paid")
    whole(run.folder)
    return tables(run.folder), (home / "paid").read_text().split()


@pytest.fixture(scope="module")
def backend_of_session(backend):
    return backend


def test_three_kills(unbroken, tmp_path):
    expected, paid_once = unbroken
    run, paid = new_run("20_try", {}, results=tmp_path), tmp_path / "paid"
    for after in (12, 30, 25):
        child = start(run.folder, paid, str(after))
        child.communicate(timeout=300)
        assert child.returncode == -9
    finish(run.folder, paid)
    whole(run.folder)
    assert tables(run.folder) == expected
    assert sorted(paid.read_text().split()) == sorted(paid_once)


@pytest.mark.slow
def test_fifty_kills_at_random_moments(unbroken, tmp_path):
    expected, paid_once = unbroken
    run, paid = new_run("20_try", {}, results=tmp_path), tmp_path / "paid"
    rng, kills = random.Random(20), 0
    while kills < 50:
        child = start(run.folder, paid)
        while child.poll() is None and not (run.folder / "journal.jsonl").exists():
            time.sleep(0.02)
        before = size(run)
        deadline = time.monotonic() + rng.uniform(0.05, 2.5)
        while child.poll() is None and (time.monotonic() < deadline or (size(run) == before and rng.random() < 0.9)):
            time.sleep(0.02)
        if (
            child.poll() is not None and child.returncode == 0
        ):  # it came to its end: the rest of the kills have nothing to kill
            run, paid, kills = _again(run, paid, tmp_path, expected, paid_once, kills)
            continue
        child.kill()
        child.communicate()
        kills += 1
    finish(run.folder, paid)
    check(run, paid, expected, paid_once, kills)


def size(run) -> int:
    path = run.folder / "journal.jsonl"
    return path.stat().st_size if path.exists() else 0


def _again(run, paid, tmp_path, expected, paid_once, kills):
    check(run, paid, expected, paid_once, kills)
    return new_run("20_try", {}, results=tmp_path), tmp_path / f"paid-{kills}", kills


def check(run, paid, expected, paid_once, kills) -> None:
    whole(run.folder)
    assert tables(run.folder) == expected
    said = paid.read_text().split()
    assert set(said) == set(paid_once)
    # An answer may be lost between its arrival and the journal: that is the call in flight, and nothing else.
    assert len(said) - len(paid_once) <= 1, f"{len(said) - len(paid_once)} calls were paid for twice in {kills} kills"
