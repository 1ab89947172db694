"""What the Cold-Start measures: calibration worlds, a faultless expert's words, proposals on fixed assignments."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.admission.admit import admit
from workbench.admission.calibration import Calibration
from workbench.agents.prompts import Prompt
from workbench.models.engine_model import Conversation
from workbench.models.recording import Recording
from workbench.proposer import Assignment
from workbench.proposer.latent import LatentWorlds
from workbench.runs.folder import Run
from workbench.runs.progress import Progress
from workbench.sandboxes import Backend
from workbench.tasks import Task, load_task
from workbench.training.groups import number_of
from workbench.training.policy import Policy
from workbench.training.sft import Example, from_chat


def solver_tasks(folder: Path, values: Mapping[str, Any]) -> list[Task]:
    """The first `control` worlds of the calibration partition: neither trained on, nor held out for the flywheel's evaluation."""
    from workbench.training.micro.traces import GENERATOR, TIER
    from workbench.worlds.building import build_environment
    from workbench.worlds.export import export_environment
    from workbench.worlds.partitions import seeds_in

    tasks = []
    for seed in itertools.islice(seeds_in(GENERATOR, "calibration"), values["control"]):
        target = folder / f"{GENERATOR}-{seed}"
        if not (target / "task.toml").exists():
            export_environment(build_environment(GENERATOR, seed, TIER), target)
        tasks.append(load_task(target))
    return tasks


def practice(run: Run, values: Mapping[str, Any]) -> list[Assignment]:
    """The assignments of the comparison: drawn once, other ones than those of the traces."""
    from workbench.training.micro.traces import GENERATOR, TIER, practice_assignment
    from workbench.worlds.draw import Draw

    library = LatentWorlds(generators=[GENERATOR], tiers=[TIER], seed=values["seed"] + 1)
    out = []
    for number in range(values["assignments"]):
        parent = run.folder / "tasks" / "parents" / str(number)
        drawn = Draw("cold start", "comparison", values["seed"], number)
        if (parent / "task.toml").exists():
            out.append(_read_assignment(run, number))
            continue
        assignment = practice_assignment(drawn, library, parent, f"comparison-{number}")
        run.once("assignment", assignment.id, assignment.to_row)
        out.append(assignment)
    return out


def _read_assignment(run: Run, number: int) -> Assignment:
    row = run.get("assignment", f"comparison-{number}")
    fields = {k: v for k, v in (row or {}).items() if k in Assignment.__dataclass_fields__}
    return Assignment(**{**fields, "evidence": tuple(fields["evidence"])})


def expert_chats(tokenizer: Any, tasks: Sequence[Task], prompt: Prompt) -> list[Example]:
    """A faultless expert's episode at each task, as the policy would have to sample it. Nothing runs: each command prints what it prints
    in a sandbox, the note or nothing."""
    from workbench.training.micro.experts import SolverExpert
    from workbench.worlds.draw import Draw

    chats = []
    for task in tasks:
        note = (task.path / "environment/input/note.txt").read_text().strip()
        said: list[Any] = prompt.opening(task.steps[0].instruction)
        expert = SolverExpert(Draw("faultless"), 0.0, len(said))
        for turn in range(4):
            said.append({"role": "assistant", "content": expert.answer(said)})
            said.append({"role": "user", "content": "[exit code 0]" + (f"\n{note}" if not turn else "")})
        chats.append(from_chat(tokenizer, said[:-1]))
    return chats


def canonical_probability(model: Any, chats: Sequence[Example]) -> float:
    """Mean over chats of the probability, at temperature 1, that every learned token is sampled."""
    import torch

    longest = max(len(chat.ids) for chat in chats)
    ids = torch.zeros(len(chats), longest, dtype=torch.long)
    learned = torch.zeros(len(chats), longest, dtype=torch.bool)
    for row, chat in enumerate(chats):
        ids[row, : len(chat.ids)] = torch.tensor(chat.ids)
        learned[row, : len(chat.ids)] = torch.tensor(chat.learned)
    with torch.no_grad():
        logits = model(ids.to(model.device)).logits.float()
    chosen = logits.log_softmax(-1)[:, :-1].gather(-1, ids.to(model.device)[:, 1:, None])[..., 0]
    return (chosen * learned[:, 1:].to(model.device)).sum(1).exp().mean().item()


def compare_proposer(
    run: Run,
    policy: Policy,
    backend: Backend,
    values: Mapping[str, Any],
    assignments: Sequence[Assignment],
    when: str,
) -> dict[str, Any]:
    """One proposal for each assignment through the gate, calibrated with the policy as it is now: r_P of Eq. 2."""
    calibration = Calibration(
        policy.untracked_solver,
        rollouts=values["calibration_rollouts"],
        more=values["calibration_more"],
        budget=policy.budget,
        workers=values["calibration_rollouts"],
        diagnose=False,
    )

    def propose(pair: tuple[int, Assignment]) -> dict[str, Any]:
        number, assignment = pair
        target = run.folder / "tasks" / when / str(number)
        key = f"{when}-{number}"
        if (row := run.get("proposal", key)) is None:
            row = run.record("proposal", _verdict(assignment, target, number), id=key)
        done(note=f"{assignment.id} r_P {row['reward']}")
        return row

    def _verdict(assignment: Assignment, target: Path, number: int) -> dict[str, Any]:
        model = Conversation(policy.model, Recording(policy.model.format))
        proposer = policy.propose_with(model, policy.sampling)
        found = proposer.propose(assignment, target, seed=values["seed"] * 10_000 + number)
        text = found.episode.turns[0].text if found.episode else ""
        if found.path is None:
            return {
                "reward": -1.0,
                "valid": False,
                "admitted": False,
                "message": found.message,
                "text": text,
                "solver": [],
            }
        numbered = replace(
            calibration, number=lambda i: number_of(values["seed"], when, number, i)
        )  # no two draw alike
        verdict = admit(found.path, backend, calibrate=numbered, repeats=1)
        return {"reward": verdict.reward, "valid": verdict.validated, "admitted": bool(verdict.admitted), "message": found.message,
                "text": text, "solver": verdict.rewards.get("solver", [])}  # fmt: skip

    with (
        Progress(label=f"proposals {when}", total=len(assignments)) as done,
        ThreadPoolExecutor(max(1, values["workers"] // values["calibration_rollouts"])) as threads,
    ):
        rows = list(threads.map(propose, enumerate(assignments)))
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    return {"when": when, "rewards": rewards, "mean": sum(rewards) / max(1, len(rewards)), "ungraded": len(rows) - len(rewards),
            "valid": sum(row["valid"] for row in rows), "admitted": sum(row["admitted"] for row in rows)}  # fmt: skip
