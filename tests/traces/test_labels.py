from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from workbench.traces.labels import (
    Label,
    LabelError,
    LabelJournal,
    by_annotator,
    current,
    read_labels,
    resolve,
    to_csv,
)

K = ("trace", 3, 1)


def label(what, who="a", *, step=3, call=1, time=1.0, **more):
    return Label("trace", step, call, what, who, "1.0", time, **more)


def test_a_journal_keeps_every_label(tmp_path):
    journal = LabelJournal(tmp_path / "deep" / "labels.jsonl")
    made = [journal.add(label("read", note="é\n", unsure=True)), journal.add(label("test", step=4))]
    assert read_labels(journal.path) == journal.read() == made
    row = json.loads(journal.path.read_text().splitlines()[0])
    assert {
        "trace",
        "step",
        "call",
        "label",
        "annotator",
        "codebook",
        "time",
        "supersedes",
        "note",
        "unsure",
    } <= row.keys()
    journal.close()


def test_the_later_label_holds_and_a_superseded_one_never():
    first = label("read", time=5.0)
    assert current([first, label("write", time=6.0)])[K]["a"].label == "write"
    # a clock that went back: what supersedes holds all the same
    assert current([first, label("write", time=2.0, supersedes=first.id)])[K]["a"].label == "write"
    # of one time, the later line
    assert current([label("read"), label("test")])[K]["a"].label == "test"


def test_undo_and_redo():
    first = label("read", time=1.0)
    undone = label("", time=2.0, supersedes=first.id)
    assert current([first, undone]) == {}
    redone = label("read", time=3.0, supersedes=undone.id)
    assert current([first, undone, redone])[K]["a"].label == "read"


def test_undo_of_a_second_label_brings_nothing_back_by_itself():
    first, second = label("read", time=1.0), label("write", time=2.0)
    second = label("write", time=2.0, supersedes=first.id)
    again = label("read", time=3.0, supersedes=second.id)  # what an interface writes to go back
    assert current([first, second, again])[K]["a"].id == again.id


def test_resolution_of_several_annotators():
    one, two = label("read", "a"), label("test", "b")
    assert resolve([one])[K].status == "single"
    assert resolve([one, label("read", "b")])[K].status == "agreed"
    disputed = resolve([one, two])[K]
    assert (disputed.label, disputed.status, disputed.votes) == ("", "disputed", {"a": "read", "b": "test"})
    settled = resolve([one, two, label("test", "c", adjudicates=True)])[K]
    assert (settled.label, settled.status, settled.votes) == ("test", "adjudicated", {"a": "read", "b": "test"})


def test_an_adjudication_is_no_vote_and_can_be_taken_back():
    judged = label("test", "a", adjudicates=True)
    assert current([label("read", "a"), judged])[K]["a"].label == "read"
    taken = label("", "a", time=2.0, adjudicates=True, supersedes=judged.id)
    assert resolve([label("read", "a"), judged, taken])[K].status == "single"
    assert resolve([judged])[K].label == "test"


def test_labels_by_annotator():
    found = by_annotator([label("read", "a"), label("test", "b"), label("write", "b", step=5)])
    assert found == {"a": {K: "read"}, "b": {K: "test", ("trace", 5, 1): "write"}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": "explore"}, "use one of read, build, write, test"),
        ({"annotator": ""}, "needs an annotator"),
        ({"step": 0}, "steps count from 1"),
        ({"call": -1}, "calls from 0"),
    ],
)
def test_what_is_no_label(change, says):
    with pytest.raises(LabelError, match=says):
        Label(**{"trace": "t", "step": 1, "call": 0, "label": "read", "annotator": "a", **change})


def test_a_wrong_line_is_named_and_a_cut_one_passed_over(tmp_path):
    path = tmp_path / "l.jsonl"
    journal = LabelJournal(path)
    journal.add(label("read"))
    with path.open("a") as file:
        file.write('{"trace": "t", "ste')  # a kill in the middle of a write
    LabelJournal(path).add(label("test", step=4))
    assert [x.label for x in read_labels(path)] == ["read", "test"]
    with path.open("a") as file:
        file.write('{"trace": "t"}\n')
    with pytest.raises(LabelError, match=r"l\.jsonl:4: not a label: .*missing"):
        read_labels(path)


def test_fields_of_later_versions_are_left_out(tmp_path):
    (tmp_path / "l.jsonl").write_text(json.dumps({**label("read").to_row(), "mood": "good"}) + "\n")
    assert read_labels(tmp_path / "l.jsonl")[0].label == "read"


def test_a_folder_of_journals(tmp_path):
    for who in ("b", "a"):
        LabelJournal(tmp_path / f"{who}.jsonl").add(label("read", who))
    assert [x.annotator for x in read_labels(tmp_path)] == ["a", "b"]


def test_a_killed_process_loses_no_label(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom workbench.traces.labels import *\n"
        "journal = LabelJournal(Path(sys.argv[1]))\n"
        "for step in range(1, 51):\n    journal.add(Label('t', step, 0, 'read', 'a'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "l.jsonl")], check=False)
    assert done.returncode == -9
    assert [x.step for x in read_labels(tmp_path / "l.jsonl")] == list(range(1, 51))


def test_csv(tmp_path):
    rows = list(csv.DictReader(to_csv([label("read", note='a "b", c\nd')]).splitlines(keepends=True)))
    assert (rows[0]["label"], rows[0]["note"]) == ("read", 'a "b", c\nd')
