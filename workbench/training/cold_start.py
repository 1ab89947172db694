"""Cold-Start: executed expert traces, selection, SFT until a policy solves some and not all, and what that changed.

AutoEnvScaling §4.3 and H fine-tune a large model on 600 of its own admitted proposer trajectories before the shared policy's training. Ours starts a
model from random weights, so it has to learn both roles' words, from scripted experts that were really executed; and it stops early, at a pass
rate between `low` and `high`, so that training by reward has something left to gain. Every stage is recorded: a killed run goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.agents.prompts import Prompt
from workbench.runs.folder import Run
from workbench.runs.progress import say
from workbench.sandboxes import Backend, get_backend
from workbench.tasks import Task
from workbench.training import sft
from workbench.training.cold_start_measures import (
    canonical_probability,
    compare_proposer,
    expert_chats,
    practice,
    solver_tasks,
)
from workbench.training.evaluate import Evaluation, difference, evaluate, scores_of
from workbench.training.micro.traces import collect
from workbench.training.policy import Policy, open_policy
from workbench.training.trajectories import select

SETTLING = 6  # halvings of the last interval


def cold_start(run: Run, values: Mapping[str, Any], *, backend: Backend | None = None) -> Policy:
    """All stages; returns the trained policy (close it). Rows: "trace", "selection", "check" (pass rates on the way), "sft", "evaluation" and
    "proposals" (before and after), "feasibility". values: a profile's section for notebook 30.
    """
    backend = backend or get_backend(values["backend"])
    policy = open_policy(values["policy"], values)
    tasks = solver_tasks(run.folder / "tasks" / "calibration", values)
    assignments = practice(run, values)
    rows = collect(
        run, backend, solver=values["solver_traces"], proposer=values["proposer_traces"], noise=values["noise"],
        workers=values["workers"], seed=values["seed"], prompts=prompts_of(policy),
    )  # fmt: skip
    chosen, counts = select(rows, most_of_a_kind=values["most_of_a_kind"], roots=[str(run.folder)])
    run.once("selection", "selection", lambda: counts)
    say(f"cold start: {counts}")
    measure(run, policy, backend, values, tasks, assignments, "before")
    train(run, policy, backend, values, chosen, tasks)
    measure(run, policy, backend, values, tasks, assignments, "after")
    run.once("feasibility", "feasibility", lambda: feasibility(run, values))
    return policy


def prompts_of(policy: Policy) -> tuple[Prompt, Prompt]:
    """What this policy is told as a solver and as a proposer, here and in its training."""
    from workbench.proposer.compose import PLAIN
    from workbench.training.micro import proposer_prompt

    return policy.solver_prompt, proposer_prompt if policy.name == "micro" else PLAIN  # type: ignore[return-value]


def train(
    run: Run, policy: Policy, backend: Backend, values: Mapping[str, Any], chosen: Sequence[Mapping], tasks: Sequence[Task]
) -> dict[str, Any]:  # fmt: skip
    """SFT until the pass rate on calibration worlds reaches `low`; the weights are kept in the run's folder `model`."""
    from workbench.training.micro.policy import open_policy as read

    folder = run.folder / "model"
    if (row := run.get("sft", "sft")) is not None:
        policy.network.load_state_dict(read(folder)[0].state_dict())
        policy.model.engine.update_weights(policy.network.state_dict())
        return row
    examples = [sft.from_chat(policy.tokenizer, row["messages"]) for row in chosen]
    examples += [e for row, e in zip(chosen, list(examples), strict=True) if row["role"] == "proposer"] * (values["proposer_copies"] - 1)  # fmt: skip
    check = _Check(run, policy, backend, values, tasks)
    settings = sft.SftSettings(**{"seed": values["seed"], **values["sft"]})
    row = sft.train(
        policy.network, policy.tokenizer, examples, settings, folder=run.folder / "sft", stop=check, every=values["every"]
    )  # fmt: skip
    policy.network.eval()
    settle(check)
    policy.model.engine.update_weights(policy.network.state_dict())
    policy.network.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return run.once("sft", "sft", lambda: {**row, "stopped_at": check.last})


