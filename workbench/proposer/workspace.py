"""A proposer's workspace (AutoEnvScaling Fig. 18 and appendix E.2; file and field names as there).

Fixed and read-only: `skills/`, `assignment.md`, `checks/`. Refreshed each round, read-only: `past_trajectories/`
(`index.jsonl`, `<env_id>/<solver>/<n>.json`) and `past_environments/`. Kept across rounds and editable: `memory/`, `tools/`.
Output: `env_NNN/`. Fixed parts are mounts from the host, so that nothing which happens inside can change them.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from workbench.proposer import Assignment
from workbench.sandboxes import Mount
from workbench.tasks import Task
from workbench.tasks.digest import walk
from workbench.tasks.scaffold import scaffold
from workbench.tasks.verifier import VERIFIER_PATH
from workbench.trials import Trial, plain

WORK = "/workspace"
SOCKET_FOLDER = "/run/workbench"
SKILLS = Path(__file__).with_name("skills")
CHECKS = Path(__file__).with_name("checks")
PROGRAMS = Path(__file__).with_name("tool_programs")
FIXED = (f"{WORK}/skills", f"{WORK}/assignment.md", f"{WORK}/checks", f"{WORK}/past_trajectories", f"{WORK}/past_environments",
         "/opt/tools", "/opt/verifier_template.sh", "/opt/task_template", SOCKET_FOLDER)  # fmt: skip
MAX_STDOUT, MAX_OBSERVATION, MAX_TURNS = 8_000, 4_000, 200  # of what is shown of an attempt
MAX_ENVIRONMENT = 8 << 20  # bytes of one past environment's files


@dataclass(frozen=True)
class Past:
    """One environment of the pool and a solver's attempts at it. provenance: "self" for the solver that is being trained."""

    id: str
    task: Task
    trials: Sequence[Trial]
    round: int = 0
    provenance: str = "self"


def write_past(folder: Path, past: Iterable[Past]) -> None:
    """Write `past_trajectories/` and `past_environments/` below `folder`, which is new. Give pool environments only:
    what stands here a proposer may copy."""
    index = []
    for name in ("past_trajectories", "past_environments"):
        (folder / name).mkdir(parents=True)
    for item in past:
        env = _free(folder / "past_environments", safe(item.id))
        _copy_environment(item.task.path, folder / "past_environments" / env)
        by_solver: dict[str, list[Trial]] = {}
        for trial in item.trials:
            if trial.counts:
                by_solver.setdefault(safe(trial.model or trial.agent), []).append(trial)
        for solver, trials in by_solver.items():
            index.append(_write_attempts(folder / "past_trajectories", env, solver, trials, item))
    lines = "".join(json.dumps(row) + "\n" for row in index)
    (folder / "past_trajectories" / "index.jsonl").write_text(lines, encoding="utf-8")


def _free(folder: Path, name: str) -> str:
    """`name`, with a number where another environment has it: two of one name must not be mixed into one folder."""
    names = itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2)))
    return next(n for n in names if not (folder / n).exists())


def _write_attempts(folder: Path, env: str, solver: str, trials: Sequence[Trial], item: Past) -> dict[str, Any]:
    files = []
    for number, trial in enumerate(trials):
        path = folder / env / solver / f"{number:03d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(attempt_row(trial), indent=1), encoding="utf-8")
        files.append(str(path.relative_to(folder)))
    rewards = [trial.reward or 0.0 for trial in trials]
    return {"env_id": env, "task": item.task.name, "solver": solver, "provenance": item.provenance, "round": item.round,
            "rewards": rewards, "avg_reward": fmean(rewards), "reward_std": pstdev(rewards), "files": files}  # fmt: skip


def attempt_row(trial: Trial) -> dict[str, Any]:
    """One attempt as a proposer reads it: turns, and the outcome with the verifier's words."""
    turns = [
        {"text": plain(turn.text), "command": turn.command, "observation": plain(turn.observation)[-MAX_OBSERVATION:],
         "exit_code": turn.exit_code}
        for episode in trial.episodes for turn in episode.turns[:MAX_TURNS]
    ]  # fmt: skip
    stdout = "\n".join(plain(grade.stdout) for grade in trial.steps)[-MAX_STDOUT:]
    outcome = {"reward": trial.reward, "ended_by": trial.ended_by, "submitted": trial.submitted, "tests": trial.tests,
               "verifier_stdout": stdout, "reason": trial.reason}  # fmt: skip
    return {"id": trial.id, "solver": trial.model or trial.agent, "trajectory": turns, "outcome": outcome}


