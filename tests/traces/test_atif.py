from __future__ import annotations

import math

import pytest

from workbench.traces import Episode, Turn
from workbench.traces.atif import from_atif, to_atif

TURNS = (
    Turn(
        0, "look", "ls", "[exit code 1]\nno", 1, (1, 2, 3), (4, 5), (-0.5, -0.25), 3, 2, 0.5, 1.0, 0.1, 0.25, {"x": 1}
    ),
    Turn(1, "what?", None, "Your message has no bash block", usd=math.nan, extra={"problem": "p"}),
    Turn(2, "```bash\nsubmit\n```"),
)
EPISODE = Episode("terminal", TURNS, "litellm:a/b", True, "submit", "", "be brief", "do it")


def validated(data):
    pytest.importorskip("harbor", reason="Harbor's own models check the format")
    from harbor.models.trajectories import Trajectory

    return Trajectory.model_validate(data)


def test_harbor_reads_it_with_ids_and_logprobs():
    read = validated(to_atif(EPISODE, session_id="s"))
    assert [s.source for s in read.steps] == ["system", "user", "agent", "agent", "agent"]
    metrics = read.steps[2].metrics
    assert (metrics.prompt_token_ids, metrics.completion_token_ids, metrics.logprobs) == (
        [1, 2, 3],
        [4, 5],
        [-0.5, -0.25],
    )
    assert read.steps[2].tool_calls[0].arguments == {"command": "ls"}
    assert read.steps[3].metrics.cost_usd is None  # unknown, not zero
    assert read.final_metrics.total_cost_usd is None
    assert read.final_metrics.total_steps == len(read.steps)


def test_comes_back_equal_even_through_harbor():
    data = validated(to_atif(EPISODE)).model_dump(mode="json", exclude_none=True)
    back = from_atif(data)
    assert math.isnan(back.turns[1].usd)
    assert repr(back) == repr(EPISODE)


@pytest.mark.parametrize("agent", ["oracle", "noop"])
def test_agents_without_a_model(agent):
    turns = () if agent == "noop" else (Turn(0, command="bash /solution/solve.sh", observation="ok", exit_code=0),)
    episode = Episode(agent, turns, submitted=True, instruction="do it")
    assert from_atif(validated(to_atif(episode)).model_dump(mode="json", exclude_none=True)) == episode


def test_a_step_of_others_with_two_calls_becomes_two_turns():
    calls = [
        {"tool_call_id": c, "function_name": "exec", "arguments": a} for c, a in (("1", {"cmd": "ls"}), ("2", {"n": 3}))
    ]
    results = [
        {"source_call_id": "2", "content": "three"},
        {"source_call_id": "1", "content": [{"type": "text", "text": "files"}]},
    ]
    step = {"step_id": 1, "source": "agent", "message": "m", "tool_calls": calls, "observation": {"results": results}}
    data = {"schema_version": "ATIF-v1.7", "agent": {"name": "pi", "version": "1"}, "steps": [step]}
    validated(data)
    turns = from_atif(data).turns
    assert [(t.index, t.text, t.command, t.observation) for t in turns] == [
        (0, "m", "ls", "files"),
        (1, "", 'exec {"n": 3}', "three"),
    ]


@pytest.mark.parametrize(
    "data", [{}, {"agent": {"name": "x"}}, {"agent": {}, "steps": []}, {"agent": None, "steps": []}]
)
def test_something_else_is_refused(data):
    with pytest.raises(ValueError, match="not an ATIF trajectory"):
        from_atif(data)
