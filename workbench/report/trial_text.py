"""The record of a trial as texts and numbers to be shown: facts, tests, turns, progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.report.turn_text import head, readable
from workbench.report.widget import esc, show, visible
from workbench.traces.trace import Trace, Usage
from workbench.traces.turns import turns

FACTS = (
    "task", "agent", "model", "backend", "outcome", "reward", "passed", "reason", "message", "submitted", "ended_by",
    "turns", "prompt_tokens", "completion_tokens", "usd", "seconds", "agent_seconds", "verifier_seconds", "seed",
)  # fmt: skip


def title_of(trial: Mapping[str, Any]) -> str:
    return visible(f"{trial.get('task', '')}: {trial.get('agent', '')} {trial.get('id', '')}")


def facts_of(trial: Mapping[str, Any]) -> list[list[str]]:
    """[[name, text], …]: outcome, rewards, tokens, cost; what the trial does not say is left out."""
    facts = [[name, visible(show(trial[name]))] for name in FACTS if trial.get(name) not in (None, "")]
    steps = trial.get("steps") or []
    for number, step in enumerate(steps, 1):
        rewards = dict(step.get("rewards") or {})
        if len(steps) > 1 or rewards.keys() - {"reward"}:
            place = f"step {number} " if len(steps) > 1 else ""
            said = ", ".join(f"{k} {show(v)}" for k, v in rewards.items()) or show(step.get("reward"))
            facts.append([f"{place}rewards", visible(said)])
        if step.get("fault"):
            facts.append([f"step {number} fault", visible(f"{step['fault']} {step.get('message', '')}")])
    progress = [p for p in progress_of(trial) if p is not None]
    return facts + ([["Φ at the end", f"{progress[-1]:.3g}"]] if progress else [])


def tests_of(trial: Mapping[str, Any]) -> list[list[str]]:
    """[[name, status], …] in order of the names."""
    return sorted([visible(name), visible(status)] for name, status in (trial.get("tests") or {}).items())


def verifier_of(trial: Mapping[str, Any]) -> str:
    return visible("\n".join(str(step.get("stdout", "")) for step in trial.get("steps") or []))


def progress_of(trial: Mapping[str, Any]) -> list[float | None]:
    """Φ after each turn, None where there is none."""
    return [_finite(t.get("progress")) for e in trial.get("episodes") or [] for t in e.get("turns", [])]


def turns_of(trial: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every turn of every episode as texts: head, text, command, observation, failed."""
    episodes = trial.get("episodes") or []
    found, before = [], None
    for step, episode in enumerate(episodes):
        for turn in episode.get("turns", []):
            place = f"step {step + 1}, " if len(episodes) > 1 else ""
            now = _finite(turn.get("progress"))
            found.append(_turn(turn, f"{place}turn {turn.get('index', 0)}", _phi(now, before)))
            before = before if now is None else now
    return found


def turns_of_trace(trace: Trace) -> list[dict[str, str]]:
    """The same of a trace of any agent. Tokens and cost stand at the first turn of their message."""
    usage = {number: step.usage for number, step in enumerate(trace.main, 1) if step.usage}
    found = []
    for turn in turns(trace):
        used = usage.pop(turn.step, None)
        asked = turn.command if turn.command is not None else readable(turn.arguments)
        found.append(
            {
                "head": " · ".join(filter(None, [f"turn {turn.index}", head(turn), _usage(used)])),
                "text": visible(turn.text),
                "command": visible(asked),
                "observation": visible(turn.observation),
                "failed": "yes" if turn.error else "",
            }
        )
    return found


def facts_of_trace(trace: Trace) -> list[list[str]]:
    used = [step.usage for step in trace.main if step.usage]
    facts = {"agent": trace.info.agent, "model": trace.info.model, "version": trace.info.version}
    for name in ("prompt_tokens", "completion_tokens", "usd"):
        values = [value for usage in used if (value := getattr(usage, name)) is not None]
        facts[name] = sum(values) if values else None
    return [[name, visible(show(value))] for name, value in facts.items() if value not in (None, "")]


def _turn(turn: Mapping[str, Any], place: str, phi: str) -> dict[str, str]:
    code = turn.get("exit_code")
    usage = Usage(turn.get("prompt_tokens") or None, turn.get("completion_tokens") or None, usd=turn.get("usd") or None)
    notes = [place, f"exit {code}" if code is not None else "", _usage(usage), _seconds(turn), phi]
    return {
        "head": visible(" · ".join(n for n in notes if n)),
        "text": visible(turn.get("text") or ""),
        "command": visible(turn.get("command") or ""),
        "observation": visible(turn.get("observation") or ""),
        "failed": "yes" if code not in (None, 0) else "",
    }


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return ""
    read, written = usage.prompt_tokens, usage.completion_tokens
    tokens = f"{show(written)} tokens" if written else ""
    tokens = f"{show(read)} → {show(written or 0)} tokens" if read else tokens
    return " · ".join(filter(None, [tokens, f"${usage.usd:.4g}" if _finite(usage.usd) else ""]))


def _seconds(turn: Mapping[str, Any]) -> str:
    total = (turn.get("model_seconds") or 0) + (turn.get("command_seconds") or 0)
    return f"{total:.1f} s" if total else ""


def _phi(now: float | None, before: float | None) -> str:
    if now is None:
        return ""
    change = now - (before or 0.0)
    return f"Φ {now:.3g}" + (f" ({change:+.3g})" if change else "")


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def progress_svg(values: list[float | None], width: int = 320, height: int = 48) -> str:
    """Φ over the turns as a drawing for static HTML; "" without any value. It holds numbers only."""
    points = [(i, v) for i, v in enumerate(values) if v is not None]
    if not points:
        return ""
    across = (width - 4) / max(len(values) - 1, 1)
    path = " ".join(f"{2 + i * across:.1f},{2 + (height - 4) * (1 - min(max(v, 0.0), 1.0)):.1f}" for i, v in points)
    told = esc(f"Φ from {points[0][1]:.3g} to {points[-1][1]:.3g}")
    return (
        f'<svg class="wb-phi" width="{width}" height="{height}" role="img" aria-label="{told}"><title>{told}</title>'
        f'<polyline points="{path}" fill="none" stroke="#009E73" stroke-width="1.5"/></svg>'
    )


def turn_html(turn: Mapping[str, str]) -> str:
    """One of `turns_of`, without scripts."""
    command = f'<pre class="wb-command">{esc(turn["command"])}</pre>' if turn["command"] else ""
    lines = turn["observation"].count("\n") + 1 if turn["observation"] else 0
    seen = f"<details><summary>saw {lines} lines</summary><pre>{esc(turn['observation'])}</pre></details>" * bool(lines)
    said = f"<pre>{esc(turn['text'])}</pre>" if turn["text"] else ""
    return f'<div class="wb-turn"><b>{esc(turn["head"])}</b>{said}{command}{seen}</div>'


def turns_html(page: list[dict[str, str]], of: int) -> str:
    """The first of `of` turns, and how many more there are."""
    rest = of - len(page)
    return "".join(map(turn_html, page)) + (f"<p>{rest:,} more turns</p>" if rest > 0 else "")


def matching(turns: list[dict[str, str]], query: str) -> list[int]:
    """Positions of the turns that hold the text, upper and lower case alike."""
    word = query.lower()
    parts = ("text", "command", "observation")
    return [i for i, turn in enumerate(turns) if not word or any(word in turn[p].lower() for p in parts)]
