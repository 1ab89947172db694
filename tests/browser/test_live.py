"""The live view and the explorer as a person has them: JupyterLab in a browser, a mouse, a keyboard, a run of another process."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from workbench.proposer.store import HarnessStore
from workbench.runs.folder import new_run

from .lab import Page, eventually, write_notebook

HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script> \u202egnp.exe \x1b[31m"
SHOTS = Path(__file__).resolve().parents[2] / "results" / "browser"  # ignored by git
LIVE, LIST = ".wb-live", ".wb-live .wb-list"
POOL, ASSIGNMENTS, HARNESS = ".the-pool", ".the-assignments", ".the-harness"


def shot(page: Page, name: str) -> None:
    """A picture to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.driver.save_screenshot(str(SHOTS / f"{name}.png"))


def attempt(run, number: int, reward: float, task: str = "hello") -> None:
    turns = [
        {
            "index": 0,
            "text": f"turn of {number}",
            "command": "cat notes.txt",
            "observation": f"seen {HOSTILE}",
            "exit_code": 0,
        }
    ]
    row = {"task": task, "digest": f"d-{task}", "agent": "terminal", "outcome": "graded", "reward": reward, "usd": 0.01,
           "prompt_tokens": 900, "completion_tokens": 60, "turns": 1}  # fmt: skip
    run.path("traces", f"trial-{number}.json").write_text(
        json.dumps({**row, "id": f"trial-{number}", "episodes": [{"turns": turns}]})
    )
    run.record("trial", row, id=f"trial-{number}")


def environment(run, key: str, parent: str, status: str = "active", reason: str = "") -> None:
    folder = run.path("tasks", key)
    (folder / "tests").mkdir(parents=True)
    (folder / "instruction.md").write_text(f"Do {key}. {HOSTILE}\n")
    (folder / "tests" / "test_outputs.py").write_text("def test_it(): ...\n")
    reasons = [{"kind": reason, "message": f"{HOSTILE} at the gate", "stage": "noop"}] if reason else []
    admitted = not reason
    run.record("admission", {"task": key, "stage": "admitted" if admitted else "noop", "valid_paper": admitted, "validated": admitted,
                             "admitted": admitted, "reasons": reasons, "infra": False}, id=key)  # fmt: skip
    row = {"round": 1, "task": key, "path": str(folder), "digest": f"d-{key}", "parent": parent, "direction": "harder", "status": status,
           "reasons": [reason] if reason else [], "message": "", "rewards": [1.0, 0.0], "mean": 0.5, "std": 0.5}  # fmt: skip
    run.record("standing", row, id=key)


@pytest.fixture(scope="module")
def run(folder):
    """A run that this process writes while the notebook's kernel looks at it."""
    with new_run("40_flywheel", {}, results=folder / "runs") as run:
        failures = {"failed test_it; timed out": 2}
        asked = {"round": 1, "parent": "hello", "direction": "harder", "pass_rate": 0.5, "failure": "failed test_it; timed out",
                 "failures": failures, "evidence": ["trial-1"], "quote": f"TimeoutError {HOSTILE}", "quoted": "trial-1"}  # fmt: skip
        run.record("assignment", asked, id="first")
        for n in range(30):
            attempt(run, n, float(n % 3 == 0))
        environment(run, "first", "hello")
        environment(run, "second", "first", "rejected", "noop-passes")
        attempt(run, 30, 1.0, "first")
        run.record("rollouts", {"round": 1, "group": "parents", "task": "hello", "digest": "x", "rewards": [1.0, 0.0]})
        yield run


@pytest.fixture(scope="module")
def work(folder, run):
    work = folder / "work"
    work.mkdir(exist_ok=True)
    store = HarnessStore(run.folder / "harness")
    edited = folder / "edited"
    for part in ("memory", "tools"):
        (edited / part).mkdir(parents=True)
        (edited / part / "README.md").write_bytes((store.path(0) / part / "README.md").read_bytes())
    (edited / "memory" / "notes.md").write_text(f"kept {HOSTILE}\n")
    store.save(edited, started=0, source="r1-a000")
    code = f"""from ipywidgets import VBox
from workbench.report import explore
from workbench.report.live import follow
from workbench.runs.folder import open_run
run = open_run({str(run.folder)!r})
panel = follow(run, seconds=0.2)
parts = [explore.pool(run), explore.assignments(run), explore.harness(run)]
for part, name in zip(parts, ("the-pool", "the-assignments", "the-harness")):
    part.add_class(name)
VBox([panel, *parts])"""
    write_notebook(work / "live.ipynb", code, "panel")
    return work


