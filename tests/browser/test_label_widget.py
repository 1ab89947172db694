"""The labelling widget as a person has it: JupyterLab in a browser, the keyboard, and the journal on the disk."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from workbench.report.label_widget import LabelWidget
from workbench.traces.labels import read_labels
from workbench.traces.reading import read_trace

from .lab import Page, eventually, write_notebook

HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script> \u202egnp.exe \x1b[31m"
CODEBOOK = "# Codebook\n\nversion: 3\n\n## read\nLooks, and changes nothing.\n"
STATUS = ".wb-label .wb-status"


def trace_file(path: Path, count: int = 12) -> Path:
    """An ATIF trace of `count` turns, the fifth of which is hostile and the sixth long."""
    steps: list[dict] = [{"step_id": 1, "source": "user", "message": "Make the tests pass."}]
    for i in range(1, count + 1):
        command = f"echo {HOSTILE}" if i == 5 else f"cat file-{i}.txt"
        seen = "\n".join(f"line {n}" for n in range(200)) if i == 6 else f"content {i} {HOSTILE if i == 5 else ''}"
        call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": command}}
        observation = {"results": [{"source_call_id": "c", "content": seen}]}
        steps.append(
            {"step_id": i + 1, "source": "agent", "message": "", "tool_calls": [call], "observation": observation}
        )
    agent = {"name": "terminal", "version": "1", "model_name": "m"}
    path.write_text(json.dumps({"schema_version": "ATIF-v1.8", "session_id": "s", "agent": agent, "steps": steps}))
    return path


@pytest.fixture(scope="module")
def work(folder):
    """The notebook's folder with a trace, a codebook, and the notebook."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    trace_file(work / "trace.json")
    (work / "codebook.md").write_text(CODEBOOK)
    write_notebook(
        work / "label.ipynb",
        "import os\nfrom pathlib import Path\nPath('kernel.pid').write_text(str(os.getpid()))\n"
        "from workbench.report.label_widget import LabelWidget\nname = Path('annotator').read_text()\n"
        "widget = LabelWidget.of_files(['trace.json'], 'labels', name, codebook='codebook.md')\nwidget",
        "'the cell below'",
    )
    return work


@pytest.fixture
def annotator(work):
    """A new one for every test, so that each has a journal of its own."""
    name = f"ada-{os.urandom(4).hex()}"
    (work / "annotator").write_text(name)
    return name


@pytest.fixture
def page(driver, server, work, annotator):
    """The notebook, with a new widget."""
    page = Page(driver)
    if "label.ipynb" not in driver.current_url or page.dialog():
        page.open(server.format("label.ipynb"))
    page.run_first()
    eventually(lambda: annotator in page.text(".wb-label .wb-counts"), "the widget")
    return page


@pytest.fixture
def focused(page):
    """The widget with the focus, by a click as a person would give it."""
    page.click(".wb-label .wb-place")
    eventually(lambda: focus(page), "the focus in the widget")
    return page


@pytest.fixture
def journal(work, annotator):
    """Reads what is on the disk at this moment."""
    path = work / "labels" / f"{annotator}.jsonl"
    return lambda: read_labels(path)


def focus(page: Page) -> bool:
    return page.js("return document.activeElement.classList.contains('wb-label')")


def place(page: Page) -> str:
    return page.text(".wb-label .wb-place")


def press(page: Page, key: str | tuple, status: str) -> None:
    """A key, and what the widget answers."""
    page.keys(key)
    eventually(lambda: page.text(STATUS) == status, f"{status!r} after {key!r}, not {page.text(STATUS)!r}")
    assert focus(page), f"the focus is lost after {key!r}"


def test_keys_label_and_the_journal_has_it_at_once(focused, journal, annotator):
    assert focused.js("return getComputedStyle(document.activeElement).boxShadow") != "none"  # a ring is seen
    press(focused, "r", "turn 1: read, saved")
    assert [x.label for x in journal()] == ["read"]
    press(focused, "w", "turn 2: write, saved")
    press(focused, "t", "turn 3: test, saved")
    press(focused, "b", "turn 4: build, saved")
    assert place(focused) == "turn 5 of 12"
    assert [(x.label, x.step, x.annotator, x.codebook) for x in journal()] == [
        ("read", 2, annotator, "3"), ("write", 3, annotator, "3"), ("test", 4, annotator, "3"), ("build", 5, annotator, "3"),
    ]  # fmt: skip
    assert focused.text(".wb-label .wb-guess") == ""


def go(page: Page, turn: int) -> None:
    for number, key in enumerate(["home", *["right"] * (turn - 1)], 1):
        page.keys(key)
        eventually(lambda n=number: place(page) == f"turn {n} of 12", f"turn {number}")


def test_hostile_text_is_text(focused):
    go(focused, 5)
    shown = focused.text(".wb-label .wb-now")
    assert "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert focused.js("return window.hacked") is None
    assert focused.js("return document.querySelectorAll('.wb-label img, .wb-label script').length") == 0