class _Check:
    """Asked by the training every few steps: True when the solver passes often enough.

    The probability that the policy writes what a faultless expert writes costs one forward pass; attempts in sandboxes begin when it
    comes near `low`."""

    def __init__(self, run: Run, policy: Policy, backend: Backend, values: Mapping[str, Any], tasks: Sequence[Task]):
        self.run, self.policy, self.backend, self.values, self.tasks = run, policy, backend, values, tasks
        self.chats = expert_chats(policy.tokenizer, tasks, policy.solver_prompt)
        self.last: float | None = None
        self.before: dict[str, Any] = {}  # the weights at the check before the last one
        self.now: dict[str, Any] = {}

    def __call__(self, step: int) -> bool:
        network = self.policy.network
        network.eval()
        self.before, self.now = self.now, {k: v.detach().clone() for k, v in network.state_dict().items()}
        likely = canonical_probability(network, self.chats)
        passed = self.passed(step) if likely >= self.values["look_from"] else None
        network.train()
        examples = step * self.values["sft"]["batch"]
        self.run.record("check", {"step": step, "examples": examples, "expert_probability": likely, "passed": passed})
        say(
            f"cold start: step {step}, expert's words {likely:.2f}, passed {'-' if passed is None else f'{passed:.2f}'}"
        )
        self.last = passed
        return passed is not None and passed >= self.values["low"]

    def passed(self, step: int) -> float:
        """The share of calibration worlds that the network passes as it is."""
        self.policy.model.engine.update_weights(self.policy.network.state_dict())
        found = attempts(self.policy, self.backend, self.values, self.tasks, f"step {step}", step)
        return sum(s.passes for s in found.scores) / max(1, sum(len(s.rewards) for s in found.scores))


def settle(check: _Check) -> None:
    """When one interval of training jumped over the band, take weights between its two ends, by halving: what a smaller interval would have
    met, at less cost than training again."""
    low, high, ends = check.values["low"], check.values["high"], [0.0, 1.0]
    if check.last is None or check.last <= high or not check.before:
        return
    for attempt in range(SETTLING):
        share = sum(ends) / 2
        mixed = {name: old.lerp(check.now[name], share) for name, old in check.before.items()}
        check.policy.network.load_state_dict(mixed)
        check.last = check.passed(-1 - attempt)
        check.run.record("settle", {"share": share, "passed": check.last})
        say(f"cold start: {share:.2f} of the last interval, passed {check.last:.2f}")
        if low <= check.last <= high:
            return
        ends[check.last > high] = share


def attempts(
    policy: Policy, backend: Backend, values: Mapping[str, Any], tasks: Sequence[Task], name: str, version: int
) -> Evaluation:
    """One attempt at each task, as the policy is now."""
    return evaluate(
        tasks, policy.untracked_solver, backend, k=values["attempts"], name=name, version=version, seed=values["seed"],
        budget=policy.budget, workers=values["workers"],
    )  # fmt: skip


def measure(run, policy, backend, values, tasks, assignments, when: str) -> None:
    """Both roles on the same tasks and assignments; recorded once under `when`. Solving is the control of Table 13."""
    run.once("evaluation", when, lambda: attempts(policy, backend, values, tasks, when, 0).to_row())
    run.once("proposals", when, lambda: compare_proposer(run, policy, backend, values, assignments, when))


def feasibility(run: Run, values: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a training pool can be filled: how many of the worlds that the policy proposed are in the band for it, and how many it would
    have to propose for one batch."""
    row = run.get("proposals", "after") or {}
    rewards, admitted = row.get("rewards", []), row.get("admitted", 0)
    share = admitted / len(rewards) if rewards else math.nan
    needed = math.ceil(values["batch_groups"] / share) if share else None
    return {"proposed": len(rewards), "admitted": admitted, "share": share, "batch_groups": values["batch_groups"],
            "proposals_for_a_batch": needed, "enough": bool(needed and needed <= values["most_proposals"])}  # fmt: skip


def comparison(run: Run) -> list[dict[str, Any]]:
    """Before and after, both roles, with 95 % bootstrap intervals: rows for a table."""
    from workbench.statistics import bootstrap_interval

    rows = []
    for when in ("before", "after"):
        solving, proposing = run.get("evaluation", when), run.get("proposals", when)
        if solving is None or proposing is None:
            continue
        rows += [
            {"role": "solver (control)", "when": when, "n": solving["tasks"], "reward": solving["avg"],
             "low": solving["avg_interval"][0], "high": solving["avg_interval"][1], "passed or admitted": solving["pass@1"]},
            {"role": "proposer", "when": when, "n": len(proposing["rewards"]), "reward": proposing["mean"],
             "low": bootstrap_interval(proposing["rewards"])[0], "high": bootstrap_interval(proposing["rewards"])[1],
             "passed or admitted": proposing["admitted"] / max(1, len(proposing["rewards"]))},
        ]  # fmt: skip
    return rows


def solver_difference(run: Run) -> dict[str, Any]:
    """After minus before on the same tasks, with interval and verdict."""
    return difference(scores_of(run.get("evaluation", "before")), scores_of(run.get("evaluation", "after")))


def losses(run: Run) -> list[dict[str, float]]:
    """The training's losses: rows `step`, `loss` (mean cross-entropy in nats over learned tokens)."""
    row = run.get("sft", "sft") or {"losses": []}
    return [{"step": step, "loss": float(loss)} for step, loss in row["losses"]]
