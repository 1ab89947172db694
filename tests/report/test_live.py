"""The live view: a journal that grows, breaks off, is replaced or is hostile, and what is seen of it."""

from __future__ import annotations

import io
import json
import math
import re
import threading
import time

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

from report_rows import HOSTILE, admission

from workbench.report import live_journal
from workbench.report.live import follow, terminal
from workbench.report.live_journal import Follower
from workbench.report.live_state import POINTS, Line, LiveState
from workbench.report.live_trials import PAGE
from workbench.report.live_watch import state_of, time_left
from workbench.runs.journal import FileLock, RunLocked


def trial(run, number: int, reward: float | None = 1.0, **more) -> None:
    row = {"task": "t", "agent": "terminal", "outcome": "graded", "reward": reward, "usd": 0.5, "prompt_tokens": 10}
    run.record("trial", row | more, id=f"trial-{number}")


def facts(view) -> dict[str, str]:
    return {name: value for name, value, _ in view.seen["facts"]}


@pytest.fixture
def wheel(run):
    """A run with one of everything that a round records."""
    run.record("assignment", {"round": 1, "parent": "p"}, id="r1-a000")
    run.record("assignment", {"round": 1, "parent": "p"}, id="r1-a001")
    for n, reward in enumerate((1.0, 0.0, None)):
        trial(run, n, reward, outcome="infra" if reward is None else "graded")
    trial(run, 9, 1.0, agent="oracle", usd=math.nan)
    run.record("rollouts", {"round": 1, "group": "parents", "task": "a", "digest": "d", "rewards": [1.0, 0.0]})
    run.record("rollouts", {"round": 1, "group": "parents", "task": "b", "digest": "e", "rewards": [1.0, 1.0]})
    run.record("admission", admission("good", "admitted"), id="r1-a000")
    run.record("admission", admission("weak", "noop", kind="noop-passes"), id="r1-a001")
    run.record("standing", {"round": 1, "task": "good", "status": "active", "reasons": []}, id="r1-a000")
    run.record("standing", {"round": 1, "task": "weak", "status": "rejected", "reasons": ["noop-passes"]}, id="r1-a001")
    return run


def test_what_a_round_amounts_to(wheel):
    view = follow(wheel, watch=False).view
    assert facts(view) | {"time left": "", "records": ""} == {
        "reward": "0.5", "validity": "50 % (1 of 2)", "admitted": "50 % (1 of 2)", "useful groups": "50 % (1 of 2)", "pool": "1",
        "cost": "$1.5", "time left": "", "records": "",
    }  # fmt: skip
    notes = {name: note for name, _, note in view.seen["facts"]}
    assert notes["pool"] == "1 rejected"
    assert notes["cost"] == "1 records without a known price · 40 tokens read, 0 written"
    assert "1 attempts lost to infrastructure" in notes["records"]
    rejected = view.seen["rejected"]
    assert [(r["task"], r["stage"], r["kinds"]) for r in rejected] == [("weak", "noop", "noop-passes")]  # told once
    assert "noop-passes at noop more" in rejected[0]["why"]
    assert {one["name"] for one in view.seen["lines"]} == {"reward", "valid", "admitted", "useful", "pool"}


def test_an_evicted_environment_leaves_the_pool_and_is_told(wheel):
    view = follow(wheel, watch=False).view
    row = {"task": "good", "status": "evicted", "reasons": ["too-hard"], "message": "mean 0.10"}
    wheel.record("review", row, id="r1-a000")
    view.refresh()
    assert facts(view)["pool"] == "0"
    assert view.seen["rejected"][0]["kinds"] == "too-hard"


