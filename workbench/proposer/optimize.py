"""Harness optimization between two rounds: the proposer edits what is its own from its past rewards and logs (AutoEnvScaling §3.3).

Its own are `memory/` (notes, and skills that it writes for itself) and `tools/`. The skills that ship, the assignment and
the admission checks are mounts that nothing in the sandbox can change. Every version is kept in the HarnessStore, so that
two can be laid side by side and validity before and after compared on the same assignments.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from workbench.agents import Budget
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.store import PARTS
from workbench.proposer.submission import take
from workbench.proposer.workspace import WORK, safe
from workbench.runs.temporary import prefix
from workbench.sandboxes import Mount
from workbench.tasks import Step, Task
from workbench.tasks.digest import digest
from workbench.traces import Episode

BUDGET = Budget(turns=24, tokens=65_536, seconds=1800.0, command_seconds=120.0)
MAX_LOG = 400_000  # characters of one episode's log
MAX_DIFF = 60_000

TEXT = f"""# Between two rounds

You design environments for terminal agents; a round of it is over. Improve your own harness for the next one.

- `{WORK}/past_rewards/index.jsonl`: one line an assignment: `reward` (-1 validation failed, -0.25 only calibration failed, 1 both
  passed), `first_reward`, `stage`, `reasons`, `messages`, `turns`, `log` (a file below `past_rewards/`: your own turns).
- `{WORK}/memory/`: your notes for later rounds, skills that you write for yourself among them. Yours to edit.
- `{WORK}/tools/`: programs of your own. Yours to edit.
- `{WORK}/skills/` and `{WORK}/checks/` stay as they are; the admission checks run on the host, as before.

Read what was refused and why. Write down what you will do differently, keep programs that save you turns, take out what did
not help. Everything in `memory/` and `tools/` is there when the next round begins. Then submit.
"""


@dataclass(frozen=True)
class Optimized:
    """started, version: of the store, before and after; the same number when nothing was changed. changed: paths. diff: the
    unified diff, cut. fixed: whether skills and checks are the same bytes as before. kept: "" or why nothing could be kept."""

    started: int
    version: int
    changed: tuple[str, ...]
    diff: str
    fixed: bool
    kept: str
    episode: Episode

    def to_row(self) -> dict[str, Any]:
        row = {k: v for k, v in self.__dict__.items() if k != "episode"}
        usd = math.fsum(turn.usd for turn in self.episode.turns)
        return {**row, "turns": len(self.episode.turns), "usd": usd, "ended_by": self.episode.ended_by}


def optimize(
    harness: HarnessProposer, past: Sequence[Mapping[str, Any]], *, round: int, seed: int, budget: Budget = BUDGET
) -> Optimized:
    """One episode of the same agent. past: rows with the fields named in TEXT; `episode` (to_json) becomes the log.
    ModelError and SandboxError pass through."""
    with ExitStack() as stack:
        home = Path(mkdtemp(prefix=prefix("optimize")))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        write_rewards(home / "past_rewards", past)
        fixed, started = harness.shared(), harness.store.latest.number
        before = digest(fixed)
        agent = harness.agent(seed)
        seen = [
            Mount(fixed / "skills", f"{WORK}/skills"), Mount(fixed / "checks", f"{WORK}/checks"),
            Mount(home / "past_rewards", f"{WORK}/past_rewards"), *getattr(agent, "mounts", ()),
        ]  # fmt: skip
        sandbox = harness.backend.start(harness.image, limits=harness.settings.limits, mounts=seen, label="optimize")
        stack.callback(sandbox.stop)
        for part in PARTS:
            sandbox.put(harness.store.path(started) / part, f"{WORK}/{part}")
        step = Step("", TEXT, home / "no-tests", None)
        episode = agent.run(Task(home, "proposer/optimize", (step,), ""), step, sandbox, budget)
        sandbox.kill_all()
        kept = _keep(harness, sandbox, home / "kept", started, round)
    version = harness.store.latest.number
    changed = harness.store.versions[version].changed if version != started else ()
    diff = harness.store.diff(started, version)[:MAX_DIFF]
    return Optimized(started, version, changed, diff, digest(fixed) == before, kept, episode)


def _keep(harness: HarnessProposer, sandbox: Any, folder: Path, started: int, round: int) -> str:
    for part in PARTS:
        taken = take(sandbox, f"{WORK}/{part}", folder / part, max_bytes=4 << 20, max_files=400)
        if taken.path is None and taken.kind != "no-files":
            return f"{part}: {taken.message}"
    try:
        harness.store.save(folder, started=started, source=f"optimize-after-round-{round}")
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def write_rewards(folder: Path, past: Sequence[Mapping[str, Any]]) -> None:
    """`index.jsonl` and one log a row. Words from sandboxes are data here: they are shown to the proposer alone."""
    folder.mkdir(parents=True)
    lines = []
    for row in past:
        name = f"logs/{safe(str(row['assignment']))}.json"
        (folder / "logs").mkdir(exist_ok=True)
        log = json.dumps(row.get("episode") or {}, indent=1)[:MAX_LOG]
        (folder / name).write_text(log, encoding="utf-8")
        lines.append(json.dumps({**{k: v for k, v in row.items() if k != "episode"}, "log": name}) + "\n")
    (folder / "index.jsonl").write_text("".join(lines), encoding="utf-8")
