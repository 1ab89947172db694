"""The labelling widget without a browser: its methods and traits, and the journal that they leave on the disk."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

import traitlets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_rows import HOSTILE

from workbench.report.label_session import NOTHING, Codebook, LabelSession, Said
from workbench.report.label_widget import LabelWidget
from workbench.traces.classify import classify
from workbench.traces.labels import LABELS, LabelError, by_annotator, read_labels, resolve
from workbench.traces.trace import Result, ToolCall, Trace, TraceInfo, TraceStep
from workbench.traces.turns import turns

COMMANDS = ("cat a.txt", "make", "echo x > a.txt", "pytest -q")


def make_trace(count: int, name: str = "one", output: str = "ok") -> Trace:
    """`count` tool calls, one a message."""
    steps = [TraceStep("user", f"do {name}")]
    for i in range(count):
        call = ToolCall(f"c{i}", "bash", json.dumps({"command": COMMANDS[i % 4]}))
        steps.append(TraceStep("agent", calls=(call,), results=(Result(f"{output} {i}", f"c{i}"),)))
    return Trace(TraceInfo(agent="terminal", format="atif", model="m"), tuple(steps))


@pytest.fixture
def widget(tmp_path):
    return LabelWidget([make_trace(6), make_trace(4, "two", "fine")], tmp_path / "labels", "ada")


def journal(widget: LabelWidget) -> list[str]:
    """What a reader of the file sees at this moment."""
    return [json.loads(line)["label"] for line in widget.session.journal.path.read_text().splitlines()]


def test_a_key_labels_the_turn_and_goes_on(widget):
    widget.label("r")
    assert (widget.index, journal(widget)) == (1, ["read"])
    widget.label("build")
    widget.handle({"do": "label", "label": "write", "index": 2, "token": "t7"})
    assert (widget.index, journal(widget)) == (3, ["read", "build", "write"])
    assert widget.view["token"] == "t7"
    assert widget.view["status"] == "turn 3: write, saved"
    assert widget.view["marks"] == "rbw..."
    assert widget.view["counts"] == {"labelled": 3, "unsure": 0, "total": 10}
    record = read_labels(widget.session.journal.path)[0]
    assert (record.annotator, record.step, record.call) == ("ada", 2, 1)
    assert record.trace == widget.session.turns[0].trace
    assert record.seconds >= 0
    with pytest.raises(LabelError, match="use one of read, build, write, test"):
        widget.label("x")
    assert repr(widget) == "LabelWidget(ada: 3 of 10 turns labelled)"


def test_a_key_is_about_the_turn_that_was_on_the_screen(widget):
    widget.index = 4
    widget.handle({"do": "label", "label": "test", "index": 1})
    assert widget.session.said(1).label == "test"
    assert widget.session.said(4) == NOTHING


def test_undo_and_redo_have_no_limit_and_only_append(widget):
    for key in "rbwtrb":
        widget.label(key)
    for _ in range(6):
        widget.undo()
    assert widget.index == 0
    assert widget.labels() == []
    widget.undo()
    assert "nothing to be undone" in widget.view["status"]
    for _ in range(6):
        widget.redo()
    assert [label.label for label in widget.labels()] == ["read", "build", "write", "test", "read", "build"]
    widget.redo()
    assert "nothing to be done again" in widget.view["status"]
    assert len(journal(widget)) == 18
    widget.undo()
    widget.label("t", 5)  # a new label ends what could be redone
    widget.redo()
    assert "nothing" in widget.view["status"]


def test_undo_goes_back_over_earlier_sessions(widget, tmp_path):
    widget.label("r")
    widget.label("b")
    widget.undo()
    widget.label("w")
    again = LabelWidget(list(widget.traces.values()), tmp_path / "labels", "ada")
    assert again.index == 2
    again.undo()
    assert (again.index, again.session.said(1)) == (1, NOTHING)
    again.undo()
    assert (again.index, again.labels()) == (0, [])
    again.undo()
    assert "nothing" in again.view["status"]


SAID = st.builds(Said, st.sampled_from(["", *LABELS]), st.sampled_from(["", "why"]), st.booleans())
STEPS = st.lists(
    st.one_of(st.tuples(st.integers(0, 3), SAID), st.sampled_from(["undo", "redo", "reopen"])), max_size=25
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_what_is_on_the_disk_is_what_is_said(tmp_path_factory, steps):
    folder, views = tmp_path_factory.mktemp("labels"), turns(make_trace(4))
    session = LabelSession(views, folder, "ada")
    for step in steps:
        if step == "reopen":
            session = LabelSession(views, folder, "ada")
        elif isinstance(step, str):
            getattr(session, step)()
        else:
            session.say(*step)
        other = LabelSession(views, folder, "ada")
        assert [other.said(i) for i in range(4)] == [session.said(i) for i in range(4)]
    held = by_annotator(read_labels(folder)).get("ada", {})
    assert held == {label.key: label.label for label in session.labels()}
    done = 0
    while session.undo() is not None:
        done += 1
    assert [session.said(i) for i in range(4)] == [NOTHING] * 4
    for _ in range(done):
        session.redo()
    assert by_annotator(read_labels(folder)).get("ada", {}) == held


def test_moving_and_queues(widget):
    widget.step(-1)
    assert (widget.index, widget.view["status"]) == (0, "the first turn")
    widget.end(last=True)
    assert widget.index == 9
    assert widget.view["place"] == "turn 4 of 4"
    widget.label("r")
    assert (widget.index, widget.view["status"]) == (9, "turn 4: read, saved · the last turn")
    widget.index = 2
    widget.skip()
    assert widget.index == 3
    widget.undo()  # a skip is undone by going back
    assert widget.index == 2
    for i in range(9):
        widget.label("r", i)
    widget.undo()
    widget.index = 0
    widget.queue = "unlabelled"
    assert (widget.index, widget.view["queued"]) == (8, [1, 1])
    widget.label("w")
    assert "the last turn" in widget.view["status"]
    widget.next_unlabelled()
    assert widget.view["status"] == "every turn has a label"
    with pytest.raises(traitlets.TraitError, match="use one of all, unlabelled, unsure, disagreements"):
        widget.queue = "none"
    with pytest.raises(traitlets.TraitError, match="there are 10 turns"):
        widget.index = 10


def test_skipped_turns_come_back_at_the_end_of_the_unlabelled(widget):
    widget.queue = "unlabelled"
    widget.skip()
    seen = []
    for _ in range(9):
        seen.append(widget.index)
        widget.label("r")
    assert seen == list(range(1, 10))
    assert widget.index == 0


def test_doubt_and_notes_stand_in_the_journal_before_and_after_the_label(widget):
    widget.unsure()
    widget.note(" read or test? ")
    assert widget.session.said(0) == Said("", "read or test?", True)
    widget.label("r")
    widget.index = 0
    widget.note("settled")
    widget.unsure()
    assert widget.labels()[0].note == "settled"
    assert not widget.labels()[0].unsure
    widget.queue = "unsure"
    assert widget.view["status"] == "nothing in the queue 'unsure'"
    widget.clear()
    assert widget.labels() == []
    widget.undo()
    assert widget.session.said(0) == Said("read", "settled")


def test_the_guess_is_out_of_sight_until_the_disagreements(widget):
    guesses = [g for t in widget.traces.values() for g in classify(turns(t))]
    wrong = {"read": "t", "build": "r", "write": "r", "test": "r"}
    widget.label(guesses[0][0])
    widget.label(wrong[guesses[1]])
    assert widget.view["guess"] == ""
    assert "guesses" not in vars(widget.session)  # not even computed
    widget.queue = "disagreements"
    assert widget.index == 1
    assert widget.view["guess"] == guesses[1]
    assert widget.view["queued"] == [1, 1]
    widget.note("I stay with it")  # the label was given blind, and still is
    assert not widget.session.said(1).saw_guess
    widget.label(guesses[1])
    first, second = widget.labels()
    assert (first.saw_guess, second.saw_guess) == (False, True)
    assert widget.session.queue("disagreements") == []
    blind = [x.label for x in read_labels(widget.session.journal.path) if not x.saw_guess]
    assert blind == [guesses[0], second_label := wrong_name(wrong[guesses[1]]), second_label]


def wrong_name(key: str) -> str:
    return next(label for label in LABELS if label[0] == key)


def test_not_blind_shows_the_guess_and_records_it(tmp_path):
    widget = LabelWidget(make_trace(2), tmp_path / "x.jsonl", "ada", blind=False)
    assert widget.view["guess"] == classify(turns(make_trace(2)))[0]
    widget.label("r")
    assert widget.labels()[0].saw_guess


def test_two_annotators_label_blind_and_a_third_decides(tmp_path):
    trace, folder = make_trace(4), tmp_path / "labels"
    ada, bob = LabelWidget(trace, folder, "ada"), LabelWidget(trace, folder, "bob")
    for key in "rbwt":
        ada.label(key)
    for key in "rbr":
        bob.label(key)
    bob.note("looks at the file only")  # of turn 4, which has no label
    assert sorted(p.name for p in folder.iterdir()) == ["ada.jsonl", "bob.jsonl"]
    assert "write" not in json.dumps({k: v for k, v in bob.view.items() if k != "status"})
    judge = LabelWidget(trace, folder, "eve", adjudicate=True)
    assert judge.session.queues == ("disputed", "all")
    assert judge.index == 2
    assert [vote[:2] for vote in judge.view["votes"]] == [["ada", "write"], ["bob", "read"]]
    assert "0 of 1 turns settled" in repr(judge)
    judge.label("w")
    assert "1 of 1 turns settled" in repr(judge)
    resolved = resolve(read_labels(folder))
    assert [(r.label, r.status) for _, r in sorted(resolved.items())] == [
        ("read", "agreed"), ("build", "agreed"), ("write", "adjudicated"), ("test", "single"),
    ]  # fmt: skip
    assert LabelWidget(trace, folder, "eve").labels() == []  # her own labels are another thing
    judge.undo()
    assert resolve(read_labels(folder))[judge.session.turns[2].key].status == "disputed"


def test_one_file_for_several_annotators(tmp_path):
    path = tmp_path / "all.jsonl"
    for name in ("ada", "bob"):
        LabelWidget(make_trace(2), path, name).label("r")
    assert by_annotator(read_labels(path)).keys() == {"ada", "bob"}
    assert LabelWidget(make_trace(2), path, "bob").index == 1


def test_only_some_turns_are_visited_with_all_their_context(tmp_path):
    views = turns(make_trace(6))
    widget = LabelWidget(views, tmp_path, "ada", only={views[2].key, views[5].key})
    assert widget.index == 2
    assert len(widget.view["before"]) == 2
    widget.label("r")
    assert widget.index == 5
    assert widget.view["counts"]["total"] == 2


def test_export(widget, tmp_path):
    widget.label("r")
    widget.label("b", 7)
    lines = [json.loads(line) for line in widget.export_jsonl(tmp_path / "out" / "a.jsonl").read_text().splitlines()]
    assert [row["label"] for row in lines] == ["read", "build"]
    assert read_labels(tmp_path / "out" / "a.jsonl") == widget.labels()
    table = widget.export_csv(tmp_path / "a.csv").read_text().splitlines()
    assert len(table) == 3
    assert table[0].startswith("trace,step,call,label,annotator")
    first, second = (json.loads(p.read_text()) for p in widget.export_atif(tmp_path / "atif"))
    assert first["steps"][1]["extra"]["labels"][0]["label"] == "read"
    assert second["steps"][2]["extra"]["labels"][0]["annotator"] == "ada"
    with pytest.raises(LabelError, match="give LabelWidget the traces"):
        LabelWidget(turns(make_trace(1)), tmp_path / "b", "ada").export_atif(tmp_path)


def test_only_the_turn_and_its_neighbours_are_sent(tmp_path):
    widget = LabelWidget(make_trace(2000, output="word " * 2000), tmp_path, "ada")
    assert len(json.dumps(widget.get_state(["view", "fixed"]))) < 30_000
    assert len(widget.view["marks"]) == 2000
    assert "more characters" in widget.view["turn"]["blocks"][1]["more"]
    widget.handle({"do": "expand"})
    assert widget.view["turn"]["blocks"][1]["more"] == ""
    widget.step(1)
    assert not widget.expanded


def test_hostile_text_is_text(tmp_path):
    call = ToolCall("c", f"tool{HOSTILE}", json.dumps({"path": HOSTILE, "content": f"a\n{HOSTILE}"}))
    steps = (TraceStep("user", HOSTILE), TraceStep("agent", HOSTILE, calls=(call,), results=(Result(HOSTILE, "c"),)))
    trace = Trace(TraceInfo(agent=HOSTILE, format="atif", model=HOSTILE), steps)
    widget = LabelWidget(trace, tmp_path, f"ada {HOSTILE}", codebook=Codebook("1", HOSTILE))
    widget.note(HOSTILE)
    widget.step(1)
    state = json.dumps(widget.get_state(["view", "fixed"]), ensure_ascii=False)
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "&lt;script&gt;" in data["text/html"]
    assert "<script" not in data["text/html"]
    for text in (state, data["text/html"], repr(widget)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert widget.session.journal.path.parent == tmp_path  # no name leads out of the folder


def test_without_a_front_end_it_is_a_table(widget):
    widget.label("r")
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == repr(widget)
    assert len(repr(widget)) < 200
    assert "<td>read</td>" in data["text/html"]
    assert data["text/html"].count("<tr>") == 11
    assert "1,800 more turns" in LabelWidget(make_trace(2000), widget.session.folder, "bob").static_html()


def test_what_cannot_be_done_is_told_and_changes_nothing(widget, monkeypatch):
    for message in ({"do": "label", "label": "x", "index": 0}, {"do": "go", "index": 99}, {"do": "run"}, {},
                    {"do": "label", "label": "read", "index": "0"}, {"do": "queue", "queue": "x"}, {"do": "step", "by": None}):  # fmt: skip
        widget.handle({**message, "token": str(message)[:40]})
        assert widget.view["token"] == str(message)[:40]
        assert widget.view["status"].startswith(("not understood", "not saved"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    widget.handle({"do": "label", "label": "read", "index": 0, "token": "full"})
    monkeypatch.undo()
    assert widget.view["status"] == "not saved: [Errno 28] No space left on device"
    assert (widget.index, widget.labels(), journal(widget)) == (0, [], [])
    widget.undo()
    assert "nothing" in widget.view["status"]


def test_wrong_input_is_refused(tmp_path):
    with pytest.raises(LabelError, match="no turn to label"):
        LabelWidget([], tmp_path, "ada")
    with pytest.raises(LabelError, match="annotator must not be empty"):
        LabelWidget(make_trace(1), tmp_path, " ")
    (tmp_path / "bob.jsonl").write_text('{"label": "read"}\n')
    with pytest.raises(LabelError, match=r"bob.jsonl:1"):
        LabelWidget(make_trace(1), tmp_path, "bob")
    views = turns(make_trace(2))
    with pytest.raises(LabelError, match="given twice"):
        LabelWidget([*views, *views], tmp_path, "ada")
    assert len(LabelWidget([make_trace(2), make_trace(2)], tmp_path, "ada").session.turns) == 2  # a copy of a trace


def test_codebook(tmp_path, widget):
    path = tmp_path / "codebook.md"
    path.write_text("# Codebook\n\nVersion: 2.1\n\nread: looking only\n")
    assert Codebook.read(path).version == "2.1"
    path.write_text("read: looking only\n")
    assert Codebook.read(path).version.startswith("sha256-")
    again = LabelWidget(make_trace(1), tmp_path / "other", "ada", codebook=path)
    again.label("r")
    assert again.labels()[0].codebook == Codebook.read(path).version
    assert "looking only" in again.fixed["codebook"]


WORK = """
from pathlib import Path
from test_label_widget import make_trace
from workbench.report.label_widget import LabelWidget
widget = LabelWidget(make_trace(4000), Path({folder!r}), "ada")
for i in range(4000):
    widget.handle({{"do": "label", "label": "read", "index": i}})
    print(i + 1, flush=True)
"""


def test_a_killed_kernel_loses_no_label(tmp_path):
    manager_module = pytest.importorskip("jupyter_client.manager", reason="the notebook extra is not installed")
    from jupyter_client.kernelspec import KernelSpec

    manager = manager_module.KernelManager(connection_file=str(tmp_path / "kernel.json"))
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=argv, display_name="Python 3", language="python")
    here = os.path.dirname(__file__)  # noqa: PTH120
    manager.start_kernel(env={**os.environ, "PYTHONPATH": here, "IPYTHONDIR": str(tmp_path / "ipython")})
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        client.execute(WORK.format(folder=str(tmp_path / "labels")))
        told = 0
        while told < 40:
            message = client.get_iopub_msg(timeout=60)
            assert message["msg_type"] != "error", message["content"]
            if message["msg_type"] == "stream":
                told = max([told, *map(int, message["content"]["text"].split())])
        os.killpg(manager.provisioner.pid, signal.SIGKILL)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    widget = LabelWidget(make_trace(4000), tmp_path / "labels", "ada")
    assert told <= len(widget.labels()) < 4000
    assert widget.index == len(widget.labels())  # where to go on