def test_rows_of_learning(run):
    run.params["parameters"]["steps"] = 4
    for n, reward in enumerate((1.0, 0.0)):
        row = {"role": "solver", "reward": reward, "outcome": "graded", "what": "w001", "tokens": 7}
        run.record("rollout", row, id=f"s1-{n}")
    run.record("rollout", {"role": "proposer", "reward": -1.0, "outcome": "graded"}, id="p1-0")
    collect = {"accepted": 3, "dropped": {"no-variation": 1}}
    run.record("update", {"step": 1, "solver_reward": 0.5, "collect": collect, "update": {"loss": 0.25}}, id="1")
    run.record("evaluation", {"set": "held", "avg": 0.4, "version": 1}, id="held-1")
    view = follow(run, watch=False).view
    assert facts(view)["reward"] == "0.5"
    assert facts(view)["useful groups"] == "75 % (3 of 4)"
    assert "1 of 4 updates · ran for 0:00" in [note for _, _, note in view.seen["facts"]]
    assert facts(view)["time left"] == "0:00"
    last = dict(view.seen["last"])
    assert ["update.loss", "0.25"] in last["update"]
    assert ["avg", "0.4"] in last["evaluation held"]
    assert view.trials["rows"][-1][1][:2] == ["s1-0", "w001"]


def test_a_torn_last_line_waits_for_its_rest(run):
    path = run.folder / "other.jsonl"
    line = json.dumps({"kind": "trial", "id": "x", "reward": 1.0}).encode() + b"\n"
    path.write_bytes(line + line[:20])
    follower = Follower(path)
    assert len(list(follower.new())) == 1
    assert list(follower.new()) == []
    with path.open("ab") as file:
        file.write(line[20:])
    assert [e.offset for e in follower.new()] == [len(line)]
    with path.open("ab") as file:  # a kill, then the next attempt closes the line
        file.write(line[:20] + b"\n" + line)
    assert [e.record["reward"] for e in follower.new()] == [1.0]
    assert follower.torn == 1
    assert follower.behind() == 0


def test_a_replaced_journal_is_read_anew(wheel, tmp_path):
    view = follow(wheel, watch=False).view
    fresh = tmp_path / "fresh"
    fresh.write_text(json.dumps({"kind": "trial", "id": "y", "agent": "a", "reward": 0.25, "outcome": "graded"}) + "\n")
    fresh.replace(wheel.journal_path)
    view.refresh()
    assert view.state.counts == {"trial": 1}
    assert facts(view)["reward"] == "0.25"
    assert len(view.trials["rows"]) == 1


def test_pieces_of_a_line_make_the_same_as_the_whole(wheel, monkeypatch):
    whole = [repr(e.record) for e in Follower(wheel.journal_path).new()]
    for size in (1, 7, 1000):
        monkeypatch.setattr(live_journal, "CHUNK", size)
        follower, found = Follower(wheel.journal_path), []
        while follower.behind():
            found += [repr(e.record) for e in follower.new(seconds=0)]  # one piece a call
        assert found == whole


def test_a_record_too_long_is_counted_and_never_kept(run):
    run.record("admission", admission("big", "noop", kind="noop-passes") | {"blob": "x" * (10 << 20)}, id="big")
    trial(run, 1, message="y" * (5 << 20))
    trial(run, 2)
    panel = follow(run, watch=False)
    assert panel.view.state.counts["admission"] == 1
    assert panel.view.state.too_long == 2
    assert "2 records too long to read" in panel.static_html()
    assert len(panel.view._follower._rest) == 0
    assert [r[1][1] for r in panel.view.trials["rows"]] == ["t", "(a record too long to read)"]
    assert panel.open_trial(0) is None
    assert "cannot open the trial" in panel.children[1].value
    assert panel.open_trial("trial-2") is not None


def test_values_of_ten_megabytes_are_cut(run):
    big = "z" * (3 << 20)
    run.record("admission", admission(big, "noop", kind=big), id="big")
    trial(run, 1, task=big, id_=big)
    panel = follow(run, watch=False)
    sent = json.dumps(panel.view.get_state(["seen", "trials"]))
    assert len(sent) < 20_000
    assert len(panel.static_html()) < 40_000


def test_broken_rows_only_count(run):
    for row in ({"rewards": 5}, {"rewards": None}):
        run.record("rollouts", row)
    run.record("admission", {"reasons": 7, "admitted": False})
    run.record("admission", {"reasons": ["text", None], "admitted": False})
    run.record("standing", {"status": ["x"], "reasons": 3})
    run.record("update", {"collect": 4, "dropped": "none"})
    run.record("trial", {"reward": "high", "usd": "much", "agent": None})
    with run.journal_path.open("ab") as file:
        file.write(b"[" * 100_000 + b"\n" + b'{"kind":"trial","id":5,"time":"late","reward":1e999}\n' + b"\xff\xfe\n")
    panel = follow(run, watch=False)
    assert panel.view.state.counts["not understood"] == 4
    assert "attempt" in panel.view.state.counts
    assert panel.view.text()
    assert panel.static_html()


