from __future__ import annotations

from pathlib import Path

import pytest

from workbench.traces import Episode, Turn
from workbench.traces.reading import open_trace
from workbench.traces.record import import_trace
from workbench.traces.search import search
from workbench.traces.store import write_episode

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def folder(tmp_path):
    for name in ("pi-0.73.1-session.jsonl", "codex-rollout.jsonl", "mini-swe-agent.traj.json"):
        import_trace(open_trace(SAMPLES / name), tmp_path / "imported")
    turn = Turn(0, "Straße\n```bash\ngrep 'a \"b\"' x\n```", "grep 'a \"b\"' x", "[exit code 0]\na\tb")
    write_episode(tmp_path / "runs" / "traces", "t1", Episode("terminal", (turn,), instruction="go"))
    (tmp_path / "notes.json").write_text('["hello"]')
    (tmp_path / "page.html").write_text("hello.py")
    return tmp_path


def places(hits):
    return [(Path(h.path).name.split("-")[0].split(".")[0], h.step, h.call, h.field) for h in hits]


def test_text_commands_arguments_and_observations(folder):
    assert places(search([folder], "hello.py")) == [("pi", s, c, f) for s, c, f in (
        (3, 0, "text"), (3, 1, "arguments"), (4, 1, "arguments"), (4, 2, "command"), (5, 0, "text"))]  # fmt: skip
    assert places(search([folder], "TOTAL 8")) == [
        ("codex", 4, 1, "observation"),
        ("mini", 3, 1, "observation"),
        ("pi", 2, 1, "observation"),
    ]
    assert places(search([folder], "TOTAL 8", case=True)) == []


def test_quotes_tabs_and_letters_of_others(folder):
    """Text that a JSON file escapes, once or twice."""
    assert places(search([folder], '"path": "hello.py"')) == [("pi", 3, 1, "arguments"), ("pi", 4, 1, "arguments")]
    assert places(search([folder], 'a "b"\' x')) == [("t1", 2, 1, "command")]
    assert places(search([folder], "a\tb")) == [("t1", 2, 1, "observation")]
    assert places(search([folder], "STRASSE")) == []
    assert places(search([folder], "straße")) == [("t1", 2, 0, "text")]


def test_regular_expressions(folder):
    assert places(search([folder], r"^python3 \w+\.py$", regex=True)) == [("pi", 4, 2, "command")]


def test_hits_say_where(folder):
    (hit,) = search([folder], "prints hello")
    assert hit.snippet == "Done: hello.py prints hello."
    assert hit.start == 15
    assert hit.to_row()["step"] == 5


def test_files_that_are_no_traces_are_passed_over_and_named(folder):
    skipped = []
    list(search([folder], "hello", skipped=skipped))
    assert len(skipped) == 1
    assert "notes.json" in skipped[0]


@pytest.mark.parametrize(("query", "says"), [("", "empty query"), ("(", "no regular expression")])
def test_queries_that_are_none(query, says):
    with pytest.raises(ValueError, match=says):
        list(search([SAMPLES], query, regex=True))


def test_files_that_were_not_imported(tmp_path):
    """Their writers escape and space as they like."""
    for name in ("pi-0.73.1-session.jsonl", "claude-code-session.jsonl"):
        (tmp_path / name).write_bytes((SAMPLES / name).read_bytes().replace(b'", "', b'","').replace(b'": "', b'":"'))
    assert places(search([tmp_path], '"path": "hello.py"')) == [("pi", 3, 1, "arguments"), ("pi", 4, 1, "arguments")]
    assert places(search([tmp_path], "hello.py prints")) == [("pi", 5, 0, "text")]
    data = (SAMPLES / "claude-code-session.jsonl").read_bytes().replace(b"hi > a.txt", b"hi \\u003e a.txt")
    (tmp_path / "claude-code-session.jsonl").write_bytes(data)
    assert places(search([tmp_path], "hi > a.txt")) == [("claude", 2, 1, "command")]