@pytest.fixture
def page(driver, server, work):
    """The notebook, its first cell run: all four widgets below each other."""
    page = Page(driver)
    if "live.ipynb" not in driver.current_url or page.dialog():
        page.open(server.format("live.ipynb"))
    if not page.js("return !!document.querySelector(arguments[0])", f"{LIST} [role=option]"):
        page.run_first()
    page.sees(f"{LIST} [role=option]")
    page.sees(f"{HARNESS} .wb-diff")
    return page


@pytest.fixture
def live(page):
    page.click(f"{LIVE} .wb-bar button:nth-of-type(1)")  # the newest page
    return page


def active(page: Page) -> str:
    """The option that the keyboard is at."""
    return page.text(f"{LIST} .wb-active")


def at(page: Page, selector: str) -> bool:
    return page.js("return document.activeElement === document.querySelector(arguments[0])", selector)


def unharmed(page: Page) -> None:
    assert page.js("return window.hacked") is None
    assert page.js("return document.querySelectorAll('.wb-view img[src=x], .wb-view script').length") == 0
    for sign in ("\u202e", "\x1b"):
        assert sign not in page.text(".jp-Notebook")


def test_a_run_of_another_process_is_followed(live, run):
    assert "40_flywheel/" in live.text(LIVE)
    assert "running" not in live.text(f"{LIVE} [role=status]")  # no runner wrote a status
    assert "noop-passes" in live.text(LIVE)
    assert "second" in live.text(LIVE)
    before = live.text(f"{LIST} [role=option]")
    attempt(run, 100, 1.0)
    eventually(lambda: live.text(f"{LIST} [role=option]") != before, "the new trial")
    assert live.text(f"{LIST} [role=option]").startswith("trial-100")
    assert live.js("return document.querySelectorAll('.wb-live canvas').length") == 5
    shot(live, "live")
    unharmed(live)


def test_the_mouse_opens_a_trial(live):
    live.click(f"{LIST} [role=option]:nth-child(2)")
    live.sees(".wb-turn")
    assert "cat notes.txt" in live.text(".wb-turn")
    assert live.text(f"{LIST} [aria-selected=true]").startswith("trial-")
    shot(live, "live-trial")
    unharmed(live)


def test_the_keyboard_opens_a_trial_and_updates_do_not_take_the_focus(live, run):
    live.click(f"{LIVE} input")
    live.keys("tab", "tab", "tab")  # newest, older, the list
    eventually(lambda: at(live, LIST), "the focus on the list")
    cells = live.cells()
    live.keys("home", "down", "down")
    third = active(live)
    assert third
    for n in range(101, 104):
        attempt(run, n, 0.0)
    eventually(lambda: live.text(f"{LIST} [role=option]").startswith("trial-103"), "newer trials")
    assert at(live, LIST), "an update took the focus"
    assert active(live) == third, "an update moved the place"
    live.keys("enter")
    eventually(lambda: live.text(f"{LIST} [aria-selected=true]") == third, "the chosen one")
    name = third.split("hello")[0]
    eventually(lambda: f"turn of {name.removeprefix('trial-')}" in live.text(".wb-turn"), "its turns")
    live.keys("d", "d", "b", "a", "x")  # the notebook's commands rest
    time.sleep(0.3)
    assert live.cells() == cells
    assert at(live, LIST)
    live.keys("escape")
    eventually(lambda: not live.text(".wb-turn"), "the trial closed")
    assert at(live, LIST)


