"""Writes docs/rogues.md from the cases: `PYTHONPATH=tests python -m rogues.table`. A test compares the two."""

from __future__ import annotations

from pathlib import Path

from .builders import AgentCase, TaskCase
from .cases import AGENTS, TASKS

PAGE = Path(__file__).parents[2] / "docs" / "rogues.md"
HEAD = """# Rogues: faulty and hostile tasks and agents

Every row is run by `tests/rogues` in real sandboxes, and must get exactly this verdict. *Seen in* names a public report
of the same kind of fault (repository and thread); "ours" means that we know of none.
After all of them nothing may be left on the host: no process, mount or changed file.

This page is written by `PYTHONPATH=tests python -m rogues.table` from `tests/rogues/cases*.py`.
"""
TASK_HEAD = """
## Tasks

Each goes through admission. "Refused" gives the stage and the kind of the reason (`docs/admission.md` lists all kinds);
"admitted" rows are sound in spite of their looks, or carry something that is reported and is no gate.

| task | what is wrong | seen in | verdict |
|---|---|---|---|
"""
AGENT_HEAD = """
## Agents

Each acts on a sound, admitted task. It solves one test of four honestly, so its work is worth 0.25; a trick that worked
would earn 1. An agent that breaks the grader gets 0 and stays in its group.

| agent | what it does | seen in | outcome |
|---|---|---|---|
"""


def render() -> str:
    """The whole page."""
    rows = [HEAD, TASK_HEAD, *map(_task, TASKS), AGENT_HEAD, *map(_agent, AGENTS)]
    return "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _task(case: TaskCase) -> str:
    if case.valid:
        verdict = "admitted" + "".join(f", `{name}` reported" for name in case.report)
    else:
        verdict = f"refused at {case.stage}: " + " or ".join(f"`{kind}`" for kind in case.reasons)
    return f"| {case.name} | {_cell(case.kind)} | {_cell(case.source)} | {verdict} |\n"


def _agent(case: AgentCase) -> str:
    reward = "at most 0.25" if case.reward is None else f"{case.reward:g}"
    outcome = " or ".join(case.outcome.split("|"))
    reasons = " or ".join(f"`{kind}`" for kind in case.reason.split("|") if kind)
    verdict = (
        f"{outcome}, {reward}" + (f" ({reasons})" if reasons else "") + (", ended by time" * (case.ended_by == "time"))
    )
    return f"| {case.name} | {_cell(case.kind)} | {_cell(case.source)} | {verdict} |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
