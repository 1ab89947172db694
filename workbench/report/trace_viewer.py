"""One trial, turn by turn: what the agent said and ran, what it saw, what the tests said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traitlets

from workbench.report.widget import STATIC, View, esc, html_table, show, visible
from workbench.runs.folder import Run
from workbench.runs.journal import restore

FACTS = (
    "task", "agent", "model", "backend", "outcome", "reward", "passed", "reason", "message", "submitted", "ended_by",
    "turns", "prompt_tokens", "completion_tokens", "usd", "seconds",
)  # fmt: skip


class TraceViewer(View):
    """A trial's record with its episodes. Observations are folded; `query` keeps the turns that contain it.

    facts: [[name, text], …]. turns: dicts of text. tests: [[name, status], …]. All are plain text by the time that they
    are set, so a front end needs no knowledge of records.
    """

    _esm = STATIC / "trace_viewer.js"
    title = traitlets.Unicode().tag(sync=True)
    facts = traitlets.List().tag(sync=True)
    turns = traitlets.List().tag(sync=True)
    tests = traitlets.List().tag(sync=True)
    verifier = traitlets.Unicode().tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    matches = traitlets.List(traitlets.Int()).tag(sync=True)  # positions in `turns` that `query` keeps

    def __init__(self, trial: Mapping[str, Any]):
        """trial: a record as in traces/<id>.json (Trial.to_row() with `episodes` and `steps`)."""
        episodes = trial.get("episodes") or []
        turns = [_turn(t, step, len(episodes)) for step, e in enumerate(episodes) for t in e.get("turns", [])]
        super().__init__(
            title=visible(f"{trial.get('task', '')}: {trial.get('agent', '')} {trial.get('id', '')}"),
            facts=[[k, visible(show(trial[k]))] for k in FACTS if trial.get(k) not in (None, "")],
            turns=turns,
            tests=sorted([visible(k), visible(v)] for k, v in (trial.get("tests") or {}).items()),
            verifier=visible("\n".join(str(s.get("stdout", "")) for s in trial.get("steps") or [])),
        )
        self._search()

    @classmethod
    def of_trial(cls, run: Run, trial_id: str) -> TraceViewer:
        """The viewer of one trial of a run; of its record alone when the trial left no trace."""
        path = run.folder / "traces" / f"{trial_id}.json"
        if path.resolve().parent == (run.folder / "traces").resolve() and path.is_file():
            return cls.from_file(path)
        for row in reversed(run.rows("trial")):
            if row["id"] == trial_id:
                return cls(row)
        known = [row["id"] for row in run.rows("trial")]
        raise KeyError(f"no trial {trial_id!r} in {run.folder}: it has {len(known)}, the last is {known[-1:]}")

    @classmethod
    def from_file(cls, path: Path) -> TraceViewer:
        return cls(json.loads(path.read_text(encoding="utf-8"), object_hook=restore))

    @traitlets.observe("query")
    def _changed(self, _: Any) -> None:
        self._search()

    def _search(self) -> None:
        word = self.query.lower()
        parts = ("text", "command", "observation")
        self.matches = [i for i, t in enumerate(self.turns) if not word or any(word in t[p].lower() for p in parts)]

    def summary(self) -> str:
        passed = sum(status == "passed" for _, status in self.tests)
        return f"{self.title}, {len(self.turns)} turns, {passed} of {len(self.tests)} tests passed"

    def static_html(self) -> str:
        facts = html_table(["what", "value"], [{"what": k, "value": v} for k, v in self.facts])
        tests = html_table(["test", "status"], [{"test": k, "status": v} for k, v in self.tests])
        turns = "".join(_turn_html(self.turns[i]) for i in self.matches)
        verifier = f"<details><summary>verifier output</summary><pre>{esc(self.verifier)}</pre></details>"
        return f'<div class="wb-view"><p><b>{esc(self.title)}</b></p>{facts}{turns}{tests}{verifier}</div>'


def _turn(turn: Mapping[str, Any], step: int, steps: int) -> dict[str, str]:
    """A turn as text only."""
    place = f"step {step + 1}, turn {turn.get('index', 0)}" if steps > 1 else f"turn {turn.get('index', 0)}"
    code = turn.get("exit_code")
    notes = [place, f"exit {code}" if code is not None else "", _tokens(turn), _seconds(turn)]
    return {
        "head": visible(" · ".join(n for n in notes if n)),
        "text": visible(turn.get("text") or ""),
        "command": visible(turn.get("command") or ""),
        "observation": visible(turn.get("observation") or ""),
        "failed": "yes" if code not in (None, 0) else "",
    }


def _tokens(turn: Mapping[str, Any]) -> str:
    return f"{turn['completion_tokens']} tokens" if turn.get("completion_tokens") else ""


def _seconds(turn: Mapping[str, Any]) -> str:
    total = (turn.get("model_seconds") or 0) + (turn.get("command_seconds") or 0)
    return f"{total:.1f} s" if total else ""


def _turn_html(turn: Mapping[str, str]) -> str:
    command = f'<pre class="wb-command">{esc(turn["command"])}</pre>' if turn["command"] else ""
    lines = turn["observation"].count("\n") + 1 if turn["observation"] else 0
    seen = (
        f"<details><summary>saw {lines} lines</summary><pre>{esc(turn['observation'])}</pre></details>" if lines else ""
    )
    return f'<div class="wb-turn"><b>{esc(turn["head"])}</b><pre>{esc(turn["text"])}</pre>{command}{seen}</div>'
