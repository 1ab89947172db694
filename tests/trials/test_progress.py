"""Phi after every turn, graded from outside on real sandboxes, with hostile workspaces."""

from __future__ import annotations

import json

import pytest

from workbench.sandboxes import SandboxError
from workbench.sandboxes.changes import Watcher
from workbench.tasks.progress import Node, ProgressError, load_contract, potential
from workbench.traces import Turn
from workbench.trials.progress import per_turn
from workbench.trials.run import run_trial

from .small_tasks import Commands, Counting, Journal, make

NODES = [
    {"name": "first", "weight": 1, "requires": []},
    {"name": "second", "weight": 2, "requires": ["first"]},
    {"name": "third", "weight": 1, "requires": ["second"]},
]
SCORER = """
def score(truth, tree):
    words = tree.get("output/words.txt", b"").decode().split()
    if b"boom" in tree.get("output/words.txt", b""):
        raise RuntimeError("boom")
    if b"hang" in tree.get("output/words.txt", b""):
        while True: pass
    return {name: float(truth[name] in words) for name in ("first", "second", "third")}
"""
START = "mkdir -p output"


def graded_task(path, **more):
    task = make(path)
    tests = path / "tests"
    (tests / "progress.json").write_text(json.dumps({"version": 1, "nodes": NODES, "truth": "truth.json", **more}))
    (tests / "progress.py").write_text(SCORER)
    (tests / "truth.json").write_text(json.dumps({"first": "one", "second": "two", "third": "three"}))
    return task.path


def play(tmp_path, backend, *commands, **more):
    return run_trial(graded_task(tmp_path / "t", **more), Commands(*commands), backend)


def test_phi_rises_with_work_and_falls_when_it_is_undone(tmp_path, backend):
    trial = play(tmp_path, backend, START, "echo one > output/words.txt", "echo two >> output/words.txt",
                 "echo three >> output/words.txt", "rm -r output", "mkdir output; echo two three > output/words.txt")  # fmt: skip
    assert trial.progress == (0.0, 0.25, 0.75, 1.0, 0.0, 0.0)  # without `first` nothing else counts
    assert trial.phi == 0.0
    assert [t.progress for t in trial.episodes[0].turns] == list(trial.progress)
    assert trial.progress_seconds > 0


def test_the_last_turn_has_what_stands_when_nothing_runs_any_more(tmp_path, backend):
    late = "mkdir -p output; (sleep 0.4; echo one > output/words.txt) >/dev/null 2>&1 &"
    trial = play(tmp_path, backend, late, "sleep 1")
    assert trial.progress == (0.0, 0.25)
    assert trial.phi == 0.25


def test_a_running_process_goes_on_after_it_was_looked_at(tmp_path, backend):
    """What the agent left running is stopped only for the look; what it stopped itself stays stopped."""
    trial = play(
        tmp_path, backend, START,
        "(while :; do echo x >> output/live; sleep 0.02; done) >/dev/null 2>&1 & echo $! > live.pid",
        "(while :; do echo x >> output/held; sleep 0.02; done) >/dev/null 2>&1 & echo $! > held.pid; sleep 0.2; kill -STOP $!",
        "wc -l < output/live > a; wc -l < output/held > b; sleep 0.5",
        "[ $(wc -l < output/live) -gt $(cat a) ] && [ $(wc -l < output/held) = $(cat b) ] && echo one > output/words.txt",
    )  # fmt: skip
    assert trial.progress[-1] == 0.25


@pytest.mark.parametrize(
    "hostile",
    [
        "ln -s /etc output",
        "mkdir output; ln -s /etc/passwd output/words.txt",
        "mkdir output; mkfifo output/words.txt",
        "touch output",
        "mkdir output; truncate -s 40G output/words.txt",
        "mkdir output; cd output; for i in $(seq 6000); do : > $i; done",
        "mkdir output; printf 'boom' > output/words.txt",
        "mkdir -p output/words.txt",
        "rm -rf /app; ln -s / /app",
    ],
)
def test_a_hostile_workspace_scores_nothing_and_the_next_honest_one_counts(tmp_path, backend, hostile):
    honest = "cd /; rm -rf /app/output 2>/dev/null; rm -f /app/output /app 2>/dev/null; mkdir -p /app/output; echo one > /app/output/words.txt"
    trial = play(tmp_path, backend, hostile, honest)
    assert trial.progress == (0.0, 0.25), trial.message
    assert trial.outcome == "graded"


def test_a_scorer_that_hangs_costs_a_turn_and_not_the_trial(tmp_path, backend, monkeypatch):
    monkeypatch.setattr("workbench.trials.progress.LOOK_SECONDS", 0.5)
    trial = play(tmp_path, backend, START, "echo hang > output/words.txt", "echo one > output/words.txt")
    assert trial.progress == (0.0, 0.0, 0.25)
    assert "did not answer" in trial.message


