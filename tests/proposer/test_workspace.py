"""What a proposer reads, and what it keeps: file and field names of the paper's appendix E.2, versions, diffs, merges."""

from __future__ import annotations

import json
import shutil

import pytest

from workbench.proposer.program import seed_tasks
from workbench.proposer.store import HarnessStore
from workbench.proposer.workspace import Past, assignment_text, instruction, safe, write_fixed, write_past
from workbench.tasks import load_task
from workbench.tasks.verifier import is_managed
from workbench.traces import Episode, Turn
from workbench.trials import Grade, Trial

from . import harness_parts as parts


def trial(id: str, reward: float | None, outcome: str = "graded") -> Trial:
    turns = (Turn(0, "I look.", "ls", "a\x1b[2Jb", 0),)
    steps = (Grade(reward, stdout="failed count\n", tests={"count": "failed"}),)
    return Trial(id, "run", 0.0, "t", "d", "terminal", "org/model:1", "bubblewrap", outcome, reward, steps=steps,
                 episodes=(Episode("terminal", turns, "org/model:1", True),), ended_by="submit")  # fmt: skip


def test_past_environments_and_trajectories_have_the_papers_names(tmp_path):
    task = load_task(seed_tasks(tmp_path, (2,), 0)[0])
    past = Past("pool/env 1", task, [trial("a", 1.0), trial("b", 0.0), trial("c", None, "infra")], round=3)
    write_past(tmp_path / "past", [past])
    (line,) = (tmp_path / "past/past_trajectories/index.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["env_id"], row["provenance"], row["round"]) == ("pool-env-1", "self", 3)
    assert (row["rewards"], row["avg_reward"], row["reward_std"]) == ([1.0, 0.0], 0.5, 0.5)
    attempt = json.loads((tmp_path / "past/past_trajectories" / row["files"][1]).read_text())
    assert attempt["outcome"]["verifier_stdout"] == "failed count\n"
    assert attempt["trajectory"][0]["observation"] == "a\\x1b[2Jb"
    assert load_task(tmp_path / "past/past_environments/pool-env-1").digest == task.digest


def test_two_environments_of_one_name_are_not_mixed(tmp_path):
    tasks = [load_task(path) for path in seed_tasks(tmp_path, (2, 4), 0)]
    write_past(
        tmp_path / "past", [Past(name, t, [trial("a", 1.0)]) for name, t in zip(("a b", "a/b"), tasks, strict=True)]
    )
    folders = sorted((tmp_path / "past/past_environments").iterdir())
    assert [load_task(folder).digest for folder in folders] == [task.digest for task in tasks]
    lines = (tmp_path / "past/past_trajectories/index.jsonl").read_text().splitlines()
    assert [json.loads(line)["env_id"] for line in lines] == [folder.name for folder in folders] == ["a-b", "a-b-2"]


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "", "x" * 300, "é\n"])
def test_names_of_the_pool_cannot_leave_their_folder(name):
    assert "/" not in safe(name)
    assert safe(name) not in ("", ".", "..")
    assert len(safe(name)) <= 80


def test_the_fixed_parts_hold_a_task_that_validates_and_the_managed_verifier(tmp_path):
    write_fixed(tmp_path)
    assert load_task(tmp_path / "task_template").name == "local/new-task"
    assert is_managed(tmp_path / "verifier_template.sh")
    assert {"create_task.md", "auto_env_scaling.md", "workspace.md"} <= {
        p.name for p in (tmp_path / "skills").iterdir()
    }
    assert (tmp_path / "opt-tools/validate.py").stat().st_mode & 0o111


def test_the_instruction_begins_with_the_skills_and_ends_with_the_assignment():
    text = instruction(assignment_text(parts.assignment(), "env_003", {"validate": 5}, "[oracle] \x1b[2Jbad"))
    assert (
        text.index("# Skill: create a Harbor task")
        < text.index("# Skill: environments")
        < text.index("# Assignment r1-a003")
    )
    for words in (
        "/workspace/env_003/",
        "- validate: 5 calls",
        "mean reward on it: 0.90",
        "[oracle] \\x1b[2Jbad",
        "harder variant",
    ):
        assert words in text


