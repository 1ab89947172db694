"""The life of one trial: build, start, act, stop every process, grade, remove, write down."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.agents import Agent, Budget
from workbench.models import ContextFull
from workbench.sandboxes import Backend, Limits, Sandbox
from workbench.tasks import Step, Task, load_task
from workbench.tasks.progress import ProgressError
from workbench.traces import Episode
from workbench.trials import Grade, Trial, plain
from workbench.trials.grader import grade
from workbench.trials.outcomes import Cancelled, Judgement, TaskFault, judge_error, judge_grades, passed
from workbench.trials.progress import ProgressGrader, Watched, contract_of, with_progress
from workbench.trials.recall import Recorder, recall, write_down
from workbench.trials.setting import (
    Setting,
    agent_env,
    agent_limits,
    agent_network,
    collect_commands,
    enter_step,
    is_separate,
    prepare,
)


@dataclass
class _Life:
    """What is known of a trial so far; filled while it runs, so that a failure keeps all that came before it."""

    begun: float
    stands_for: Mapping[str, str] = field(default_factory=dict)
    episodes: list[Episode] = field(default_factory=list)
    grades: list[Grade] = field(default_factory=list)
    agent_seconds: float = 0.0
    phi: float | None = None
    progress_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def run_trial(
    task: Task | str | Path,
    agent: Agent,
    backend: Backend,
    *,
    budget: Budget = Budget(),
    limits: Limits | None = None,
    admitted: bool = False,
    run: Recorder | None = None,
    seed: int | None = None,
    cancel: threading.Event | None = None,
    id: str | None = None,
    progress: bool = True,
) -> Trial:
    """One agent at one task, graded. Never raises for what agent, task or machine did: the outcome says who answers.

    task: loaded, or a folder to load (faulty files: outcome `task`). budget: of each step; the step's own agent timeout
    is kept when it is shorter. limits: of both sandboxes instead of the task's own (which are capped at
    `setting.MAXIMUM`). admitted: the task was validated, so a grader that breaks is the policy's doing (reward 0).
    run: the trial is written to its journal as a "trial" row. seed: written down; agents take theirs when they are made.
    cancel: when set, the trial ends at its next phase as `infra` ("cancelled"). id: the trial's; else a fresh one. A trial
    of this id that `run` already holds is read back instead (see recall). progress: grade Phi after each turn where the
    task has a progress contract; without it a trial on a small task costs about half as much, and its Phi is None.
    Images are built first, outside the trial's clock (`prepare` builds them ahead of a queue).
    KeyboardInterrupt passes through, after the sandbox is removed.
    """
    life = _Life(time.monotonic())
    started = time.time()
    try:
        if not isinstance(task, Task):
            task = load_task(task)
        if id is not None and run is not None and (found := recall(run, id, task.digest)) is not None:
            return found
        _live_through(life, task, agent, backend, budget, limits, run.id if run is not None else "", cancel, progress)
        verdict = judge_grades(life.grades, steps=len(task.steps), strategy=task.reward_strategy, admitted=admitted)
    except Exception as error:
        verdict = judge_error(error, admitted=admitted)
        if isinstance(error, ContextFull):
            life.episodes.append(Episode(agent.name, model=agent.model, ended_by="context", error=str(error)))
    trial = _trial(life, task, agent, backend, verdict, run=run, seed=seed, started=started, id=id)
    if run is not None:
        write_down(trial, run)
    return trial


def _live_through(
    life: _Life,
    task: Task,
    agent: Agent,
    backend: Backend,
    budget: Budget,
    limits: Limits | None,
    label: str,
    cancel: threading.Event | None,
    progress: bool,
) -> None:
    """Fill `life` step by step; whatever happens, the sandbox is gone afterwards."""
    setting = prepare(task, backend)
    life.begun, life.stands_for = time.monotonic(), setting.agent.stands_for
    limits = agent_limits(task, limits)
    _check(cancel)
    if _leaves_the_image(agent, task):
        life.episodes.append(agent.run(task, task.steps[0], None, budget))  # type: ignore[arg-type]
        life.grades.append(grade(task, 0, None, backend, setting, limits=limits, label=label))
        return
    with ExitStack() as stack:
        sandbox = backend.start(
            setting.agent,
            limits=limits,
            network=agent_network(task),
            env=agent_env(task),
            label=label,
            mounts=getattr(agent, "mounts", ()),
        )
        stack.callback(sandbox.stop)
        if any(is_separate(task, index) for index in range(len(task.steps))):
            sandbox.exec(["mkdir", "-p", "/logs/artifacts", "/logs/agent"])  # where Harbor's tasks publish files
        for index, step in enumerate(task.steps):
            _check(cancel)
            enter_step(task, index, sandbox)
            with ExitStack() as watching:
                grader = _progress_grader(step, sandbox, backend, setting, limits, label) if progress else None
                watched = sandbox if grader is None else Watched(sandbox, watching.enter_context(grader))
                episode = _act(life, task, step, agent, watched, budget)
                _check(cancel)
                _quiet(task, index, sandbox)
                if grader is not None:
                    episode = _note_progress(life, episode, watched, grader)
                life.episodes.append(episode)
            last = index == len(task.steps) - 1
            found = grade(task, index, sandbox, backend, setting, last=last, limits=limits, label=label)
            life.grades.append(found)
            if found.reward is None or found.reward < (step.min_reward or 0.0):
                return


def _progress_grader(
    step: Step, sandbox: Sandbox, backend: Backend, setting: Setting, limits: Limits, label: str
) -> ProgressGrader | None:
    """For a step with a progress contract. A malformed contract is the task's fault."""
    try:
        contract = contract_of(step)
    except ProgressError as error:
        raise TaskFault("progress-contract", str(error)) from error
    if contract is None:
        return None
    return ProgressGrader(contract, step, sandbox, backend, setting.agent, limits=limits, label=label)