def _copy_environment(source: Path, target: Path) -> None:
    """Plain files only, up to a size; the rest is left out (fixtures of many megabytes teach nothing)."""
    left = MAX_ENVIRONMENT
    for entry in sorted(walk(source), key=lambda e: (e.path.startswith("environment/"), e.path)):
        if entry.kind != "file" or entry.size > left:
            continue
        left -= entry.size
        (target / entry.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / entry.path, target / entry.path)
        (target / entry.path).chmod(0o755 if entry.executable else 0o644)


def safe(name: str) -> str:
    """A name as one folder's: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "unnamed"


def write_fixed(folder: Path) -> None:
    """The fixed parts that all episodes share: skills (with Harbor's own text where the installed package has one), checks,
    tool programs, the verifier template and a task to start from."""
    for source, name in ((SKILLS, "skills"), (CHECKS, "checks"), (PROGRAMS, "opt-tools")):
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for number, path in enumerate(harbor_texts()):
        shutil.copyfile(path, folder / "skills" / f"harbor-{number}-{path.name}")
    shutil.copyfile(VERIFIER_PATH, folder / "verifier_template.sh")
    (folder / "verifier_template.sh").chmod(0o755)
    scaffold(folder / "task_template", "local/new-task")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.suffix in (".sh", ".py") else 0o644)


def harbor_texts() -> list[Path]:
    """What the installed Harbor package says about making tasks: a create-task skill, else nothing (0.26 ships none)."""
    spec = find_spec("harbor")
    root = Path(spec.origin).parent if spec is not None and spec.origin else None
    return sorted(root.glob("**/create-task/SKILL.md")) if root is not None else []


def mounts(fixed: Path, past: Path, assignment: Path, socket: Path) -> list[Mount]:
    """Everything that an episode sees and cannot change."""
    pairs = [
        (fixed / "skills", f"{WORK}/skills"), (fixed / "checks", f"{WORK}/checks"), (assignment, f"{WORK}/assignment.md"),
        (past / "past_trajectories", f"{WORK}/past_trajectories"), (past / "past_environments", f"{WORK}/past_environments"),
        (fixed / "opt-tools", "/opt/tools"), (fixed / "verifier_template.sh", "/opt/verifier_template.sh"),
        (fixed / "task_template", "/opt/task_template"), (socket, SOCKET_FOLDER),
    ]  # fmt: skip
    return [Mount(source, target) for source, target in pairs]


def assignment_text(assignment: Assignment, env: str, offered: dict[str, int], feedback: str = "") -> str:
    """assignment.md: what is asked for, where it goes, what may be used, and why an earlier version was refused."""
    way = {
        "simpler": "a simpler variant: the solver keeps failing on the parent",
        "harder": "a harder variant, with a longer horizon or one more skill: the solver succeeds on the parent",
    }[assignment.direction]
    tools = "\n".join(f"- {tool}: {calls} calls" for tool, calls in offered.items())
    failures = "".join(f"- {count} x {words}\n" for words, count in list(assignment.failures.items())[:10])
    quoted = (
        f"An attempt that shows it ({plain(assignment.quoted)}) said: {plain(assignment.quote)}\n"
        if assignment.quote
        else ""
    )
    way += f" (this time: {assignment.way})" if assignment.way else ""
    text = f"""# Assignment {assignment.id}

Parent environment: `{assignment.parent}` (its files: `past_environments/{parent_id(assignment)}/`)
The solver's mean reward on it: {assignment.pass_rate:.2f}
Its most common failure: {plain(assignment.failure)}
{failures}{quoted}
Build {way}. Do not repeat the parent or another environment.

Write the finished task to `{WORK}/{env}/` (instruction.md, task.toml, environment/, solution/, tests/), then submit.

Tools of this episode (programs in /opt/tools; each says how it is called when run without arguments):
{tools}
"""
    if feedback:
        text += f"\n## Your last version was refused\n\nIt is at `{WORK}/{env}/`. The reasons:\n\n{plain(feedback)}\n"
    return text


def parent_id(assignment: Assignment) -> str:
    return safe(assignment.parent)


def instruction(assignment_md: str) -> str:
    """The proposer's task: the two skills first (appendix E), then the workspace, then the assignment."""
    parts = [
        (SKILLS / name).read_text(encoding="utf-8")
        for name in ("create_task.md", "auto_env_scaling.md", "workspace.md")
    ]
    return "\n\n".join(part.strip() for part in [*parts, assignment_md])