def test_hostile_text_is_text(run):
    run.record("admission", admission(HOSTILE, "noop", kind=HOSTILE), id=HOSTILE)
    run.record("update", {HOSTILE: 1.0})
    trial(run, 1, task=HOSTILE, agent=HOSTILE, outcome=HOSTILE)
    run.write_status("failed", 1, HOSTILE)
    panel = follow(run, watch=False)
    panel.open_trial("trial-1")
    data, _ = panel._repr_mimebundle_()
    sent = json.dumps(panel.view.get_state(["seen", "trials"]), ensure_ascii=False)
    assert "&lt;script&gt;" in data["text/html"]
    assert "<script" not in data["text/html"]
    for sign in ("\x1b", "\u202e"):
        for shown in (data["text/html"], data["text/plain"], sent, panel.text()):
            assert sign not in shown


def test_a_trial_is_opened_by_position_and_by_id(wheel):
    turns = [{"index": 0, "text": "look", "command": "ls", "observation": "a", "exit_code": 0}]
    saved = {"id": "trial-1", "task": "t", "agent": "terminal", "reward": 0.0, "episodes": [{"turns": turns}]}
    wheel.path("traces", "trial-1.json").write_text(json.dumps(saved))
    panel = follow(wheel, watch=False)
    assert [r[1][0] for r in panel.view.trials["rows"]] == ["trial-9", "trial-2", "trial-1", "trial-0"]
    panel.view.chosen = 1  # what a front end does
    assert panel.viewer.turns[0]["command"] == "ls"
    assert panel.children[1] is panel.viewer
    assert "ls" in panel.static_html()
    assert panel.open_trial("trial-0").turns == []  # from its record alone
    assert panel.view.chosen == 0
    panel.view.chosen = -1
    assert len(panel.children) == 1
    with pytest.raises(KeyError, match="no trial"):
        panel.open_trial("../params")
    panel.view.chosen = 77
    assert "no trial 77" in panel.children[1].value


def test_a_trace_that_leads_out_of_the_run_is_not_read(wheel, tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps({"id": "s", "task": "secret", "episodes": []}))
    (wheel.folder / "traces" / "trial-1.json").symlink_to(tmp_path / "secret.json")
    assert "secret" not in follow(wheel, watch=False).open_trial("trial-1").title


def test_pages_and_search(run):
    for n in range(3 * PAGE):
        trial(run, n, task="rare" if n == 2 else "common")
    view = follow(run, watch=False).view
    ids = [r[1][0] for r in view.trials["rows"]]
    assert ids == [f"trial-{n}" for n in range(3 * PAGE - 1, 2 * PAGE - 1, -1)]
    assert not view.trials["newer"]
    view.before = view.trials["older"]
    assert view.trials["rows"][0][1][0] == f"trial-{2 * PAGE - 1}"
    assert view.trials["newer"]
    trial(run, 1000)
    view.refresh()
    assert view.trials["rows"][0][1][0] == f"trial-{2 * PAGE - 1}"  # nobody's page is turned under their eyes
    view.query = "RARE"
    assert [r[1][0] for r in view.trials["rows"]] == ["trial-2"]
    assert view.trials["note"] == f"1 found in {3 * PAGE + 1} of {3 * PAGE + 1} trials"
    assert view.before == -1
    view.query = ""
    assert view.trials["rows"][0][1][0] == "trial-1000"


def test_a_search_that_takes_long_says_how_far_it_came(run):
    for n in range(200):
        trial(run, n)
    view = follow(run, watch=False).view
    page = view.state.trials.page(run.journal_path, query="nowhere", seconds=0)
    assert (page.rows, page.complete) == ([], False)


def test_a_line_keeps_its_mean_whatever_its_length():
    line = Line()
    for i in range(10_007):
        line.add(float(i % 2))
    assert len(line.values) <= 2 * POINTS
    assert all(abs(v - 0.5) < 0.51 for v in line.values)
    assert line.width >= 32


