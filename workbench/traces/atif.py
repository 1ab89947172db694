"""Episodes as ATIF 1.8 (Agent Trajectory Interchange Format, as Harbor 0.26 defines it), and back.

For viewing and exchange. What ATIF has no field for stands in `extra["workbench"]`, so an episode of ours comes back
equal (but for a price of NaN turned to 0 in a turn without a model). Not in either: worked examples that were shown before the task.
From others' trajectories: only the text of content parts, one turn for each tool call, the command from the call's
`command`, `cmd` or `keystrokes` argument (else its arguments as JSON); reasoning, images and sub-agents are left out.
"""

from __future__ import annotations

import json
import math
from typing import Any

import workbench
from workbench.traces import Episode, Turn

SCHEMA = "ATIF-v1.8"
_OWN = ("exit_code", "model_seconds", "command_seconds", "progress", "extra")  # of a Turn, without an ATIF field


def to_atif(episode: Episode, *, session_id: str = "") -> dict[str, Any]:
    """A dict that validates as harbor.models.trajectories.Trajectory. Token ids and log-probabilities are in metrics."""
    steps: list[dict[str, Any]] = []
    if episode.system:
        steps.append({"source": "system", "message": episode.system})
    steps.append({"source": "user", "message": episode.instruction})
    steps += [agent_step(turn, bool(episode.model)) for turn in episode.turns]
    costs = [t.usd for t in episode.turns]
    return {
        "schema_version": SCHEMA,
        **({"session_id": session_id} if session_id else {}),
        "agent": {
            "name": episode.agent,
            "version": workbench.__version__,
            **({"model_name": episode.model} if episode.model else {}),
        },
        "steps": [{"step_id": i, **step} for i, step in enumerate(steps, 1)],
        "final_metrics": {
            "total_prompt_tokens": sum(t.prompt_tokens for t in episode.turns),
            "total_completion_tokens": sum(t.completion_tokens for t in episode.turns),
            **({} if any(map(math.isnan, costs)) else {"total_cost_usd": sum(costs)}),
            "total_steps": len(steps),
        },
        "extra": {"workbench": {"submitted": episode.submitted, "ended_by": episode.ended_by, "error": episode.error}},
    }


def from_atif(data: dict[str, Any]) -> Episode:
    """The other way. Raises ValueError when `data` has no agent or no steps."""
    try:
        agent, steps = data["agent"], data["steps"]
        own = (data.get("extra") or {}).get("workbench") or {}
        first = {
            kind: next((_text(s["message"]) for s in steps if s["source"] == kind), "") for kind in ("system", "user")
        }
        turns = [turn for step in steps if step["source"] == "agent" for turn in _turns(step)]
        name, model = agent["name"], agent.get("model_name") or ""
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an ATIF trajectory: {type(error).__name__} {error}") from error
    return Episode(
        agent=name,
        turns=tuple(Turn(index=i, **turn) for i, turn in enumerate(turns)),
        model=model,
        submitted=own.get("submitted", False),
        ended_by=own.get("ended_by", "submit"),
        error=own.get("error", ""),
        system=first["system"],
        instruction=first["user"],
    )


def agent_step(turn: Turn, with_model: bool) -> dict[str, Any]:
    """One turn as an ATIF step, but for its number. with_model: whether a model answered."""
    step: dict[str, Any] = {"source": "agent", "message": turn.text, "llm_call_count": int(with_model)}
    call = f"call-{turn.index}"
    if turn.command is not None:
        step["tool_calls"] = [{"tool_call_id": call, "function_name": "bash", "arguments": {"command": turn.command}}]
    if turn.observation:
        source = {"source_call_id": call} if turn.command is not None else {}
        step["observation"] = {"results": [{**source, "content": turn.observation}]}
    if with_model:
        step["metrics"] = _metrics(turn)
    step["extra"] = {"workbench": {name: getattr(turn, name) for name in _OWN}}
    return step


def _metrics(turn: Turn) -> dict[str, Any]:
    metrics: dict[str, Any] = {"prompt_tokens": turn.prompt_tokens, "completion_tokens": turn.completion_tokens}
    if not math.isnan(turn.usd):
        metrics["cost_usd"] = turn.usd
    ids = {"prompt_token_ids": turn.prompt_ids, "completion_token_ids": turn.sampled_ids, "logprobs": turn.logprobs}
    return metrics | {name: list(values) for name, values in ids.items() if values}


def _turns(step: dict[str, Any]) -> list[dict[str, Any]]:
    """The turns of one agent step: its first call's with text and metrics, one more for every further call."""
    calls = step.get("tool_calls") or [None]
    results = (step.get("observation") or {}).get("results") or []
    turns = [{"command": _command(call), "observation": _shown(call, calls, results)} for call in calls]
    metrics = step.get("metrics")
    numbers = metrics or {}
    own = (step.get("extra") or {}).get("workbench") or {}
    turns[0] |= {
        "text": _text(step["message"]),
        "prompt_ids": tuple(numbers.get("prompt_token_ids") or ()),
        "sampled_ids": tuple(numbers.get("completion_token_ids") or ()),
        "logprobs": tuple(numbers.get("logprobs") or ()),
        "prompt_tokens": numbers.get("prompt_tokens") or 0,
        "completion_tokens": numbers.get("completion_tokens") or 0,
        "usd": 0.0 if metrics is None else numbers.get("cost_usd", math.nan),
        **{name: own[name] for name in _OWN if name in own},
    }
    return turns


def _command(call: dict[str, Any] | None) -> str | None:
    if call is None:
        return None
    arguments = call.get("arguments") or {}
    named = [arguments[k] for k in ("command", "cmd", "keystrokes") if isinstance(arguments.get(k), str)]
    return named[0] if named else f"{call['function_name']} {json.dumps(arguments, ensure_ascii=False)}"


def _shown(call: dict[str, Any] | None, calls: list[Any], results: list[dict[str, Any]]) -> str:
    if call is None or len(calls) == 1:
        return "\n".join(_text(r.get("content")) for r in results)
    return "\n".join(_text(r.get("content")) for r in results if r.get("source_call_id") == call["tool_call_id"])


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""
