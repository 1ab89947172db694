"""What the importers make of each format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.traces.reading import open_trace, read_trace
from workbench.traces.store import TraceError
from workbench.traces.turns import count_turns, trace_digest, turns

SAMPLES = Path(__file__).parent / "samples"


def lines(path: Path, *entries) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    return path


def said(trace) -> list[str]:
    return [s.text for s in trace.main]


# Codex


def test_a_rollout_keeps_arguments_verbatim_and_joins_a_response():
    trace = read_trace(SAMPLES / "codex-rollout.jsonl")
    assert [s.source for s in trace.steps] == ["system", "user", "user", "agent", "agent"]
    step = trace.steps[3]
    assert step.calls[0].arguments == '{"cmd": "ls -la && echo hi > a.txt && cat a.txt"}'
    assert step.calls[0].command() == "ls -la && echo hi > a.txt && cat a.txt"
    assert [s.usage.completion_tokens for s in trace.steps if s.usage] == [10, 10]
    assert trace.info.version == "0.171.0"


def test_a_rollout_and_what_harbor_made_of_it_have_one_digest():
    ours, theirs = (read_trace(SAMPLES / n) for n in ("codex-rollout.jsonl", "atif-from-codex.json"))
    assert trace_digest(ours.steps) == trace_digest(theirs.steps)


def test_a_rollout_of_an_older_codex(tmp_path):
    def line(kind, **payload):
        return {"timestamp": "2025-09-01T00:00:00Z", "type": kind, "payload": payload}

    usage = {"last_token_usage": {"input_tokens": 7, "output_tokens": 3}}
    path = lines(
        tmp_path / "r.jsonl",
        line("session_meta", id="i", cwd="/w", cli_version="0.30.0"),
        line("response_item", type="message", role="user", content=[{"type": "input_text", "text": "go"}]),
        line(
            "response_item", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="x"
        ),
        line("response_item", type="custom_tool_call", name="apply_patch", call_id="c", input="*** Begin Patch"),
        line("event_msg", type="token_count", info=usage),
        line("event_msg", type="token_count", info=usage),
        line("response_item", type="custom_tool_call_output", call_id="c", output="Success"),
        line("response_item", type="local_shell_call", call_id="d", action={"command": ["bash", "-lc", "ls | wc"]}),
        line("response_item", type="function_call_output", call_id="d", output={"content": "3", "success": False}),
        line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    )
    trace = read_trace(path)
    assert [(t.tool or t.text, t.command, t.observation, t.error) for t in turns(trace)] == [
        ("apply_patch", None, "Success", None),
        ("shell", "ls | wc", "3", True),
        ("done", None, "", None),
    ]
    assert trace.steps[1].thinking == "hm"
    assert [s.usage.prompt_tokens if s.usage else None for s in trace.main] == [None, 7, None, None]


def test_the_stream_of_exec_takes_the_shell_away():
    trace = read_trace(SAMPLES / "codex-exec-json.jsonl")
    call = turns(trace)[1]
    assert call.command == "ls -la && echo hi > a.txt && cat a.txt"
    assert call.observation.endswith("hi\n")
    assert trace.steps[0].source == "system"  # a warning of the program
    assert trace.info.extra["turns"][0]["usage"]["input_tokens"] == 201


def test_a_killed_stream_keeps_the_call_that_was_running(tmp_path):
    item = {"id": "i", "type": "command_execution", "command": "bash -lc 'sleep 9'", "status": "in_progress"}
    path = lines(
        tmp_path / "x.jsonl", {"type": "thread.started", "thread_id": "t"}, {"type": "item.started", "item": item}
    )
    (turn,) = turns(read_trace(path))
    assert (turn.command, turn.observation) == ("sleep 9", "")


# Pi


def pi(id, parent, role, content, **more):
    return {"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": content, **more}}


HEAD = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}


def test_both_scopes_of_pi_and_its_stream_agree():
    old, new, stream = (
        turns(read_trace(SAMPLES / n))
        for n in ("pi-0.73.1-session.jsonl", "pi-1.6.0-session.jsonl", "pi-0.73.1-events.jsonl")
    )
    assert [(t.tool, t.text, t.arguments) for t in old] == [(t.tool, t.text, t.arguments) for t in new]
    assert [t.observation for t in old] == [t.observation for t in stream]
    assert read_trace(SAMPLES / "pi-1.6.0-session.jsonl").steps[0].source == "system"
    assert read_trace(SAMPLES / "pi-0.73.1-session.jsonl").steps[1].thinking == "I should list files first."


def test_the_live_branch_of_a_tree(tmp_path):
    path = lines(
        tmp_path / "s.jsonl",
        HEAD,
        pi("1", None, "user", "go"),
        pi("2", "1", "assistant", [{"type": "text", "text": "left"}]),
        pi("3", "2", "user", "left again"),
        pi("4", "1", "assistant", [{"type": "text", "text": "right"}]),
        {"type": "label", "id": "5", "parentId": "4", "targetId": "4", "label": "x"},
    )
    trace = read_trace(path)
    assert said(trace) == ["go", "right"]
    assert [(s.text, s.branch) for s in trace.steps if s.branch] == [("left", "side-1"), ("left again", "side-1")]


def test_a_reply_that_broke_off_and_was_asked_for_again_is_no_turn(tmp_path):
    path = lines(
        tmp_path / "s.jsonl",
        HEAD,
        pi("1", None, "user", "go"),
        pi("2", "1", "assistant", [{"type": "text", "text": "half a"}], stopReason="error", errorMessage="cut"),
        pi("3", "2", "assistant", [{"type": "text", "text": "whole answer"}], stopReason="stop"),
    )
    trace = read_trace(path)
    assert [t.text for t in turns(trace)] == ["whole answer"]
    assert trace.steps[1].branch == "failed-2"
    assert trace.steps[1].extra["error_message"] == "cut"


def test_a_session_without_a_tree(tmp_path):
    entry = {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}}
    assert said(read_trace(lines(tmp_path / "s.jsonl", {**HEAD, "version": 1}, entry))) == ["hi"]


# mini-swe-agent


def test_the_refused_reply_is_a_turn_again():
    trace = read_trace(SAMPLES / "mini-swe-agent.traj.json")
    refused = trace.steps[4]
    assert (refused.source, refused.text, refused.extra["refused"]) == ("agent", "no call here", True)
    assert refused.usage.prompt_tokens == 102
    assert [s.usage.prompt_tokens for s in trace.steps if s.usage] == [100, 101, 102, 103]
    assert turns(trace)[-1].error is True  # returncode −1
    assert trace.info.extra["exit_status"] == "Submitted"


def test_actions_in_fenced_blocks(tmp_path):
    block = "I look.\n```bash\nls\n```"
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": block, "extra": {"actions": [{"command": "ls"}]}},
        {"role": "user", "content": "<output>a</output>"},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"messages": messages, "info": {}, "trajectory_format": "mini-swe-agent-1"}))
    found = turns(read_trace(path))
    assert [(t.kind, t.text or t.command, t.observation) for t in found] == [
        ("text", "I look.", ""),
        ("call", "ls", "<output>a</output>"),
    ]


# ATIF


@pytest.mark.parametrize("minor", range(9))
def test_every_version_of_atif(tmp_path, minor):
    data = json.loads((SAMPLES / "atif-from-pi.json").read_text())
    data["schema_version"] = f"ATIF-v1.{minor}"
    (tmp_path / "t.json").write_text(json.dumps(data))
    assert count_turns(read_trace(tmp_path / "t.json").steps)["turns"] == 7


def test_a_later_version_is_refused_by_name(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"schema_version": "ATIF-v2.0", "agent": {}, "steps": []}))
    with pytest.raises(TraceError, match=r"'ATIF-v2.0': versions ATIF-v1.0 to ATIF-v1.8 can be read"):
        open_trace(tmp_path / "t.json")


def test_copied_context_and_sub_agents_are_no_turns(tmp_path):
    def step(number, text, **more):
        return {"step_id": number, "source": "agent", "message": text, **more}

    agent = {"name": "a", "version": "1"}
    sub = {"schema_version": "ATIF-v1.7", "trajectory_id": "t1", "agent": agent, "steps": [step(1, "theirs")]}
    data = {
        "agent": agent,
        "steps": [step(1, "old", is_copied_context=True), step(2, [{"type": "text", "text": "new"}])],
        "subagent_trajectories": [sub],
        "schema_version": "ATIF-v1.8",
    }
    (tmp_path / "t.json").write_text(json.dumps(data))
    trace = read_trace(tmp_path / "t.json")
    assert [(t.step, t.text) for t in turns(trace)] == [(2, "new")]
    assert [(s.text, s.branch) for s in trace.steps] == [("old", ""), ("new", ""), ("theirs", "t1")]
