"""Executes scripted experts: every trace of the Cold-Start is a trial in a sandbox, or a composition that passed validation."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workbench.admission.admit import admit
from workbench.agents.prompts import Prompt
from workbench.agents.terminal import TerminalAgent
from workbench.proposer import Assignment
from workbench.proposer.compose import ComposeProposer
from workbench.proposer.latent import LatentWorlds
from workbench.runs.folder import Run
from workbench.runs.progress import Progress
from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend
from workbench.tasks import load_task
from workbench.traces import Episode
from workbench.training.micro.experts import CORRUPTIONS, ProposerExpert, SolverExpert
from workbench.training.micro.policy import BUDGET, SAMPLING
from workbench.training.micro.prompts import proposer_prompt, solver_prompt
from workbench.trials.run import run_trial
from workbench.worlds.building import build_environment
from workbench.worlds.draw import Draw
from workbench.worlds.export import export_environment
from workbench.worlds.partitions import DEFAULT_SALT, seeds_in

GENERATOR, TIER = "micro_shelf", "micro"

PARENTS = [kinds for n in range(1, len(CORRUPTIONS) + 1) for kinds in itertools.combinations(CORRUPTIONS, n)]
SOLVED = (0.0, 0.2, 0.5, 0.8, 1.0)  # one pass rate for each word of proposer.compose.RATES


def messages_of(episode: Episode, opening: Sequence[Mapping]) -> list[dict[str, str]]:
    """What was said in an episode, up to its last answer."""
    said = [dict(m) for m in opening]
    for turn in episode.turns:
        said += [{"role": "assistant", "content": turn.text}, {"role": "user", "content": turn.observation}]
    return said[:-1] if episode.turns else said


def collect(
    run: Run,
    backend: Backend,
    *,
    solver: int,
    proposer: int,
    noise: float,
    workers: int,
    seed: int = 0,
    prompts: tuple[Prompt, Prompt] = (solver_prompt, proposer_prompt),
) -> list[dict[str, Any]]:
    """Rows of kind "trace", `solver` + `proposer` of them, executed once each: a run that was killed goes on where it was.

    prompts: what a solver and a proposer are told, since the traces are to teach a policy that is told the same. noise: see the experts. Seeds of worlds come from the training partition alone. A trace that infrastructure ended is executed
    again, and counted as nothing when that fails too.
    """
    seeds = list(itertools.islice(seeds_in(GENERATOR, "training", DEFAULT_SALT, start=seed * 1_000_003), solver))
    library = LatentWorlds(generators=[GENERATOR], tiers=[TIER], seed=seed)
    jobs: list[tuple[str, Any]] = [
        (f"proposer-{n}", lambda id, n=n: proposer_trace(id, n, library, backend, noise, seed, prompts[1]))
        for n in range(proposer)
    ]
    jobs += [(f"solver-{s}", lambda id, s=s: solver_trace(id, s, backend, noise, prompts[0])) for s in seeds]

    def execute(job: tuple[str, Any]) -> dict[str, Any] | None:
        id, make = job
        if (row := run.get("trace", id)) is None:
            row = make(id)
            row = make(id) if row["outcome"] == "infra" else row
            if row["outcome"] != "infra":
                run.record("trace", row, id=id)
        done(note=f"{id} reward {row['reward']}")
        return row if row["outcome"] != "infra" else None

    with Progress(label="expert traces", total=len(jobs)) as done, ThreadPoolExecutor(workers) as threads:
        return [row for row in threads.map(execute, jobs) if row is not None]


def solver_trace(
    id: str, world_seed: int, backend: Backend, noise: float, prompt: Prompt = solver_prompt
) -> dict[str, Any]:
    """One expert episode at one world, in a sandbox, graded."""
    with tempfile.TemporaryDirectory(prefix=prefix("cold")) as folder:
        environment = build_environment(GENERATOR, world_seed, TIER)
        task = load_task(export_environment(environment, Path(folder) / "task"))
        opening = prompt.opening(task.steps[0].instruction)
        expert = SolverExpert(Draw("cold start", "solver", world_seed), noise, len(opening))
        agent = TerminalAgent(expert, sampling=SAMPLING, prompt=prompt)
        trial = run_trial(task, agent, backend, budget=BUDGET, admitted=True, id=id, progress=False)
    messages = messages_of(trial.episodes[0], opening) if trial.episodes else []
    kinds = sorted({defect.kind for defect in environment.defects})
    return {"role": "solver", "seed": world_seed, "kinds": kinds, "digest": trial.digest, "outcome": trial.outcome,
            "reward": trial.reward, "passed": bool(trial.passed), "messages": messages, "reason": trial.reason,
            "seconds": trial.seconds}  # fmt: skip


def proposer_trace(
    id: str,
    number: int,
    library: LatentWorlds,
    backend: Backend,
    noise: float,
    seed: int,
    prompt: Prompt = proposer_prompt,
) -> dict[str, Any]:
    """One expert answer to an assignment, composed by the host and taken through validation (oracle and no-op, once each)."""
    began = time.monotonic()
    draw = Draw("cold start", "proposer", seed, number)
    with tempfile.TemporaryDirectory(prefix=prefix("cold")) as folder:
        assignment = practice_assignment(draw.fork("assignment"), library, Path(folder) / "parent", id)
        expert = ComposeProposer(ProposerExpert(draw.fork("expert"), noise), library, prompt=prompt)
        proposal = expert.propose(assignment, Path(folder) / "task", seed=number)
        verdict = admit(proposal.path, backend, repeats=1) if proposal.path else None
    assert proposal.episode is not None
    opening = prompt.opening(proposal.episode.instruction)
    outcome = "infra" if verdict is not None and verdict.infra else "graded"
    valid = verdict is not None and verdict.validated
    return {"role": "proposer", "seed": number, "kinds": [], "digest": verdict.digest if verdict else "", "outcome": outcome,
            "reward": None if valid else -1.0, "passed": valid, "messages": messages_of(proposal.episode, opening),
            "reason": proposal.message, "seconds": time.monotonic() - began}  # fmt: skip


def practice_assignment(draw: Draw, library: LatentWorlds, parent: Path, id: str) -> Assignment:
    """An assignment like those of a round: a composed parent, a pass rate, a direction that suits it. The pass rate is drawn, not measured."""
    kinds, rate = draw.choice(PARENTS), draw.choice(SOLVED)
    library.compose(GENERATOR, TIER, kinds, parent, draw=id)
    direction = "harder" if rate > 0.5 or (rate == 0.5 and draw.chance(0.5)) else "simpler"
    return Assignment(id, "", 0.0, 0, GENERATOR, str(parent), "", direction, rate, "practice")