def _note_progress(life: _Life, episode: Episode, watched: Watched, grader: ProgressGrader) -> Episode:
    """Phi of the final workspace, which is also what stands after the last turn."""
    life.phi = grader.phi()
    life.progress_seconds += math.fsum(grader.seconds)
    life.notes += grader.notes
    return with_progress(episode, watched, life.phi)


def _leaves_the_image(agent: Agent, task: Task) -> bool:
    """An agent that needs no sandbox (the no-op) leaves the image's files; so they are graded at once. Where a step, a
    separate verifier, a service or a collecting command changes what a grader sees, it gets its sandbox all the same."""
    plain_task = len(task.steps) == 1 and not task.keep_services and not is_separate(task, 0)
    return getattr(agent, "idle", False) and plain_task and not collect_commands(task, 0)


def _act(life: _Life, task: Task, step: Step, agent: Agent, sandbox: Sandbox, budget: Budget) -> Episode:
    """The agent's turn. An agent that overran its time did not finish in time, whatever it says of itself."""
    seconds = min(budget.seconds, step.agent_timeout or math.inf)
    began = time.monotonic()
    try:
        episode = agent.run(task, step, sandbox, replace(budget, seconds=seconds))
    finally:
        spent = time.monotonic() - began
        life.agent_seconds += spent
    if spent > seconds and episode.ended_by == "submit":
        episode = replace(episode, ended_by="time", submitted=False)
    return episode


def _quiet(task: Task, index: int, sandbox: Sandbox) -> None:
    """Nothing of the agent's runs while it is graded; services that the task declares live on instead."""
    for command, seconds in collect_commands(task, index):
        sandbox.exec(command, timeout=seconds)  # best effort, as in Harbor
    if not task.keep_services:
        sandbox.kill_all()


def _check(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Cancelled("the run was asked to stop")


def _trial(
    life: _Life,
    task: Task | str | Path,
    agent: Agent,
    backend: Backend,
    verdict: Judgement,
    *,
    run: Recorder | None,
    seed: int | None,
    started: float,
    id: str | None,
) -> Trial:
    loaded = isinstance(task, Task)
    turns = [turn for episode in life.episodes for turn in episode.turns]
    seconds = time.monotonic() - life.begun
    verifier_seconds = math.fsum(g.seconds for g in life.grades)
    last = life.episodes[-1] if life.episodes else None
    return Trial(
        id=id or uuid.uuid4().hex[:16],
        run_id=run.id if run is not None else "",
        time=started,
        task=task.name if loaded else str(task),
        digest=task.digest if loaded else "",
        agent=agent.name,
        model=agent.model,
        backend=backend.name,
        outcome=verdict.outcome,
        reward=verdict.reward,
        passed=passed(life.grades, verdict.reward, len(task.steps) if loaded else 0),
        reason=verdict.reason,
        message=plain(
            "\n".join([*([verdict.message] if verdict.message else []), *(f"progress: {n}" for n in life.notes)])
        ),
        submitted=last.submitted if last else False,
        ended_by=last.ended_by if last else "error",
        steps=tuple(life.grades),
        turns=len(turns),
        prompt_tokens=sum(turn.prompt_tokens for turn in turns),
        completion_tokens=sum(turn.completion_tokens for turn in turns),
        usd=math.fsum(turn.usd for turn in turns),
        seconds=seconds,
        agent_seconds=life.agent_seconds,
        verifier_seconds=verifier_seconds,
        overhead_seconds=max(seconds - life.agent_seconds - verifier_seconds, 0.0),
        seed=seed,
        phi=life.phi,
        progress=tuple(turn.progress for turn in turns if turn.progress is not None) if life.phi is not None else (),
        progress_seconds=life.progress_seconds,
        stands_for=dict(life.stands_for),
        limits=dict(_means(backend)),
        episodes=tuple(life.episodes),
    )


def _means(backend: Backend) -> Mapping[str, str]:
    try:
        return backend.capabilities().limits
    except Exception:  # a back end that is down must not take the record with it
        return {}
