"""What the importers make of whole, cut, broken and branched files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from workbench.traces.reading import open_trace, read_trace
from workbench.traces.store import TraceError
from workbench.traces.trace import TraceStep
from workbench.traces.turns import count_turns, trace_digest, turns

SAMPLES = Path(__file__).parent / "samples"


def lines(path: Path, *entries) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    return path


def said(trace) -> list[str]:
    return [s.text for s in trace.main]


# Claude Code


def claude(kind, uuid, parent, content, id="", **more):
    message = {"role": kind, "content": content} | ({"id": id, "model": "m"} if kind == "assistant" else {})
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def use(id, **given):
    return {"type": "tool_use", "id": id, "name": "Bash", "input": given}


def answer(id, text):
    return [{"type": "tool_result", "tool_use_id": id, "content": text}]


def test_pieces_of_one_message_are_one_step_and_usage_counts_once():
    trace = read_trace(SAMPLES / "claude-code-session.jsonl")
    assert [s.source for s in trace.steps] == ["user", "agent", "agent", "agent"]
    first = trace.steps[1]
    assert (first.text, first.calls[0].name, first.results[0].error) == ("Looking.", "Bash", False)
    assert sum(s.usage.prompt_tokens for s in trace.steps if s.usage) == 303  # what the stream's own result says
    assert (trace.info.session[:8], trace.info.version, trace.info.model) == ("4388a0c2", "2.1.197", "scripted-1")


def test_session_and_stream_of_one_run_have_the_same_turns():
    session = turns(read_trace(SAMPLES / "claude-code-session.jsonl"))
    stream = turns(read_trace(SAMPLES / "claude-code-stream-json.jsonl"))
    seen = [(t.kind, t.text, t.tool, t.arguments, t.observation) for t in session]
    assert seen == [(t.kind, t.text, t.tool, t.arguments, t.observation) for t in stream]


def test_results_between_the_pieces_of_a_message(tmp_path):
    path = lines(
        tmp_path / "s.jsonl",
        claude("user", "u", None, "go"),
        claude("assistant", "a1", "u", [use("t1", command="ls")], "m1"),
        claude("user", "r1", "a1", answer("t1", "one")),
        claude("assistant", "a2", "a1", [use("t2", command="pwd")], "m1"),  # side by side: a fork, and no branch
        claude("user", "r2", "a2", answer("t2", "two")),
        claude("assistant", "a3", "r2", [{"type": "text", "text": "done"}], "m2"),
    )
    trace = read_trace(path)
    assert [(s.source, len(s.calls), s.branch) for s in trace.steps] == [
        ("user", 0, ""),
        ("agent", 2, ""),
        ("agent", 0, ""),
    ]
    assert [t.observation for t in turns(trace)] == ["one", "two", ""]


def test_a_rewound_prompt_is_a_side_branch(tmp_path):
    path = lines(
        tmp_path / "s.jsonl",
        claude("user", "u1", None, "go"),
        claude("assistant", "a1", "u1", [{"type": "text", "text": "first try"}], "m1"),
        claude("user", "u2", "a1", "no, wrong"),
        claude("assistant", "a2", "u2", [{"type": "text", "text": "gone"}], "m2"),
        claude("user", "u3", "a1", "do it like this"),
        claude("assistant", "a3", "u3", [{"type": "text", "text": "kept"}], "m3"),
    )
    trace = read_trace(path)
    assert said(trace) == ["go", "first try", "do it like this", "kept"]
    assert [s.text for s in trace.steps if s.branch] == ["no, wrong", "gone"]
    assert len({s.branch for s in trace.steps}) == 2


def test_compaction_is_no_branch(tmp_path):
    path = lines(
        tmp_path / "s.jsonl",
        claude("user", "u1", None, "go"),
        claude("assistant", "a1", "u1", [{"type": "text", "text": "before"}], "m1"),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "c",
            "parentUuid": None,
            "logicalParentUuid": "a1",
            "sessionId": "s",
        },
        claude("user", "u2", "c", "summary", isCompactSummary=True),
        claude("assistant", "a2", "u2", [{"type": "text", "text": "after"}], "m2"),
    )
    trace = read_trace(path)
    assert said(trace) == ["go", "before", "summary", "after"]
    assert trace.steps[2].extra == {"isCompactSummary": True}


def test_sub_agents_are_side_branches_unless_the_file_is_one(tmp_path):
    main = [claude("user", "u1", None, "go"), claude("assistant", "a1", "u1", [{"type": "text", "text": "mine"}], "m1")]
    sub = [
        claude("user", "x", None, "look", isSidechain=True, agentId="q"),
        claude("assistant", "y", "x", [{"type": "text", "text": "theirs"}], "m2", isSidechain=True, agentId="q"),
    ]
    both = read_trace(lines(tmp_path / "a.jsonl", *main, *sub))
    assert said(both) == ["go", "mine"]
    assert {s.branch for s in both.steps} == {"", "subagent-q"}
    assert said(read_trace(lines(tmp_path / "b.jsonl", *sub))) == ["look", "theirs"]


def test_an_error_of_the_api_is_not_said_by_the_agent(tmp_path):
    wrong = claude("assistant", "a", "u", [{"type": "text", "text": "API Error: 500"}], "m1", isApiErrorMessage=True)
    trace = read_trace(lines(tmp_path / "s.jsonl", claude("user", "u", None, "go"), wrong))
    assert trace.steps[1].source == "system"
    assert count_turns(trace.steps)["turns"] == 0


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


# Any file


def test_unknown_types_are_kept_and_counted(tmp_path):
    strange = {"type": "telepathy", "id": "9", "parentId": "1", "thought": [1, 2]}
    path = lines(tmp_path / "s.jsonl", HEAD, pi("1", None, "user", "go"), strange, strange | {"id": "8"})
    trace = read_trace(path)
    assert trace.report.unknown == {"telepathy": 2}
    assert trace.unknown_entries[0] == strange
    assert trace.report.entries == {"session": 1, "message": 1, "telepathy": 2}


@pytest.mark.parametrize("name", ["claude-code-session.jsonl", "codex-rollout.jsonl", "pi-1.6.0-session.jsonl"])
def test_a_torn_last_line(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    last = data.rstrip(b"\n").rsplit(b"\n", 1)[1]
    (tmp_path / name).write_bytes(data.rstrip(b"\n")[: -len(last) // 2])
    trace = read_trace(tmp_path / name)
    assert trace.report.torn > 0
    assert trace.report.broken == []
    assert len(trace.steps) in (len(read_trace(SAMPLES / name).steps) - 1, len(read_trace(SAMPLES / name).steps))


@pytest.mark.parametrize("name", ["mini-swe-agent.traj.json", "atif-from-pi.json"])
def test_a_cut_document_gives_what_is_whole(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) * 2 // 3])
    trace = read_trace(tmp_path / name)
    assert trace.report.torn > 0
    assert 0 < len(trace.steps) < len(read_trace(SAMPLES / name).steps)


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        json.dumps(HEAD).encode() + b"\n{nonsense\n\xff\xfe\n[1]\n" + json.dumps(pi("1", None, "user", "go")).encode()
    )
    trace = read_trace(path)
    assert said(trace) == ["go"]
    assert [b.split(":")[0] for b in trace.report.broken] == ["line 2", "line 3", "line 4"]


def test_gzipped_files_and_cut_ones(tmp_path):
    data = gzip.compress((SAMPLES / "pi-0.73.1-session.jsonl").read_bytes())
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    assert count_turns(read_trace(tmp_path / "a.jsonl.gz").steps)["turns"] == 7
    (tmp_path / "b.jsonl.gz").write_bytes(data[: len(data) * 4 // 5])
    with pytest.raises(TraceError, match="cannot be unpacked"):
        read_trace(tmp_path / "b.jsonl.gz")


@pytest.mark.parametrize(
    "value", [None, 5, "x", [], {}, [1, None], {"content": {"a": 1}}, {"content": [None, 7, {"type": []}]}]
)
@pytest.mark.parametrize("format", ["claude", "pi", "codex"])
def test_hostile_shapes_never_crash(tmp_path, value, format):
    entry = {
        "claude": {"type": "assistant", "sessionId": "s", "uuid": "u", "parentUuid": {}, "message": value},
        "pi": {
            "type": "message",
            "id": value,
            "parentId": "p",
            "message": {"role": "assistant", "content": value, "usage": value},
        },
        "codex": {
            "timestamp": 1,
            "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": value},
        },
    }[format]
    first = HEAD if format == "pi" else entry
    reading = open_trace(lines(tmp_path / "x.jsonl", first, entry, entry | {"type": value}))
    assert all(isinstance(i.to_json(), dict) for i in reading if isinstance(i, TraceStep))
