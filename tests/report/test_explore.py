"""The explorer: pool, assignments, harness versions; what is chosen is shown, whatever it is made of."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

import traitlets
from report_rows import HOSTILE, admission

from workbench.proposer.store import HarnessStore
from workbench.report import explore
from workbench.report.explore_data import MOST_TEXT, PoolData, files_of, text_of
from workbench.report.harness_versions import difference, find_store


def standing(run, key: str, parent: str, *, status: str = "active", digest: str = "", **more) -> None:
    folder = run.path("tasks", key)
    (folder / "tests").mkdir(parents=True)
    (folder / "instruction.md").write_text(f"Do {key}.\n")
    (folder / "tests" / "test_outputs.py").write_text(f"def test_{status}(): ...\n")
    row = {"round": 1, "task": key, "path": str(folder), "digest": digest or f"d-{key}", "parent": parent, "direction": "harder",
           "status": status, "reasons": [], "message": "", "rewards": [1.0, 0.0], "mean": 0.5, "std": 0.5}  # fmt: skip
    run.record("standing", row | more, id=key)


@pytest.fixture
def pool(run):
    """seed → a → (b, c), b → d; d was refused. a's attempts: two of calibration, one of the oracle."""
    assignment = {"parent": "hello", "parent_digest": "x", "direction": "harder", "pass_rate": 0.25, "failure": "failed test_a; timed out",
                  "failures": {"failed test_a; timed out": 3, "failed test_b": 1}, "evidence": ["a-solver-0", "gone"],
                  "quote": "TimeoutError: 5 s", "quoted": "a-solver-0", "way": "one more skill", "round": 1}  # fmt: skip
    run.record("assignment", assignment, id="a")
    run.record(
        "proposal", {"assignment": "a", "proposer": "program", "message": "made it", "usd": 0.5, "path": "p"}, id="a"
    )
    for n, (agent, reward) in enumerate([("oracle", 1.0), ("terminal", 1.0), ("terminal", 0.0)]):
        row = {"task": "a", "digest": "d-a", "agent": agent, "outcome": "graded", "reward": reward}
        run.record("trial", row, id=f"a-solver-{n}" if n else "a-oracle")
    run.record(
        "trial",
        {"task": "seed", "digest": "x", "agent": "terminal", "outcome": "graded", "reward": 0.0},
        id="a-solver-0",
    )
    report = {"calibration": {"n": 2, "mean": 0.5, "std": 0.5, "posterior": 0.7, "keep": True, "rewards": [1.0, 0.0]}}
    run.record("admission", admission("a", "admitted") | {"report": report}, id="a")
    run.record("admission", admission("d", "noop", kind="noop-passes"), id="d")
    standing(run, "a", "hello")
    run.record("assignment", {"parent": "a", "parent_digest": "d-a", "direction": "harder", "pass_rate": 1.0}, id="b")
    standing(run, "b", "a")
    standing(run, "c", "a", status="evicted", reasons=["too-easy"])
    standing(run, "d", "b", status="rejected", reasons=["noop-passes"])
    return run


def labels(panel) -> list[list[str]]:
    return [cells for _, cells in panel.items]


def texts(panel) -> str:
    return json.dumps(panel.blocks, ensure_ascii=False)


def test_the_table_filters_and_a_row_opens_its_environment(pool):
    browser = explore.pool(pool)
    assert [r["id"] for r in browser.table.visible_rows] == ["a", "b", "c", "d"]
    assert [(r["children"], r["attempts"]) for r in browser.table.visible_rows] == [(2, 3), (1, 0), (0, 0), (0, 0)]
    browser.table.status = "rejected"
    assert [r["id"] for r in browser.table.visible_rows] == ["d"]
    browser.table.selected = 3  # what a click sets
    assert browser.panel.title == "d · d · rejected"
    assert "noop-passes at noop" in texts(browser.panel)
    browser.open("a")
    assert "one more skill" in texts(browser.panel)
    with pytest.raises(KeyError, match="no environment 'z'"):
        browser.open("z")


def test_files_and_tests_are_read(pool):
    panel = explore.pool(pool).panel
    panel.show("a")
    panel.tab = "files"
    assert (
        labels(panel) == [["instruction.md", "6 bytes"], ["tests/test_outputs.py", "25 bytes"]]
        or len(labels(panel)) == 2
    )
    assert panel.blocks[0]["text"] == "Do a.\n"
    panel.item = "tests/test_outputs.py"
    assert "def test_active" in panel.blocks[0]["text"]
    panel.tab = "tests"
    assert panel.item == ""
    assert [cells[0] for cells in labels(panel)] == ["tests/test_outputs.py"]
    assert "def test_active" in panel.blocks[0]["text"]
    panel.item = "../../params.json"
    assert panel.blocks[0]["text"] == "no such file"


