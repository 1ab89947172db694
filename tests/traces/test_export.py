"""ATIF 1.8 out, checked by Harbor's own models, and back in."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from workbench.traces import Episode, Turn
from workbench.traces.atif import from_atif
from workbench.traces.atif import to_atif as episode_to_atif
from workbench.traces.export import to_atif, write_atif
from workbench.traces.labels import Label
from workbench.traces.reading import open_trace, read_trace
from workbench.traces.record import import_trace
from workbench.traces.store import TraceError, write_episode
from workbench.traces.trace import Result, ToolCall, Trace, TraceInfo, TraceStep, Usage
from workbench.traces.turns import count_turns, trace_digest, turns

SAMPLES = Path(__file__).parent / "samples"
ATIF = sorted(p.name for p in SAMPLES.glob("atif-*.json"))
NATIVE = sorted(p.name for p in SAMPLES.iterdir() if not p.name.startswith(("atif-", "pi-models")))


def validated(data):
    pytest.importorskip("harbor", reason="Harbor's own models check the format")
    from harbor.models.trajectories import Trajectory

    return Trajectory.model_validate(data)


def read_back(tmp_path, data) -> Trace:
    (tmp_path / "t.json").write_text(json.dumps(data))
    return read_trace(tmp_path / "t.json", redact=False)


def lean(value):
    """Without what is null or empty, which ATIF's producers give or leave out as they like."""
    if isinstance(value, dict):
        return {k: lean(v) for k, v in value.items() if v not in (None, {}, [])}
    return [lean(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ATIF)
def test_atif_comes_through_unchanged(name):
    source = json.loads((SAMPLES / name).read_text())
    data = to_atif(read_trace(SAMPLES / name, redact=False))
    validated(data)
    assert lean(data) == lean({**source, "schema_version": "ATIF-v1.8"})


FULL = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "trajectory_id": "root",
    "agent": {"name": "a", "version": "1", "model_name": "m", "tool_definitions": [{"type": "function"}], "extra": {"x": 1}},
    "notes": "n",
    "continued_trajectory_ref": "next.json",
    "final_metrics": {"total_prompt_tokens": 5, "total_steps": 9, "total_cost_usd": 0.5, "extra": {"y": 2}},
    "extra": {"z": [3], "atif_fields": "mine"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "s", "timestamp": "2026-01-01T00:00:00Z", "extra": {"id": 7}},
        {
            "step_id": 2,
            "source": "user",
            "message": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
            ],
        },
        {
            "step_id": 3,
            "source": "agent",
            "model_name": "m2",
            "reasoning_effort": "high",
            "message": "",
            "reasoning_content": "hm",
            "is_copied_context": True,
            "llm_call_count": 2,
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls", "n": 1.0}, "extra": {"k": "v"}},
                {"tool_call_id": "c2", "function_name": "task", "arguments": {}},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": "out", "extra": {"code": 0}},
                    {"source_call_id": "c2", "content": [{"type": "text", "text": "seen"}], "subagent_trajectory_ref": [{"trajectory_id": "sub"}]},
                    {"content": "nobody asked"},
                ]
            },
            "metrics": {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "cached_tokens": 2,
                "cost_usd": 0.25,
                "prompt_token_ids": [1, 2],
                "completion_token_ids": [3],
                "logprobs": [-0.5],
                "extra": {"w": 1},
            },
            "extra": {"labels": ["theirs"]},
        },
        {"step_id": 4, "source": "agent", "message": "by rule", "llm_call_count": 0},
    ],
    "subagent_trajectories": [
        {
            "schema_version": "ATIF-v1.8",
            "trajectory_id": "sub",
            "agent": {"name": "b", "version": "2"},
            "notes": "sub's",
            "steps": [{"step_id": 1, "source": "agent", "message": "hi"}, {"step_id": 2, "source": "user", "message": "yo"}],
            "final_metrics": {"total_steps": 2},
        }
    ],
}  # fmt: skip


def test_nothing_that_atif_can_hold_is_lost(tmp_path):
    validated(FULL)
    data = to_atif(read_back(tmp_path, FULL))
    validated(data)
    expected = json.loads(json.dumps(FULL))
    del expected["extra"]["atif_fields"]  # a name that we keep for ourselves
    assert lean(data) == lean(expected)


@pytest.mark.parametrize("name", NATIVE)
def test_native_traces_keep_their_turns_and_all_else(tmp_path, name):
    trace = read_trace(SAMPLES / name, redact=False)
    data = to_atif(trace)
    validated(data)
    back = read_back(tmp_path, data)
    assert turns(back) == turns(trace)
    assert back.steps == trace.steps
    assert to_atif(back) == data
    assert (back.info.agent, back.info.model, back.info.session, back.info.cwd) == (
        trace.info.agent, trace.info.model, trace.info.session, trace.info.cwd,
    )  # fmt: skip


