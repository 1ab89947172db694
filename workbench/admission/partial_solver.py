"""A scripted population of partial solvers of latent worlds: real executions whose skill is known beforehand.

A partial solver runs a world's own reference solution inside the sandbox, stage by stage, and stops, falls back, never submits or uses up
its turns as its behaviour says. It stands where a model would: the same sandbox, the same graders, one command a turn, so that what is
measured of a group (Tev Fig. 4, §3.1, A.8) can be compared with what was put in. It says nothing of how hard a world is for a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.sandboxes import Sandbox
from workbench.tasks import Step, Task
from workbench.traces import Episode

PLACE = "/opt/partial"
LOOK = "ls -l . output 2>&1 | head -n 20"
STAGES = 6  # shares of the workflow that a drawn behaviour stops at: Tev's median number of stages (A.7)
DRIVER = '''"""Leaves the outputs as they are after a share of the reference's stages: 0 nothing, 1 all of them."""
import shutil, sys
from pathlib import Path
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "lib")]
import reference
public = {p.as_posix(): p.read_bytes() for p in sorted(Path("input").rglob("*")) if p.is_file()}
stages = list(reference.solve(public))
done = round(float(sys.argv[1]) * len(stages))
shutil.rmtree("output", ignore_errors=True)
for name, data in (stages[done - 1][1] if done else {}).items():
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data)
print("stages done:", ", ".join(name for name, _ in stages[:done]) or "none")
'''


@dataclass(frozen=True)
class Behaviour:
    """moves: turn by turn the share of the workflow's stages that is done after it, None for a turn that only looks. A smaller share than
    before destroys work. submits: else it goes on looking until its turns are used up."""

    name: str
    moves: tuple[float | None, ...]
    submits: bool

    def commands(self, turns: int) -> list[str]:
        """One command a turn; without submission more than `turns`, so that the budget ends it."""
        given = [LOOK if move is None else f"python3 -I -S {PLACE}/stage.py {move:g}" for move in self.moves]
        return given if self.submits else given + [LOOK] * max(turns + 1 - len(given), 0)


# Tev Fig. 4's group in kind: of eight rollouts two submit an incomplete result, five use up their budget, and one completes its work but
# never submits. What each does on the way is ours: the paper's figure gives no numbers for it.
FIGURE_4 = (
    Behaviour("submits half", (None, 1 / 6, None, 2 / 6, 3 / 6), True),
    Behaviour("submits nearly all", (None, 2 / 6, 3 / 6, None, 4 / 6, 5 / 6), True),
    Behaviour("only looks", (None, None), False),
    Behaviour("stops early", (None, None, 1 / 6, None, 2 / 6), False),
    Behaviour("falls back", (None, 2 / 6, 4 / 6, None, 2 / 6), False),
    Behaviour("does and undoes", (3 / 6, 2 / 6, 3 / 6, 2 / 6, 3 / 6, 2 / 6), False),
    Behaviour("nearly done", (None, 3 / 6, None, 4 / 6, None, 5 / 6), False),
    Behaviour("complete, never submitted", (None, 2 / 6, 4 / 6, 5 / 6, 1.0), False),
)


def number(*parts: object) -> float:
    """A number in [0, 1) that only these words give."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:6], "big") / 2**48


def draw_behaviour(skill: float, *key: object) -> Behaviour:
    """A behaviour drawn from `key`: with probability `skill` it completes its work and submits; else it stops after some of the stages (never
    all), may fall back once, and submits or uses up its turns with equal chance (Tev A.7: 52 % of rollouts exhaust their context).
    ValueError when skill is not in [0, 1]."""
    if not 0 <= skill <= 1:
        raise ValueError(f"skill {skill}: a probability in [0, 1] is needed")
    solves = number("solves", *key) < skill
    reach = STAGES if solves else int(number("reach", *key) * STAGES)
    moves: list[float | None] = [None]
    for stage in range(1, reach + 1):
        moves += [stage / STAGES] + [None] * (number("look", stage, *key) < 0.3)
    if not solves and reach > 1 and number("back", *key) < 0.25:
        moves.append(int(1 + number("to", *key) * (reach - 1)) / STAGES)
    submits = solves or number("submits", *key) < 0.5
    return Behaviour("solves" if solves else f"stops after {reach} of {STAGES}", tuple(moves), submits)


class PartialSolver:
    """behaviour: what it does at every task; None: drawn anew at each task, from the seed and the task's
    name without its organization, with `skill` (see draw_behaviour)."""

    model = ""

    def __init__(self, behaviour: Behaviour | None = None, *, skill: float = 0.3, seed: int = 0):
        self.name = f"partial: {behaviour.name}" if behaviour else f"partial {skill:g}"
        self.behaviour, self.skill, self.seed = behaviour, skill, seed

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        if step.solution is None or not (step.solution / "reference.py").is_file():
            words = "no solution/reference.py: partial solvers work at latent worlds only (`workbench worlds export`)"
            return Episode(self.name, ended_by="error", error=words, instruction=step.instruction)
        does = self.behaviour or draw_behaviour(self.skill, self.seed, task.name.rsplit("/", 1)[-1])
        sandbox.put(step.solution, PLACE)
        sandbox.write(f"{PLACE}/stage.py", DRIVER.encode())
        return ScriptedAgent(does.commands(budget.turns), name=self.name).run(task, step, sandbox, budget)


def group(behaviours: Sequence[Behaviour] = FIGURE_4) -> list[PartialSolver]:
    """One solver for each behaviour."""
    return [PartialSolver(behaviour) for behaviour in behaviours]


class GivenOutputs:
    """Leaves given files below the task's working directory and submits: a known workspace for two graders to judge."""

    model = ""

    def __init__(self, name: str, tree: Mapping[str, bytes], workspace: str = "/app"):
        self.name, self.tree, self.workspace = name, dict(tree), workspace

    def run(self, task: Task, step: Step, sandbox: Sandbox, budget: Budget) -> Episode:
        for path, data in self.tree.items():
            sandbox.write(f"{self.workspace}/{path}", data)
        return Episode(self.name, submitted=True, ended_by="submit", instruction=step.instruction)