def test_attempts_open_in_the_viewer(pool):
    turns = [{"index": 0, "text": "look", "command": "ls", "observation": "a", "exit_code": 0}]
    row = {"id": "a-solver-1", "task": "a", "agent": "terminal", "episodes": [{"turns": turns}]}
    pool.path("traces", "a-solver-1.json").write_text(json.dumps(row))
    browser = explore.pool(pool)
    browser.open("a")
    browser.panel.tab = "attempts"
    assert [cells[:2] for cells in labels(browser.panel)] == [
        ["a-oracle", "oracle"],
        ["a-solver-1", "terminal"],
        ["a-solver-2", "terminal"],
    ]
    assert '["posterior", "0.7"]' in texts(browser.panel)
    browser.panel.item = "1"
    assert browser.viewer.turns[0]["command"] == "ls"
    assert browser.children[-1] is browser.viewer
    assert "ls" in browser.static_html()
    browser.panel.item = "99"
    assert browser.viewer is None
    browser.panel.item = "2"
    browser.panel.tab = "verdict"
    assert browser.viewer is None


def test_the_lineage_is_shown_and_walked(pool):
    browser = explore.pool(pool)
    panel = browser.panel
    panel.show("b")
    panel.tab = "lineage"
    assert labels(panel) == [
        ["from", "a", "active"],
        ["from", "hello", "seed"],
        ["itself", "b", "active"],
        ["to", "d", "rejected"],
    ]
    assert panel.picture.startswith(b"\x89PNG")
    assert "ancestors: 2, children: 1" in texts(panel)
    panel.item = "d"  # goes there
    assert panel.environment == "d"
    assert browser.table.selected == 3  # the table goes along
    assert labels(panel)[-1] == ["itself", "d", "rejected"]
    assert "data:image/png;base64," in panel.static_html()


def test_an_unknown_tab_is_refused(pool):
    panel = explore.pool(pool).panel
    with pytest.raises(traitlets.TraitError, match="use one of verdict, files"):
        panel.tab = "secrets"


def test_assignments_show_failures_with_their_line(pool):
    view = explore.assignments(pool)
    assert labels(view.panel) == [["a", "hello", "harder", "0.25"], ["b", "a", "harder", "1"]]
    rows = next(b["rows"] for b in view.panel.blocks if b["kind"] == "table")
    assert rows == [["3", "failed test_a; timed out", "TimeoutError: 5 s (a-solver-0)"], ["1", "failed test_b", ""]]
    assert "made it" in texts(view.panel)
    view.panel.tab = "evidence"
    assert [cells[0] for cells in labels(view.panel)] == ["a-solver-0", "gone"]
    view.panel.item = "0"
    assert ["reward", "0"] in view.viewer.facts
    view.panel.item = "1"
    assert view.viewer is None
    assert "not in this journal" in texts(view.panel)
    view.panel.tab = "assignments"
    view.panel.item = "b"
    assert "no failure" in texts(view.panel)


def test_a_run_without_anything(run):
    assert "0 of 0 rows" in explore.pool(run).static_html()
    assert "has no assignments" in explore.assignments(run).static_html()
    with pytest.raises(FileNotFoundError, match="has no store"):
        explore.harness(run)


def test_files_of_a_hostile_task(run, tmp_path):
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "big").write_bytes(b"x" * (10 << 20))
    (folder / "binary").write_bytes(b"\0\1")
    (folder / "escape.txt").write_text(HOSTILE)
    (folder / os.fsdecode(b"bad-\xff\x1b.txt")).write_text("odd name")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    names = dict(files_of(folder))
    assert names["link"].startswith("link ")
    assert names["pipe"] == "other"
    assert not any(name.startswith("out/") for name in names)
    assert len(text_of(folder, "big")) < MOST_TEXT + 100
    assert text_of(folder, "bad-··.txt") == "odd name"
    assert text_of(folder, "binary") == "not shown: not a text"
    for name in ("link", "pipe"):
        assert text_of(folder, name).startswith("not shown")
    for name in ("../secret", "out/secret", "/etc/passwd", "\0"):
        assert text_of(folder, name) == "no such file"
    assert "\x1b" not in text_of(folder, "escape.txt")


