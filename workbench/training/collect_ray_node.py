"""What runs on the nodes of a Ray cluster: a trial, a Model that asks the learner's process, and the mailbox between the two."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import __version__
from workbench.agents import Budget
from workbench.agents.prompts import Prompt
from workbench.models import Message, ModelError, Reply, Sampling
from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, get_backend
from workbench.tasks import Task, load_task
from workbench.trials import Trial
from workbench.trials.run import run_trial

Question = tuple[int, str, str, Sequence[Message], Sampling]  # number, conversation, node, and what is asked


class Mailbox:
    """Questions of trials anywhere, answers from the engine's process. An asynchronous actor on the learner's node."""

    def __init__(self) -> None:
        self.questions: asyncio.Queue[Question] = asyncio.Queue()
        self.waiting: dict[int, asyncio.Future[Reply | ModelError]] = {}
        self.count = 0

    async def ask(self, key: str, node: str, messages: Sequence[Message], sampling: Sampling) -> Reply | ModelError:
        self.count += 1
        number, answer = self.count, asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        await self.questions.put((number, key, node, messages, sampling))
        return await answer

    async def take(self, seconds: float) -> list[Question]:
        """Questions that wait, at least one unless `seconds` pass."""
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

    def __init__(self, mailbox: Any, key: str, name: str, node: str):
        self.mailbox, self.key, self.name, self.node = mailbox, key, name, node

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        import ray

        try:
            reply = ray.get(self.mailbox.ask.remote(self.key, self.node, list(messages), sampling))
        except ray.exceptions.RayError as error:
            raise ModelError(f"the learner's process no longer answers: {error}") from error
        if isinstance(reply, Exception):
            raise reply
        return reply

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return 0.0


def play_there(
    version: str, mailbox: Any, key: str, files: Mapping[str, tuple[bytes, int]], digest: str, name: str, sampling: Sampling,
    prompt: Prompt | str, budget: Budget, backend: str, id: str, progress: bool,
) -> tuple[Trial, str]:  # fmt: skip
    """On a node: one trial; with the node's id."""
    import ray

    from workbench.agents.terminal import TerminalAgent

    node = ray.get_runtime_context().get_node_id()
    if version != __version__:
        raise RuntimeError(f"node {node} has version {__version__} of this package, the learner {version}: install one")
    with tempfile.TemporaryDirectory(prefix=prefix("task")) as folder:
        task = load_task(write_files(Path(folder) / "task", files))
        if task.digest != digest:
            raise RuntimeError(f"task {task.name} came over with digest {task.digest}, not {digest}")
        agent = TerminalAgent(There(mailbox, key, name, node), sampling=sampling, prompt=prompt)
        trial = run_trial(task, agent, _backend(backend), budget=budget, admitted=True, seed=sampling.seed, id=id,
                          progress=progress)  # fmt: skip
    return trial, node


@functools.lru_cache
def _backend(name: str) -> Backend:
    """One for all trials of this process: each keeps sandboxes ready, which end with the process."""
    return get_backend(name)


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
