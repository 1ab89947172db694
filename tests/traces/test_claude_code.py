"""Claude Code: sessions, streams, rewound prompts, sub-agents."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.traces.reading import read_trace
from workbench.traces.turns import count_turns, turns

SAMPLES = Path(__file__).parent / "samples"


def lines(path: Path, *entries) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    return path


def said(trace) -> list[str]:
    return [s.text for s in trace.main]


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