def test_what_is_kept_does_not_grow_with_the_records(run):
    path = run.folder / "long.jsonl"
    with path.open("w") as file:
        for n in range(20_000):
            file.write(
                json.dumps({"kind": "trial", "id": str(n), "reward": n % 2, "agent": "a", "message": "m" * 200}) + "\n"
            )
    state = LiveState()
    for entry in Follower(path).new():
        state.fold(entry)
    assert len(state.trials) == 20_000
    assert state.trials.offsets.itemsize == 8
    assert len(state.rewards) <= 100
    assert sum(len(line.values) for line in state.lines.values()) <= 2 * POINTS


def test_looking_never_refuses_the_lock_to_a_writer(run):
    """The writer takes and drops its lock as fast as it can while others look: it must get it every time."""
    view = follow(run, watch=False).view
    run.close()
    stop = threading.Event()

    def look():
        while not stop.is_set():
            view.refresh()
            state_of(run)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for one in lookers:
        one.start()
    try:
        for _ in range(300):
            try:
                FileLock(run.folder / "journal.lock").release()
            except RunLocked:
                pytest.fail("a look held the lock")
    finally:
        stop.set()
        for one in lookers:
            one.join()


def test_alive_and_killed_are_told_without_a_lock(run):
    run.write_status("running")
    assert state_of(run)["state"] == "running"
    assert state_of(run)["alive"] is True
    run.close()
    assert state_of(run)["state"] == "killed"
    assert state_of(run) == {**run.state(), "alive": False}


def test_time_left(run):
    round = {"round": 2, "assigned": 8, "answered": 2, "time": 1000.0}
    assert time_left(run, round, 0, 0.0, 1100.0) == "5:00 (2 of 8 answers of round 2)"
    assert time_left(run, {}, 0, 0.0, 1.0) == ""
    (run.folder / "progress.log").write_text("[gate] 1/2 50% 0:10, 9:59 left\n[gate] 1/2 50% 0:41, 2:03 left: x\n")
    assert time_left(run, {}, 0, 0.0, 1.0) == "2:03 (its own progress)"


def test_it_follows_by_itself_until_the_run_is_over(run):
    panel = follow(run, 0.05)
    trial(run, 1)
    run.write_status("done", 0)
    deadline = time.monotonic() + 20
    while not panel.view.over and time.monotonic() < deadline:
        time.sleep(0.02)
    assert panel.view.state.counts["trial"] == 1
    assert panel.view.seen["standing"].startswith("done")
    assert facts(panel.view)["time left"] == "the run is over"
    panel.close()


def test_an_update_without_news_sends_nothing(wheel):
    wheel.write_status("done", 0)
    view = follow(wheel, watch=False).view
    changes = []
    view.observe(lambda change: changes.append(change["name"]), ["seen", "trials"])
    view.refresh()
    assert changes == []


def test_headless_it_is_html_png_and_text(wheel, tmp_path):
    panel = follow(wheel.folder, watch=False)
    page, drawing, numbers = panel.save(tmp_path / "out")
    assert "noop-passes" in page.read_text()
    assert not re.search(r"<script|https?:", page.read_text())
    assert drawing.read_bytes().startswith(b"\x89PNG")
    assert numbers.read_text().startswith("line,point,value\n")
    out = io.StringIO()
    terminal(wheel, out=out)
    assert "\x1b" not in out.getvalue()
    assert "last rejected  weak at noop: noop-passes" in out.getvalue()


def test_the_command_line_shows_a_page(wheel, capsys):
    from workbench.cli import main

    assert main(["runs", "live", str(wheel.folder)]) == 0
    assert "50 % (1 of 2)          of the groups have" in capsys.readouterr().out
    assert main(["runs", "live", wheel.id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pool"]["value"], told["rejected"][0]["task"]) == ("1", "weak")
    assert main(["runs", "live"]) == 2
    assert main(["runs", "live", "nothing"]) == 2


def test_a_run_that_is_not_there(run):
    from workbench.runs.folder import RunError

    with pytest.raises(RunError, match="no run 'nothing'"):
        follow("nothing")


def test_an_empty_journal(run):
    run.close()
    run.journal_path.unlink()
    panel = follow(run, watch=False)
    assert facts(panel.view)["reward"] == "–"
    assert panel.static_html()
    assert panel.view.figure()[1].empty
