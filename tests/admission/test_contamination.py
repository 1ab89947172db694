"""The contamination check: what gates, what is only reported, and how many planted copies it finds."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest

from workbench.admission.contamination import Document, HeldOut
from workbench.admission.planted_copies import KINDS, planted_copies_recall
from workbench.tasks import load_task
from workbench.tasks.ngrams import tokens
from workbench.tasks.scaffold import scaffold, scaffold_texts

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "contamination.py"
corpus = runpy.run_path(str(BENCHMARK))["corpus"]

SECRET = (
    "The binary ledger at /srv/ledger.bin holds little-endian records of nineteen bytes; recover those whose checksum fails "
    "and write their offsets in ascending order to /srv/broken.txt, one decimal number a line."
)
OTHER = (
    "Configure the mail relay so that it rejects every message larger than two megabytes and logs the sender to a file."
)
MINE = (
    "Parse the sensor dump below /data and produce a histogram of temperatures with bins of half a degree each, please."
)


@pytest.fixture
def held() -> HeldOut:
    return HeldOut([Document("ledger", SECRET), Document("relay", OTHER)])


@pytest.fixture
def task(tmp_path) -> Path:
    scaffold(tmp_path / "task", "org/task")
    (tmp_path / "task/instruction.md").write_text(MINE)
    return tmp_path / "task"


def test_an_own_instruction_passes(held):
    report = held.check(MINE)
    assert not report.hit
    assert (report.matches, report.files, report.message) == ((), (), "")
    assert report.tokens == 20
    assert not held.hit(MINE)


@pytest.mark.parametrize(("window", "hit"), [(12, False), (13, True)])
def test_thirteen_tokens_are_the_edge(held, window, hit):
    words = tokens(SECRET)[:window]
    report = held.check(MINE + "\n" + " ".join(words))
    assert (len(words), report.hit, held.hit(" ".join(words))) == (window, hit, hit)
    assert bool(report.weak_matches)


def test_a_hit_names_task_text_and_cure(held):
    report = held.check(f"{MINE}\n{SECRET}")
    assert report.hit
    assert [m.held_out for m in report.matches] == ["ledger"]
    assert report.matches[0].count == len(tokens(SECRET)) - 12
    assert report.matches[0].text.startswith("the binary ledger at srv ledger bin")
    assert report.matches[0].text.endswith("number a line")
    assert "ledger" in report.message
    assert "different task" in report.message
    assert (report.coverage, report.covered, report.nearest) == (1.0, "ledger", "ledger")
    assert 0.5 < report.jaccard < 1
    row = report.to_row()
    assert row["hit"] is True
    assert row["matches"][0]["held_out"] == "ledger"


def test_half_a_copy_is_covered_by_half(held):
    words = SECRET.split()
    report = held.check(MINE + " " + " ".join(words[: len(words) // 2]))
    assert report.hit
    assert 0.4 < report.coverage < 0.7


def test_the_worst_match_comes_first(held):
    report = held.check(OTHER + " " + " ".join(SECRET.split()[:14]))
    assert [m.held_out for m in report.matches] == ["relay", "ledger"]
    assert "and with 1 more" in report.message


def test_scaffold_text_is_nobodys(tmp_path):
    shared = max(scaffold_texts(), key=len)
    held = HeldOut([Document("made-from-the-scaffold", shared + SECRET)])
    assert not held.hit(shared)
    assert held.hit(SECRET)
    strict = HeldOut([Document("made-from-the-scaffold", shared + SECRET)], scaffold=())
    assert strict.hit(shared)
    own = HeldOut([Document("x", OTHER)], scaffold=[OTHER])
    assert not own.hit(OTHER)


def test_files_are_reported_and_do_not_gate(held, task):
    (task / "environment/notes.txt").write_text("notes\n" + SECRET)
    (task / "tests/test_outputs.py").write_text(f'"""{OTHER}"""\ndef test_a(): assert 0\n')
    (task / "environment/data.bin").write_bytes(b"\0" + SECRET.encode())
    (task / "environment/link.txt").symlink_to("notes.txt")
    report = held.check(load_task(task))
    assert not report.hit
    assert {(m.file, m.held_out, m.held_file) for m in report.files} == {
        ("environment/notes.txt", "ledger", ""),
        ("tests/test_outputs.py", "relay", ""),
    }


def test_files_against_files(task, tmp_path):
    held_task = Path(shutil.copytree(task, tmp_path / "held/t"))
    (held_task / "instruction.md").write_text(SECRET)
    (task / "tests/test_outputs.py").write_text("def test_other(): assert 0\n")
    report = HeldOut.from_folder(tmp_path / "held").check(load_task(task))
    assert not report.hit
    pairs = {(m.file, m.held_file) for m in report.files}
    assert ("solution/solve.sh", "solution/solve.sh") in pairs
    assert not any("test.sh" in file or "Dockerfile" in file for pair in pairs for file in pair), "managed by design"


def test_a_folder_of_tasks(task, tmp_path):
    root = tmp_path / "bench"
    shutil.copytree(task, root / "suite/one")
    scaffold(root / "suite/two", "org/two", multi_step=True)
    (root / "suite/two/steps/report/instruction.md").write_text(SECRET)
    (root / "suite/one/environment/instruction.md").write_text("a fixture")
    (root / "old-layout").mkdir()
    (root / "old-layout/instruction.md").write_text("<!-- canary GUID -->\n" + OTHER)
    (root / "README.md").write_text("About this benchmark.")
    held = HeldOut.from_folder(root)
    assert [d.name for d in held.documents] == ["old-layout", "suite/one", "suite/two"]
    assert held.check(OTHER).matches[0].held_out == "old-layout"
    assert held.check(SECRET).matches[0].held_out == "suite/two"
    assert "canary" not in held.documents[0].instruction
    assert [d.name for d in HeldOut.from_folder(root / "suite/one").documents] == ["one"]


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/ledger.md").write_text(SECRET)
    (tmp_path / "relay.TXT").write_text(OTHER)
    (tmp_path / "other.json").write_text(MINE)
    (tmp_path / "out.txt").symlink_to("/etc/passwd")
    held = HeldOut.from_folder(tmp_path)
    assert [d.name for d in held.documents] == ["a/ledger.md", "relay.TXT"]
    assert held.check(SECRET.upper()).matches[0].held_out == "a/ledger.md"


def test_nothing_to_compare_with_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        HeldOut.from_folder(tmp_path / "none")
    with pytest.raises(ValueError, match="neither Harbor tasks"):
        HeldOut.from_folder(tmp_path)
    (tmp_path / "blank.txt").write_text(" \n")
    with pytest.raises(ValueError, match="neither"):
        HeldOut.from_folder(tmp_path)
    with pytest.raises(ValueError, match="pass everything"):
        HeldOut([])


def test_short_held_out_texts_are_named():
    held = HeldOut([Document("short", "Fix the build."), Document("long", SECRET)])
    assert held.too_short == ["short"]
    assert not held.hit("Fix the build.")


def test_recall_on_planted_copies():
    documents, _, _ = corpus(seed=3)
    rows = {row["kind"]: row for row in planted_copies_recall(HeldOut(documents[:40]), seed=1)}
    assert list(rows) == list(KINDS)
    for kind in ("verbatim", "re-wrapped", "markdown table", "case and punctuation"):
        assert (rows[kind]["gated"], rows[kind]["recall"]) == (40, 1.0), kind
    fixture, synonyms = rows["fixture file"], rows["synonyms"]
    assert (fixture["gated"], fixture["reported_in_files"]) == (0, 40)
    assert 0 < synonyms["missed"] == 40 - synonyms["gated"]
    assert synonyms["weak"] > synonyms["gated"], "8-grams see more of a paraphrase than 13-grams"
    assert synonyms["jaccard"] < rows["verbatim"]["jaccard"]
    assert all(row["false_hits"] == 0 for row in rows.values())


def test_recall_is_reproducible_and_needs_text():
    held = HeldOut([Document("ledger", SECRET), Document("short", "Fix it.")])
    assert planted_copies_recall(held, seed=5) == planted_copies_recall(held, seed=5)
    assert {row["planted"] for row in planted_copies_recall(held)} == {1}
    with pytest.raises(ValueError, match="nothing to plant"):
        planted_copies_recall(HeldOut([Document("short", "Fix it.")]))


def test_the_benchmarks_corpus_is_told_apart():
    documents, generated, planted = corpus(seed=4)
    held = HeldOut(documents)
    assert sum(held.hit(text) for text in generated) == planted