def test_side_branches_become_sub_agents_and_come_back(tmp_path):
    step = TraceStep("agent", "gone", branch="side-1", id="9")
    trace = Trace(TraceInfo("pi", "pi-session"), (TraceStep("user", "go"), step, TraceStep("agent", "kept")))
    data = to_atif(trace)
    assert [s.trajectory_id for s in validated(data).subagent_trajectories] == ["side-1"]
    back = read_back(tmp_path, data)
    assert [(s.text, s.branch, s.id) for s in back.steps] == [("go", "", ""), ("kept", "", ""), ("gone", "side-1", "9")]
    assert trace_digest(back.steps) == trace_digest(trace.steps)


@pytest.mark.parametrize(
    "arguments", ["{broken", "", "*** Begin Patch", "[1, 2]", '{"a":1}', '{"a": "\\u00e9"}', '{"a": 1e400}']
)
def test_raw_arguments_are_verbatim(tmp_path, arguments):
    call = ToolCall("c", "x", arguments)
    step = TraceStep("agent", calls=(call,), results=(Result("r", "c", True), Result("late", "other-call")))
    trace = Trace(TraceInfo("a", "f"), (step,))
    data = to_atif(trace)
    validated(data)
    json.dumps(data, allow_nan=False)
    assert read_back(tmp_path, data).steps == trace.steps


def test_times_that_atif_would_refuse(tmp_path):
    trace = Trace(TraceInfo("a", "f"), (TraceStep("user", "x", timestamp="yesterday"), TraceStep("agent", "y")))
    data = to_atif(trace)
    validated(data)
    assert read_back(tmp_path, data).steps[0].timestamp == "yesterday"


def test_totals_are_sums_of_what_is_known():
    steps = (
        TraceStep("agent", usage=Usage(5, 2, usd=0.5)),
        TraceStep("agent", usage=Usage(7, None)),
        TraceStep("agent"),
    )
    data = to_atif(Trace(TraceInfo("a", "f"), steps))
    assert data["final_metrics"] == {
        "total_prompt_tokens": 12, "total_completion_tokens": 2, "total_cost_usd": 0.5, "total_steps": 3,
    }  # fmt: skip


def test_an_episode_through_a_trace_is_the_same_episode(tmp_path):
    turns_ = (
        Turn(
            0,
            "look\n```bash\nls\n```",
            "ls",
            "[exit code 1]",
            1,
            (1, 2),
            (3,),
            (-0.5,),
            2,
            1,
            0.25,
            1.0,
            0.5,
            0.75,
            {"x": 1},
        ),
        Turn(1, "what", None, "no block", usd=math.nan),
    )
    episode = Episode("terminal", turns_, "m", False, "malformed", "", "be brief", "do it")
    trace = read_trace(write_episode(tmp_path, "e", episode), redact=False)
    assert repr(from_atif(to_atif(trace))) == repr(episode)
    direct = tmp_path / "direct.json"
    direct.write_text(json.dumps(episode_to_atif(episode)))
    assert turns(read_trace(direct)) == turns(trace)


def test_labels_stand_in_the_steps(tmp_path):
    trace = read_trace(SAMPLES / "pi-0.73.1-session.jsonl")
    label = Label(trace_digest(trace.steps), 4, 2, "test", "me", "1.0", unsure=True)
    data = to_atif(trace, {label.key: label})
    validated(data)
    assert data["steps"][3]["extra"]["labels"] == [
        {
            "call": 2,
            "label": "test",
            "annotator": "me",
            "codebook": "1.0",
            "time": label.time,
            "unsure": True,
            "id": label.id,
        }
    ]
    assert trace_digest(read_back(tmp_path, data).steps) == label.trace


def test_from_the_record_step_by_step(tmp_path):
    found = import_trace(open_trace(SAMPLES / "mini-swe-agent.traj.json"), tmp_path)
    reading = open_trace(found.path)
    path = write_atif(tmp_path / "deep" / "out.json", reading.info, reading)
    data = json.loads(path.read_text())
    validated(data)
    assert count_turns(read_trace(path).steps)["turns"] == 7
    assert trace_digest(read_trace(path).steps) == found.digest


def test_a_trace_without_messages_is_no_atif(tmp_path):
    with pytest.raises(TraceError, match="without a message"):
        write_atif(tmp_path / "x.json", TraceInfo("a", "f"), [])
    assert list(tmp_path.iterdir()) == []


def test_the_record_reads_back_equal(tmp_path):
    for name in NATIVE + ATIF:
        trace = read_trace(SAMPLES / name)
        found = import_trace(open_trace(SAMPLES / name), tmp_path)
        back = read_trace(found.path)
        assert (back.steps, back.info, back.report.entries) == (trace.steps, trace.info, trace.report.entries)
        assert found.turns == count_turns(trace.steps)
        assert found.path.read_bytes() == import_trace(open_trace(SAMPLES / name), tmp_path).path.read_bytes()


def test_json_form_of_a_trace():
    trace = read_trace(SAMPLES / "codex-rollout.jsonl")
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