def test_hostile_rows_are_text_and_cut(run):
    standing(
        run,
        "e1",
        HOSTILE,
        status=HOSTILE,
        task=HOSTILE,
        message="m" * (3 << 20),
        reasons=[HOSTILE, 5],
        rewards=[HOSTILE],
    )
    standing(run, "e2", HOSTILE, status="active", reasons="no list", mean="high", rewards=None)
    run.record(
        "assignment",
        {
            "parent": HOSTILE,
            "failures": {HOSTILE: HOSTILE},
            "failure": HOSTILE,
            "quote": HOSTILE,
            "evidence": [HOSTILE],
        },
        id="e1",
    )
    run.record("assignment", {"failures": 5, "evidence": "x", "pass_rate": "much"}, id="e2")
    run.record(
        "admission",
        {"reasons": [HOSTILE, {"kind": HOSTILE}], "rewards": 5, "report": "none", "seconds": {"a": HOSTILE}},
        id="e1",
    )
    run.record(
        "trial", {"task": HOSTILE, "digest": "d-e1", "agent": HOSTILE, "outcome": HOSTILE, "reward": HOSTILE}, id="t"
    )
    browser, view = explore.pool(run), explore.assignments(run)
    shown = [view.static_html()]
    for key in ("e1", "e2"):
        browser.open(key)
        for tab in browser.panel.tabs:
            browser.panel.tab = tab
            shown.append(browser.static_html())
            shown.append(json.dumps(browser.panel.get_state(["title", "items", "blocks"]), ensure_ascii=False))
            assert len(shown[-1]) < 20_000
    for key, tab in (("e1", "evidence"), ("e2", "evidence")):
        view.panel.tab = "assignments"
        view.panel.item = key
        view.panel.tab = tab
        shown.append(view.static_html())
    for html in shown:
        assert "<script" not in html or html.startswith("{")
        assert "\x1b" not in html
        assert "\u202e" not in html
    assert "&lt;script&gt;" in "".join(shown)


def test_a_path_of_another_machine_is_found_below_the_run(pool):
    standing(pool, "m", "a", path="/another/machine/results/tasks/m")
    assert PoolData(pool).folder_of("m") == pool.folder / "tasks" / "m"
    standing(pool, "n", "a", path="/another/machine/n")
    (pool.folder / "tasks" / "n").rename(pool.folder / "tasks" / "elsewhere")
    panel = explore.pool(pool).panel
    panel.show("n")
    panel.tab = "files"
    assert "not on this machine" in texts(panel)


@pytest.fixture
def store(tmp_path):
    """Three versions: the seed, a memory written, a tool added and the memory changed."""
    made = HarnessStore(tmp_path / "run" / "harness")
    edited = tmp_path / "edited"
    for number, (name, text) in enumerate([("memory/notes.md", "one\n"), ("tools/check.sh", f"echo {HOSTILE}\n")]):
        path = edited / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if number:
            (edited / "memory" / "notes.md").write_text("one\ntwo\n")
        for part, first in (("memory", "README.md"), ("tools", "README.md")):
            (edited / part).mkdir(exist_ok=True)
            (edited / part / first).write_bytes((made.path(0) / part / first).read_bytes())
        made.save(edited, started=number, source=f"r1-a{number:03d}")
    return made


def test_versions_and_their_differences(store):
    view = explore.harness(store.folder)
    assert [cells[:2] for cells in labels(view)] == [["2", "r1-a001"], ["1", "r1-a000"], ["0", "seed"]]
    shown = view.blocks[1]["text"]
    assert "+two" in shown
    assert "+++ tools/check.sh" in shown
    assert "--- (not there)" in shown
    assert "\x1b" not in shown
    assert "&lt;script&gt;" in view.static_html()
    view.item = "1"
    assert "+one" in view.blocks[1]["text"]
    view.item = "0"
    assert "the first version" in texts(view)
    view.item, view.against = "2", 0
    assert view.blocks[1]["name"] == "from version 0"
    assert "+one" in view.blocks[1]["text"]
    view.tab = "files"
    assert ["memory/notes.md", "8"] in view.blocks[1]["rows"]


def test_a_store_is_found_in_a_run(store):
    assert find_store(store.folder.parent) == store.folder


def test_hostile_versions(store, tmp_path):
    folder = store.folder / "versions" / "0002" / "memory"
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "binary").write_bytes(b"\0" * 10)
    (folder / "huge").write_bytes(b"h" * (10 << 20))
    (folder / "long").write_text("a\n" * 5000)
    (folder / "wide").write_text("w" * 200_000)
    text = difference(store.folder, 0, 2)
    assert "secret" not in text
    assert "memory/binary: not a text, 0 to 10 bytes" in text
    assert "memory/huge: more than 256 kB, not compared" in text
    assert "too many to compare" in text
    assert len(text) < 70_000
    with (store.folder / "versions.jsonl").open("a") as file:
        file.write('{"number": 3, "changed": 5, "source": ["x"]}\n{"number": -1}\n{"number": "../.."}\n[]\n{torn')
    view = explore.harness(store.folder)
    assert sorted(view.versions) == [0, 1, 2, 3]
    assert view.number == 3
    assert view.static_html()
