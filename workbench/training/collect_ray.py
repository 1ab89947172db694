"""Rollouts on several nodes: sandboxes there, learner and engine here (Ray, an optional dependency).

A node runs trials; each turn asks this process for its answer through a mailbox, so that conversations, sampled ids,
log-probabilities and policy versions stay where the engine is, and a weight update reaches every trajectory at once. Proposer attempts
stay on threads of this machine. A task travels as bytes: nodes need no shared folder.

A node that dies takes its trials with it: each comes back as an infrastructure failure, which the collector plays again under the
same name from another conversation. Ray itself repeats nothing (max_retries=0), so no rollout counts twice, and none is lost silently.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from workbench.agents import Budget
from workbench.agents.prompts import Prompt
from workbench.models import Message, ModelError, Reply, Sampling
from workbench.tasks import Task, load_task
from workbench.training.groups import Attempt, Played
from workbench.training.learning_roles import Roles
from workbench.trials import Trial
from workbench.trials.run import run_trial

PULL_SECONDS = 0.5  # how long one look into the mailbox may wait


def connect(address: str) -> Any:
    """Ray's module, connected to a cluster ("auto", HOST:PORT). Raises ModuleNotFoundError that says what to install."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "rollouts on a cluster need Ray: pip install ray, on every node the same version"
        ) from error
    if not ray.is_initialized():
        ray.init(address=address, logging_level="warning", log_to_driver=False)
    return ray