def test_a_trial_is_found_by_what_it_says(live, run):
    live.click(f"{LIVE} input")
    live.keys(*"trial-7")
    eventually(lambda: "1 found in" in live.text(LIVE), "what was found")
    assert live.text(f"{LIST} [role=option]").startswith("trial-7")
    attempt(run, 200, 0.0)
    time.sleep(0.6)
    assert live.js("return document.activeElement.value") == "trial-7", "an update took the focus or the text"
    live.keys(*["backspace"] * 7)
    eventually(lambda: live.text(f"{LIST} [role=option]").startswith("trial-200"), "all trials")
    live.click(f"{LIVE} .wb-bar button:nth-of-type(2)")
    eventually(lambda: not live.text(f"{LIST} [role=option]").startswith("trial-200"), "older ones")
    live.click(f"{LIVE} .wb-bar button:nth-of-type(1)")
    eventually(lambda: live.text(f"{LIST} [role=option]").startswith("trial-200"), "the newest")


def test_the_pool_is_browsed_with_the_keyboard(page):
    page.click(".the-pool input")
    page.keys(*"second")
    eventually(
        lambda: page.js("return document.querySelectorAll('.the-pool .wb-scroll tbody tr').length") == 1, "one row"
    )
    page.keys(*["backspace"] * 6)
    eventually(
        lambda: page.js("return document.querySelectorAll('.the-pool .wb-scroll tbody tr').length") == 2, "both rows"
    )
    page.js("document.querySelector('.the-pool .wb-scroll tbody tr').focus()")
    page.keys("enter")
    eventually(lambda: "first · first · active" in page.text(POOL), "the environment")
    assert page.js("return document.activeElement.tagName") == "TR", "choosing a row took the focus"
    page.click(f"{POOL} [role=tab][aria-selected=true]")
    page.keys("right")
    eventually(lambda: "Do first." in page.text(f"{POOL} pre"), "its instruction")
    page.keys("tab", "home", "down", "enter")
    eventually(lambda: "def test_it" in page.text(f"{POOL} pre"), "its test")
    shot(page, "pool-files")
    unharmed(page)


def test_attempts_and_lineage_by_mouse(page):
    page.click(".the-pool .wb-scroll tbody tr")
    page.click(f"{POOL} [role=tab]:nth-child(4)")
    eventually(lambda: "trial-30" in page.text(f"{POOL} .wb-list"), "the attempts")
    page.click(f"{POOL} [role=option]")
    page.sees(".the-pool .wb-turn")
    assert "turn of 30" in page.text(".the-pool .wb-turn")
    page.click(f"{POOL} [role=tab]:nth-child(5)")
    page.waits(
        lambda: page.js(
            "const i = document.querySelector('.the-pool img'); return i && i.complete && i.naturalWidth > 100"
        ),
        "the drawing",
    )
    assert "hello" in page.text(f"{POOL} .wb-list")
    shot(page, "pool-lineage")
    page.click(f"{POOL} [role=option]:nth-child(3)")
    eventually(lambda: "second · second · rejected" in page.text(POOL), "the child")
    unharmed(page)


def test_assignments_and_harness_versions(page):
    assert "failed test_it; timed out" in page.text(ASSIGNMENTS)
    assert "TimeoutError" in page.text(ASSIGNMENTS)
    page.click(f"{ASSIGNMENTS} [role=tab]:nth-child(2)")
    eventually(lambda: "trial-1" in page.text(f"{ASSIGNMENTS} .wb-list"), "the evidence")
    page.click(f"{ASSIGNMENTS} [role=option]")
    page.sees(f"{ASSIGNMENTS} .wb-turn")
    shot(page, "assignments")
    page.click(f"{HARNESS} [role=option]:nth-child(2)")
    eventually(lambda: "the first version" in page.text(HARNESS), "the seed")
    page.keys("home", "enter")
    eventually(lambda: "+kept" in page.text(f"{HARNESS} .wb-diff"), "the difference")
    assert page.text(f"{HARNESS} .wb-plus").startswith("+")
    shot(page, "harness")
    unharmed(page)


def test_static_html_is_in_the_saved_notebook(page, work):
    page.click(".jp-Notebook .jp-Cell:nth-of-type(2) .cm-content")
    page.keys(("control", "enter"))  # the panel alone
    page.sees(".jp-Cell:nth-of-type(2) .wb-live", 60)
    page.keys(("control", "s"))
    eventually(lambda: "wb-live" in (work / "live.ipynb").read_text(), "the saved notebook")
    saved = json.loads((work / "live.ipynb").read_text())
    html = "".join(saved["cells"][1]["outputs"][0]["data"]["text/html"])
    assert "noop-passes" in html
    assert "<script" not in html