def test_the_agent_sees_neither_scorer_nor_truth_nor_socket(tmp_path, backend):
    trial = play(tmp_path, backend, "ls / /tests /opt /run; cat /tests/truth.json; ls /run/progress; ps ax 2>&1; true")
    seen = trial.episodes[0].turns[0].observation
    assert "truth.json" not in seen.replace("/tests/truth.json", "")
    assert "score.py" not in seen


def test_no_sandbox_stays(tmp_path, backend):
    counting = Counting(backend)
    run_trial(graded_task(tmp_path / "t"), Commands(START), counting)
    assert len(counting.started) == len(counting.stopped) == 3


def test_a_grader_that_cannot_start_is_infrastructure(tmp_path, backend, monkeypatch):
    def lost(*_a, **_k):
        raise SandboxError("lost")

    monkeypatch.setattr("workbench.trials.progress.ProgressGrader._open", lost)
    trial = play(tmp_path, backend, START)
    assert (trial.outcome, trial.reward) == ("infra", None)


def test_it_is_kept_and_read_back(tmp_path, backend):
    journal, path = Journal(tmp_path / "run"), graded_task(tmp_path / "t")
    first = run_trial(path, Commands(START, "echo one > output/words.txt"), backend, run=journal, id="a")
    again = run_trial(path, Commands("false"), backend, run=journal, id="a")
    assert again.progress == first.progress == (0.0, 0.25)
    assert again.phi == 0.25


def test_a_task_without_a_contract_has_no_phi(tmp_path, backend):
    trial = run_trial(make(tmp_path / "t"), Commands("true"), backend)
    assert (trial.phi, trial.progress) == (None, ())


def test_a_trial_that_is_not_asked_for_phi_has_the_same_reward_and_no_phi(tmp_path, backend):
    task = graded_task(tmp_path / "t")
    plain, watched = (run_trial(task, Commands(START), backend, progress=wanted) for wanted in (False, True))
    assert (plain.phi, plain.progress, watched.phi) == (None, (), 0.0)
    assert plain.reward == watched.reward


def test_only_what_changed_is_read_again(tmp_path, backend):
    image = backend.build(make(tmp_path / "t").environment)
    with backend.start(image) as sandbox:
        watcher = Watcher(sandbox, "/app", ("output",), max_bytes=1 << 20)
        sandbox.exec("mkdir -p output/deep; echo a > output/a; echo b > output/deep/b")
        assert watcher.look() == ({"output/a": b"a\n", "output/deep/b": b"b\n"}, [])
        assert watcher.look() == ({}, [])
        sandbox.exec(
            "touch -r output/a stamp; echo c > output/a; touch -r stamp output/a; rm -r output/deep"
        )  # a forged time
        assert watcher.look() == ({"output/a": b"c\n"}, ["output/deep/b"])
        sandbox.exec("head -c 2000000 /dev/zero > output/big")
        with pytest.raises(ValueError, match="more than 1048576 bytes"):
            watcher.look()


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "between 1 and"),
        ([{"name": "a", "weight": 0}], "weight 0"),
        ([{"name": "a", "weight": 1, "requires": ["b"]}, {"name": "b", "weight": 1}], "requires ['b']"),
        ([{"name": "a", "weight": 1}, {"name": "a", "weight": 1}], "no name of its own"),
        ([{"weight": 1}], "not a progress contract"),
    ],
)
def test_a_malformed_contract_is_the_tasks_fault(tmp_path, backend, nodes, words):
    path = graded_task(tmp_path / "t", nodes=nodes)
    trial = run_trial(path, Commands(START), backend)
    assert (trial.outcome, trial.reason) == ("task", "progress-contract")
    assert words in trial.message


def test_the_contract_names_files_beside_it(tmp_path):
    path = graded_task(tmp_path / "t", program="../evil.py")
    with pytest.raises(ProgressError, match="evil"):
        load_contract(path / "tests")


def test_potential_by_hand():
    """Weights 1, 2, 1 of 4; second is capped by first: 1/4 * 0.5 + 2/4 * 0.5 + 1/4 * 0.25."""
    nodes = [Node("first", 1), Node("second", 2, ("first",)), Node("third", 1, ("second",))]
    assert potential(nodes, {"first": 0.5, "second": 1.0, "third": 0.25}) == 0.4375
    thirds = [Node(name, 1) for name in "abc"]
    assert potential(thirds, dict.fromkeys("abc", 1.0)) == 1.0
    for bad in (float("nan"), 1.5, -0.1, "1", True):
        with pytest.raises(ProgressError):
            potential(thirds, {"a": bad})


def test_turns_without_commands_keep_what_stood_before():
    turns = [
        Turn(0, text="think"),
        Turn(1, command="a"),
        Turn(2, text="hm"),
        Turn(3, command="b"),
        Turn(4, text="done"),
    ]
    assert [t.progress for t in per_turn(turns, [0.25, 0.5], 0.5)] == [0.0, 0.25, 0.25, 0.5, 0.5]
    assert [t.progress for t in per_turn(turns, [0.5], 0.5)] == [None, None, None, None, 0.5]
    assert per_turn([], [], 0.0) == ()
