"""Turns as counted by hand in the samples: the numbers here were made by reading the files, not by running the code."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from workbench.runs.folder import write_json
from workbench.traces import Episode, Turn
from workbench.traces.reading import read_trace
from workbench.traces.store import write_episode
from workbench.traces.trace import Result, ToolCall, Trace, TraceInfo, TraceStep
from workbench.traces.turns import count_turns, public_text, trace_digest, turns

SAMPLES = Path(__file__).parent / "samples"

# (text steps, tool calls). mini: "no call here" was refused and is a turn; Harbor's conversion of it has lost that one.
BY_HAND = {
    "claude-code-session.jsonl": (3, 2),
    "claude-code-stream-json.jsonl": (3, 2),
    "codex-rollout.jsonl": (2, 1),
    "codex-exec-json.jsonl": (2, 1),
    "pi-0.73.1-session.jsonl": (3, 4),
    "pi-0.73.1-events.jsonl": (3, 4),
    "pi-1.6.0-session.jsonl": (3, 4),
    "mini-swe-agent.traj.json": (4, 3),
    "atif-from-claude-code.json": (3, 2),
    "atif-from-codex.json": (2, 1),
    "atif-from-mini.json": (3, 3),
    "atif-from-pi.json": (3, 4),
    "atif-from-pi16.json": (3, 4),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_counts_of_the_samples(name):
    text, call = BY_HAND[name]
    assert count_turns(read_trace(SAMPLES / name).steps) == {"turns": text + call, "text": text, "call": call}


def test_what_a_turn_holds():
    found = turns(read_trace(SAMPLES / "pi-0.73.1-session.jsonl"))
    assert [(t.step, t.call, t.kind, t.text or t.tool) for t in found] == [
        (2, 0, "text", "Let me look around."),
        (2, 1, "call", "bash"),
        (3, 0, "text", "Writing hello.py."),
        (3, 1, "call", "write"),
        (4, 1, "call", "read"),
        (4, 2, "call", "bash"),
        (5, 0, "text", "Done: hello.py prints hello."),
    ]
    assert [t.index for t in found] == list(range(7))
    assert found[5].command == "python3 hello.py"
    assert (found[5].observation, found[5].error) == ("hello\n", False)
    assert found[3].command is None
    assert '"path": "hello.py"' in found[3].arguments
    assert len({t.key for t in found}) == 7


def agent(text="", *calls, **more):
    return TraceStep("agent", text, calls=tuple(ToolCall(str(i), "bash", c) for i, c in enumerate(calls)), **more)


def test_one_message_with_three_calls_is_three_turns_and_its_text_one_more():
    assert count_turns([agent("", "{}", "{}", "{}")])["turns"] == 3
    assert count_turns([agent("Now all three.", "{}", "{}", "{}")])["turns"] == 4
    assert count_turns([agent(" \n", "{}")])["turns"] == 1


def test_thinking_is_no_turn():
    assert count_turns([agent("", thinking="hm")])["turns"] == 0
    assert count_turns([agent("<think>hm</think>")])["turns"] == 0
    assert count_turns([agent("the template opened it</think> \n")])["turns"] == 0
    assert public_text(agent("<think>a</think>Say.<think>cut off")) == "Say."
    assert public_text(agent("a < b, and </b> is no thought")) == "a < b, and </b> is no thought"


def test_only_the_agent_has_turns_and_only_on_the_branch_that_was_kept():
    steps = [TraceStep("system", "be brief"), TraceStep("user", "do it"), agent("gone", branch="side-1"), agent("kept")]
    assert [(t.step, t.text) for t in turns(Trace(TraceInfo("a", "f"), tuple(steps)))] == [(3, "kept")]


def test_a_block_that_was_run_is_the_call_and_the_words_around_it_the_text():
    block = "```bash\nls -la\n```"
    call = '{"command": "ls -la"}'
    assert public_text(agent(f"I look.\n{block}", call)) == "I look."
    assert count_turns([agent(block, call)]) == {"turns": 1, "text": 0, "call": 1}
    assert count_turns([agent(block)]) == {"turns": 1, "text": 1, "call": 0}  # nothing was run
    assert "other" in public_text(agent("```bash\nother\n```", call))


def test_an_episode_of_ours(tmp_path):
    episode = Episode(
        "terminal",
        (
            Turn(0, "I look.\n```bash\nls\n```", "ls", "[exit code 0]\na", 0, completion_tokens=9),
            Turn(1, "```bash\ncat a\n```", "cat a", "[exit code 0]\nhi", 0),
            Turn(2, "What now?", None, "Your message has no bash block", extra={"problem": "no block"}),
            Turn(3, "Done.\n```bash\nsubmit\n```"),
        ),
        model="scripted:x",
        submitted=True,
        system="be brief",
        instruction="do it",
    )
    found = turns(read_trace(write_episode(tmp_path, "t", episode)))
    assert [(t.step, t.call) for t in found] == [(3, 0), (3, 1), (4, 1), (5, 0), (6, 0)]
    assert [t.command for t in found] == [None, "ls", "cat a", None, None]
    assert found[1].observation == "[exit code 0]\na"
    assert found[3].observation == "Your message has no bash block"


def test_results_go_to_the_call_that_they_answer():
    step = TraceStep(
        "agent",
        calls=(ToolCall("a", "x", "{}"), ToolCall("b", "y", "{}")),
        results=(Result("for b", "b", True), Result("nobody's"), Result("for a", "a")),
    )
    found = turns(Trace(TraceInfo("a", "f"), (step,)))
    assert [(t.tool, t.observation, t.error) for t in found] == [("x", "for a", None), ("y", "for b", True)]


def test_the_digest_covers_turns_and_nothing_else():
    a = [TraceStep("user", "do"), agent("x", '{"command": "ls"}', model="m1", timestamp="2026-01-01")]
    b = [TraceStep("user", "do"), agent("x", '{"command": "ls"}', model="m2")]
    c = [TraceStep("user", "do"), agent("x", '{"command": "ls -l"}')]
    assert trace_digest(a) == trace_digest(b) != trace_digest(c)
    assert trace_digest([agent("\ud800")])  # half a surrogate pair


def test_a_trial_of_a_run_is_its_episodes_one_after_the_other(tmp_path):
    first = Episode(
        "terminal", (Turn(0, "```bash\nls\n```", "ls", "a", 0, usd=math.nan),), "m", system="s", instruction="one"
    )
    second = Episode("terminal", (Turn(0, "Nothing to do."),), "m", True, instruction="two")
    row = {
        "id": "t1",
        "run_id": "r",
        "task": "x/y",
        "agent": "terminal",
        "model": "m",
        "outcome": "graded",
        "reward": math.nan,
        "turns": 2,
    }
    episodes = [first.to_json(), second.to_json()]
    write_json(tmp_path / "t1.json", {**row, "episodes": episodes, "steps": [{"$odd": 1}]})
    trace = read_trace(tmp_path / "t1.json")
    assert [(s.source, s.text) for s in trace.steps if s.source != "agent"] == [
        ("system", "s"),
        ("user", "one"),
        ("user", "two"),
    ]
    assert [(t.step, t.call, t.command or t.text) for t in turns(trace)] == [(3, 1, "ls"), (5, 0, "Nothing to do.")]
    assert (trace.info.format, trace.info.extra["trial"]["task"]) == ("trial", "x/y")
    assert trace.steps[2].usage.usd is None