class RayExecutor:
    """An Executor of workbench.training.collect. per_node: trials at once on each node, by Ray's count of its CPUs: a trial takes
    `cpus` of one. backend: the nodes' sandboxes (workbench.sandboxes.get_backend). workers: answers at once, and proposer attempts."""

    def __init__(
        self, roles: Roles, address: str = "auto", *, cpus: float = 0.25, backend: str = "bubblewrap", workers: int = 32
    ):
        self.ray, self.roles, self.cpus, self.backend = connect(address), roles, cpus, backend
        self._here = ThreadPoolExecutor(workers, thread_name_prefix="here")
        self._answers = ThreadPoolExecutor(workers, thread_name_prefix="answer")
        self.nodes: dict[str, int] = {}  # node → trials that came back from it
        here = self.ray.get_runtime_context().get_node_id()
        kept = {"node_id": here, "soft": False}
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(**kept)
        self._mailbox = (
            self.ray.remote(Mailbox).options(num_cpus=0, max_concurrency=10_000, scheduling_strategy=strategy).remote()
        )
        self._play = self.ray.remote(_play_there).options(num_cpus=cpus, max_retries=0)
        self._conversations: dict[str, Any] = {}
        self._stopping = threading.Event()
        self._puller = threading.Thread(target=self._pull, name="mailbox", daemon=True)
        self._puller.start()

    def submit(self, attempt: Attempt) -> Future[Played]:
        if attempt.plan.role == "proposer":
            return self._here.submit(self.roles.play, attempt)
        return self._here_after(attempt)

    def close(self) -> None:
        """May be called twice. Trials on the nodes end by themselves."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._puller.join()
        for pool in (self._here, self._answers):
            pool.shutdown(wait=True, cancel_futures=True)
        self.ray.kill(self._mailbox)

    def _here_after(self, attempt: Attempt) -> Future[Played]:
        key, policy = f"{attempt.id}/{attempt.retry}", self.roles.policy
        self._conversations[key] = policy.model.conversation(key)
        task = self.roles.task(attempt.plan.what)
        sampling = replace(policy.sampling, seed=attempt.seed)
        ref = self._play.remote(
            self._mailbox, key, files_of(task), task.digest, policy.name, sampling, policy.solver_prompt, policy.budget, self.backend, attempt.id
        )  # fmt: skip
        out: Future[Played] = Future()
        ref.future().add_done_callback(partial(self._landed, attempt, key, out))
        return out

    def _landed(self, attempt: Attempt, key: str, out: Future[Played], there: Future[tuple[Trial, str]]) -> None:
        try:
            trial, node = there.result()
            self.nodes[node] = self.nodes.get(node, 0) + 1
            out.set_result(self.roles.solved(attempt, key, trial))
        except Exception as error:  # the node died, or Ray did; the collector counts it as infrastructure's
            out.set_exception(error)
        finally:
            self._conversations.pop(key, None)
            self.roles.policy.model.forget(key)

    def _pull(self) -> None:
        while not self._stopping.is_set():
            for number, key, messages, sampling in self.ray.get(self._mailbox.take.remote(PULL_SECONDS)):
                self._answers.submit(self._answer, number, key, messages, sampling)

    def _answer(self, number: int, key: str, messages: Sequence[Message], sampling: Sampling) -> None:
        conversation = self._conversations.get(key)
        if conversation is None:  # of a trial that is already given up
            return
        try:
            reply: Reply | ModelError = conversation.reply(messages, sampling)
        except ModelError as error:
            reply = error
        self._mailbox.answer.remote(number, reply)


class Mailbox:
    """Questions of trials anywhere, answers from the engine's process. An asynchronous actor on the learner's node."""

    def __init__(self) -> None:
        import asyncio

        self.questions: Any = asyncio.Queue()
        self.waiting: dict[int, Any] = {}
        self.count = 0

    async def ask(self, key: str, messages: Sequence[Message], sampling: Sampling) -> Reply | ModelError:
        import asyncio

        self.count += 1
        number, answer = self.count, asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        await self.questions.put((number, key, messages, sampling))
        return await answer

    async def take(self, seconds: float) -> list[tuple[int, str, Sequence[Message], Sampling]]:
        """Questions that wait, at least one unless `seconds` pass."""
        import asyncio

        try:
            first = await asyncio.wait_for(self.questions.get(), seconds)
        except TimeoutError:
            return []
        return [first, *(self.questions.get_nowait() for _ in range(self.questions.qsize()))]

    async def answer(self, number: int, reply: Reply | ModelError) -> None:
        found = self.waiting.pop(number, None)
        if found is not None and not found.done():
            found.set_result(reply)


class There:
    """The policy as a node sees it: a Model that asks the mailbox."""

    def __init__(self, mailbox: Any, key: str, name: str):
        self.mailbox, self.key, self.name = mailbox, key, name

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        import ray

        reply = ray.get(self.mailbox.ask.remote(self.key, list(messages), sampling))
        if isinstance(reply, Exception):
            raise reply
        return reply

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0


def _play_there(
    mailbox: Any, key: str, files: Mapping[str, tuple[bytes, int]], digest: str, name: str, sampling: Sampling, prompt: Prompt | str,
    budget: Budget, backend: str, id: str,
) -> tuple[Trial, str]:  # fmt: skip
    """On a node: one trial; with the node's name."""
    import ray

    from workbench.agents.terminal import TerminalAgent
    from workbench.sandboxes import get_backend

    with tempfile.TemporaryDirectory(prefix="workbench-task-") as folder:
        task = load_task(write_files(Path(folder) / "task", files))
        if task.digest != digest:
            raise RuntimeError(f"task {task.name} came over with digest {task.digest}, not {digest}")
        agent = TerminalAgent(There(mailbox, key, name), sampling=sampling, prompt=prompt)
        trial = run_trial(task, agent, get_backend(backend), budget=budget, admitted=True, seed=sampling.seed, id=id)
    return trial, ray.get_runtime_context().get_node_id()


def files_of(task: Task) -> dict[str, tuple[bytes, int]]:
    """A task's regular files: path → (bytes, mode). Links are not followed: a loaded task has none."""
    found = [p for p in sorted(task.path.rglob("*")) if p.is_file() and not p.is_symlink()]
    return {p.relative_to(task.path).as_posix(): (p.read_bytes(), p.stat().st_mode & 0o777) for p in found}


def write_files(folder: Path, files: Mapping[str, tuple[bytes, int]]) -> Path:
    for name, (data, mode) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
    return folder


def wait_for_nodes(ray: Any, count: int, seconds: float = 60.0) -> None:
    """Return when `count` nodes live; TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while sum(node["Alive"] for node in ray.nodes()) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"fewer than {count} nodes joined in {seconds:.0f} s (process {os.getpid()})")
        time.sleep(0.2)