def test_undo_redo_skip_doubt_and_note(focused, journal):
    for number, (key, label) in enumerate([("r", "read"), ("w", "write"), ("t", "test"), ("b", "build")], 1):
        press(focused, key, f"turn {number}: {label}, saved")
    press(focused, "z", "turn 4: undone")
    press(focused, ("control", "z"), "turn 3: undone")
    press(focused, "y", "turn 3: done again")
    press(focused, ("control", "shift", "z"), "turn 4: done again")
    assert [x.label for x in journal()][4:] == ["", "", "test", "build"]
    press(focused, "right", "")
    press(focused, "s", "turn 5: skipped")
    assert place(focused) == "turn 6 of 12"
    press(focused, "left", "")
    assert place(focused) == "turn 5 of 12"
    press(focused, "u", "turn 5: unsure")
    focused.keys("n", *"a b d d r?", "enter")  # typed into the note, not commands
    eventually(lambda: focused.text(STATUS) == "turn 5: note saved", "the note")
    assert focus(focused)
    last = journal()[-1]
    assert (last.label, last.note, last.unsure) == ("", "a b d d r?", True)
    press(focused, "t", "turn 5: test, saved")
    assert (journal()[-1].label, journal()[-1].note) == ("test", "a b d d r?")


def test_help_shows_the_codebook_and_takes_no_labels(focused, journal):
    before = len(journal())
    focused.keys("?")
    help_shown = "return !document.querySelector('.wb-help').hidden"
    eventually(lambda: focused.js(help_shown), "the help")
    assert "Looks, and changes nothing." in focused.text(".wb-help")
    assert "Codebook, version 3" in focused.text(".wb-help")
    focused.keys("r", "w")
    focused.keys("escape")
    eventually(lambda: not focused.js(help_shown), "the help closed")
    assert focus(focused)
    assert len(journal()) == before


def test_long_output_is_folded(focused):
    go(focused, 6)
    assert "line 199" not in focused.text(".wb-now")
    assert "176 more lines" in focused.text(".wb-now")
    focused.keys("e")
    eventually(lambda: "line 199" in focused.text(".wb-now"), "all of the output")
    focused.keys("e")
    eventually(lambda: "line 199" not in focused.text(".wb-now"), "the fold")


def test_commands_of_jupyter_rest_while_the_widget_has_the_focus(focused, work, journal):
    cells, before = focused.cells(), len(journal())
    kinds = "return [...document.querySelectorAll('.jp-Cell')].map((c) => c.className.match(/jp-(Code|Markdown|Raw)Cell/)[1])"
    was = focused.js(kinds)
    focused.keys("a", "d", "d", "x", "m", "c", "v", "1", "0", "0", "i", "i", "l", "o", ("shift", "m"), "enter", "space")
    focused.keys(("shift", "enter"), ("control", "enter"))
    time.sleep(0.5)  # what must not happen would have happened by now
    assert focused.cells() == cells
    assert focused.js(kinds) == was
    assert focus(focused)
    assert not focused.js("return !!document.querySelector('.jp-Dialog')")
    assert len(journal()) == before
    focused.keys(("control", "s"))  # what is not the widget's still works: this saves the notebook
    eventually(lambda: "wb-view" in (work / "label.ipynb").read_text(), "the saved notebook, with a table for readers")


def test_tab_leaves_and_comes_back(focused):
    focused.keys("tab")
    eventually(lambda: not focus(focused), "another element with the focus")
    focused.keys(("shift", "tab"))
    eventually(lambda: focus(focused), "the focus back")


def test_keys_outside_do_not_label(focused, journal):
    before, cells = len(journal()), focused.cells()
    focused.keys("escape")  # gives the keys back to the notebook
    eventually(lambda: not focus(focused), "the focus elsewhere")
    focused.keys("t", "w", "u")
    focused.keys("b")  # a cell below: the notebook's commands work again
    eventually(lambda: focused.cells() == cells + 1, "a new cell")
    time.sleep(0.2)
    assert len(journal()) == before
    focused.keys("d", "d")
    eventually(lambda: focused.cells() == cells, "the new cell gone")


def test_a_busy_kernel_takes_no_keys_blindly_and_a_killed_one_loses_none(focused, work, journal, annotator):
    pid = int((work / "kernel.pid").read_text())
    press(focused, "r", "turn 1: read, saved")
    os.kill(pid, signal.SIGSTOP)
    try:
        before = len(journal())
        focused.keys("w")
        eventually(lambda: "waiting for the kernel" in focused.text(STATUS), "a word about the wait")
        focused.keys("t", "t", "t")
        eventually(lambda: "3 keys not taken" in focused.text(STATUS), "a word about the keys")
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: focused.text(STATUS).startswith("turn 2: write, saved"), "the answer")
    assert [x.label for x in journal()[before:]] == ["write"]
    assert focused.text(".wb-label .wb-counts").startswith("2 of 12 labelled")
    os.kill(pid, signal.SIGKILL)
    focused.driver.get("about:blank")  # the next test opens the notebook anew, with a new kernel
    again = LabelWidget(read_trace(work / "trace.json"), work / "labels", annotator)
    assert [label.label for label in again.labels()] == ["read", "write"]
    assert again.index == 2