@pytest.fixture
def store(tmp_path):
    return HarnessStore(tmp_path / "store")


def edit(store, tmp_path, version, name, **files):
    """A copy of a version with `files` (memory/KEY.md) laid over it; None takes one away."""
    folder = tmp_path / name
    shutil.copytree(store.path(version), folder)
    for key, text in files.items():
        path = folder / "memory" / f"{key}.md"
        path.unlink(missing_ok=True) if text is None else path.write_text(text)
    return folder


def test_every_version_is_kept_and_a_diff_shows_what_changed(store, tmp_path):
    one = store.save(edit(store, tmp_path, 0, "a", notes="first\n"), started=0, source="r1-a000")
    two = store.save(edit(store, tmp_path, 1, "b", notes="second\n", README=None), started=1, source="r2-a000")
    assert (one.number, two.number, two.parent) == (1, 2, 1)
    assert len({v.digest for v in store.versions}) == 3
    assert (store.path(1) / "memory/notes.md").read_text() == "first\n"
    diff = store.diff(1, 2)
    assert "-first" in diff
    assert "+second" in diff
    assert "README" in diff
    assert store.save(store.path(2), started=2, source="x") == two
    assert HarnessStore(store.folder).versions == store.versions


def test_episodes_of_a_round_begin_alike_and_their_edits_are_merged(store, tmp_path):
    begun = [store.for_round(1).number for _ in range(2)]
    store.save(edit(store, tmp_path, 0, "a", one="1\n", same="a\n"), started=0, source="r1-a000")
    assert store.for_round(1).number == begun[0] == begun[1] == 0
    merged = store.save(edit(store, tmp_path, 0, "b", two="2\n", same="b\n"), started=0, source="r1-a001")
    assert {p.stem: p.read_text() for p in (store.path(merged.number) / "memory").glob("[ost]*.md")} == {
        "one": "1\n", "two": "2\n", "same": "b\n",
    }  # fmt: skip
    assert merged.replaced == ("memory/same.md",)
    assert store.for_round(2).number == merged.number
    assert HarnessStore(store.folder).for_round(1).number == 0


def test_a_file_of_one_episode_does_not_lose_what_another_keeps_in_a_folder_of_its_name(store, tmp_path):
    def written(name, path, text):
        folder = tmp_path / name
        shutil.copytree(store.path(0), folder)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        return folder

    store.save(written("a", "memory/notes", "a file"), started=0, source="a")
    below = store.save(written("b", "memory/notes/today.md", "below"), started=0, source="b")
    assert below.replaced == ("memory/notes",)
    assert (store.path(below.number) / "memory/notes/today.md").read_text() == "below"
    again = store.save(written("c", "memory/notes", "a file again"), started=0, source="c")
    assert again.replaced == ("memory/notes/today.md",)
    assert (store.path(again.number) / "memory/notes").read_text() == "a file again"


def test_a_diff_does_not_drive_a_terminal(store, tmp_path):
    odd = store.save(edit(store, tmp_path, 0, "a", notes="x\x1b]0;owned\x07\x1b[2J\rgone\n"), started=0, source="x")
    assert "\\x1b]0;owned" in store.diff(0, odd.number)
    assert store.diff(0, odd.number).isprintable() is False  # newlines
    assert all(c.isprintable() or c == "\n" for c in store.diff(0, odd.number))


def test_what_is_too_large_is_not_kept(store, tmp_path):
    big = edit(store, tmp_path, 0, "a", notes="x" * (5 << 20))
    with pytest.raises(ValueError, match="more than"):
        store.save(big, started=0, source="x")
    with pytest.raises(KeyError, match="no version 7"):
        store.path(7)
    assert len(store.versions) == 1


def test_a_torn_last_line_is_no_version(store, tmp_path):
    store.save(edit(store, tmp_path, 0, "a", notes="1"), started=0, source="x")
    with (store.folder / "versions.jsonl").open("a") as file:
        file.write('{"number": 2, "dig')
    again = HarnessStore(store.folder)
    assert again.latest.number == 1
    assert again.save(edit(again, tmp_path, 1, "b", notes="2"), started=1, source="y").number == 2
    assert HarnessStore(store.folder).latest.number == 2
