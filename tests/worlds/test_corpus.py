"""A corpus: whole, the same again, resumed after any stop, without what does not pass."""

from __future__ import annotations

import shutil

import pytest

from workbench.runs.journal import FileLock, RunLocked, read_journal
from workbench.tasks import load_task
from workbench.worlds import WorldError, catalog
from workbench.worlds.corpus import Corpus, Plan, build_corpus
from workbench.worlds.partitions import partition_of
from workbench.worlds.scaffold import copy_template

SMALL = "micro_shelf"  # the smallest generator there is
PLAN = Plan(7, ("micro",), (SMALL,))


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "c"
    return build_corpus(folder, PLAN, jobs=1)


def test_every_environment_is_a_task(built):
    assert len(built.environments) == 7
    assert len({row["public_digest"] for row in built.environments}) == 7
    for row in built.environments:
        task = load_task(built.folder / "tasks" / row["id"])
        assert task.instruction.strip() == row["prompt"].strip()
        assert all(row["gates"].values())
    assert sorted(p.name for p in (built.folder / "tasks").iterdir()) == sorted(r["id"] for r in built.environments)
    assert not (built.folder / "partial").exists()


def test_its_pool_is_covered(built):
    found = built.coverage()
    assert found.valid == found.covered > 0
    assert built.prompts().keys() == {row["id"] for row in built.environments}


def test_a_killed_build_goes_on_and_ends_the_same(built, tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(built.folder, folder)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:-3]) + lines[-3][:40])  # three records lost, one torn
    kept = [r["id"] for r in read_journal(folder / "journal.jsonl") if r["kind"] == "environment"]
    shutil.rmtree(folder / "tasks" / kept[0])  # its record is there, its task is not
    (folder / "partial" / "left.1").mkdir(parents=True)
    again = build_corpus(folder, PLAN, jobs=1)
    assert contents(folder / "tasks") == contents(built.folder / "tasks")
    assert {r["id"] for r in again.environments} == {r["id"] for r in built.environments}
    records = list(read_journal(folder / "journal.jsonl"))
    assert len([r for r in records if r["kind"] == "sketch"]) == len(built.pool), "nothing is done twice"
    assert not (folder / "partial").exists()


def test_another_plan_or_another_writer_is_refused(built):
    with pytest.raises(WorldError, match=r"another plan \(partition"):
        build_corpus(built.folder, Plan(7, ("micro",), (SMALL,), "training"), jobs=1)
    lock = FileLock(built.folder / "lock")
    try:
        with pytest.raises(RunLocked):
            build_corpus(built.folder, PLAN, jobs=1)
    finally:
        lock.release()


def test_no_corpus_and_no_tier_say_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no corpus"):
        Corpus(tmp_path)
    with pytest.raises(WorldError, match="no generator has one of these tiers"):
        build_corpus(tmp_path / "c", Plan(1, ("full",), (SMALL,)), jobs=1)


def test_a_refused_generator_is_left_out_and_seeds_stay_in_their_partition(tmp_path, monkeypatch):
    copy_template(tmp_path / "place" / "corpus_copy")  # it repeats the scaffold, so the similarity gate refuses it
    monkeypatch.setenv(catalog.GENERATORS_ENV, str(tmp_path / "place"))
    plan = Plan(5, ("micro", "unit"), (SMALL, "corpus_copy"), "calibration", "salt", export=False)
    built = build_corpus(tmp_path / "c", plan, jobs=1)
    assert {row["generator"] for row in built.environments} == {SMALL}
    assert "is that of template" in built.generators["corpus_copy"]["messages"][0]
    assert {partition_of(SMALL, row["seed"], "salt") for row in built.environments} == {"calibration"}
    assert not (tmp_path / "c" / "tasks").exists()
