"""Rollouts on several nodes: sandboxes there, learner and engine here (Ray, an optional dependency).

A node runs trials; each turn asks this process for its answer through a mailbox, so that conversations, sampled ids,
log-probabilities and policy versions stay where the engine is, and a weight update reaches every trajectory at once. Proposer attempts
stay on threads of this machine. A task travels as bytes: nodes need no shared folder.

A node that dies takes its trials with it: each comes back as an infrastructure failure, which the collector plays again under the
same name from another conversation. Ray itself repeats nothing (max_retries=0), so no rollout counts twice, and none is lost silently.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from workbench import __version__
from workbench.models import Message, ModelError, Reply, Sampling
from workbench.training.collect import Lost
from workbench.training.collect_ray_node import Mailbox, files_of, play_there
from workbench.training.groups import Attempt, Played
from workbench.training.learning_roles import Roles
from workbench.trials import Trial

PULL_SECONDS = 0.5  # how long one look into the mailbox may wait
LOOK_SECONDS = 5.0  # between looks at which nodes live
END_SECONDS = 15.0  # that interrupted trials have to remove their sandboxes
_INSTALL = "pip install 'terminal-env-workbench[cluster]'"
_SAME = (
    "This process must run on one of its nodes, with the same versions of Python, Ray and this package as the others, and with "
    "the cluster's token when it has one (RAY_AUTH_MODE=token)"
)


def connect(address: str) -> tuple[Any, bool]:
    """Ray's module, connected to a cluster: "auto" (the one that this machine is a node of) or HOST:PORT, of its head; and
    whether this call connected it (a process has one connection: an earlier one is kept).

    Raises ValueError for another address, ModuleNotFoundError without Ray, ConnectionError when there is no such cluster or it
    cannot be joined; each says what to do.
    """
    host, _, port = address.rpartition(":")
    if address != "auto" and not (re.fullmatch(r"[\w.\-]+|\[[0-9a-fA-F:]+\]", host) and port.isdigit()):
        raise ValueError(f"ray={address!r} is no cluster: give auto, or HOST:PORT as `ray start --head` printed it")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"rollouts on a cluster need Ray: {_INSTALL}, on every node") from error
    if ray.is_initialized():
        return ray, False
    if host:
        _listens(host.strip("[]"), int(port))
    try:
        ray.init(address=address, logging_level="warning", log_to_driver=False)
    except Exception as error:
        raise ConnectionError(
            f"no Ray cluster could be joined at {address!r}: {str(error).strip(' .') or type(error).__name__}. "
            f"Start one: `ray start --head --port PORT`, on each other node `ray start --address HOST:PORT`. {_SAME}"
        ) from error
    return ray, True


def _listens(host: str, port: int) -> None:
    """Ray itself would try for minutes."""
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise ConnectionError(
            f"nothing answers at {host}:{port} ({error}): start the head there (`ray start --head --port {port}`), or give "
            "the HOST:PORT that it printed"
        ) from error


@dataclass
class _Playing:
    """A trial on its way. node: where it asked from, empty before its first question."""

    attempt: Attempt
    conversation: Any
    out: Future[Played]
    ref: Any = None
    node: str = ""


class RayExecutor:
    """An Executor of workbench.training.collect: trials on a cluster's nodes.

    cpus: what a trial takes of a node, by Ray's count of its CPUs. backend: the nodes' sandboxes (workbench.sandboxes.get_backend).
    workers: answers at once, and proposer attempts. patience: seconds without any node that could play, after which the attempts
    that wait fail. nodes: id → trials that came back from it.
    """

    def __init__(
        self, roles: Roles, address: str = "auto", *, cpus: float = 0.25, backend: str = "bubblewrap", workers: int = 32,
        patience: float = 120.0,
    ):  # fmt: skip
        self.ray, self._connected = connect(address)
        self.roles, self.cpus, self.backend, self.patience = roles, cpus, backend, patience
        self.nodes: dict[str, int] = {}
        self._pools = [ThreadPoolExecutor(n, thread_name_prefix=p) for n, p in ((workers, "here"), (workers, "answer"), (4, "landing"))]  # fmt: skip
        self._here, self._answers, self._landing = self._pools
        here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id=self.ray.get_runtime_context().get_node_id(), soft=False
        )
        mailbox = self.ray.remote(Mailbox).options(num_cpus=0, max_concurrency=10_000, scheduling_strategy=here)
        self._mailbox = mailbox.remote()
        self._play = self.ray.remote(play_there).options(num_cpus=cpus, max_retries=0)
        self._playing: dict[str, _Playing] = {}
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=t, name=t.__name__, daemon=True) for t in (self._pull, self._watch)]
        for thread in self._threads:
            thread.start()

    def submit(self, attempt: Attempt) -> Future[Played]:
        if attempt.plan.role == "proposer":
            return self._here.submit(self.roles.play, attempt)
        out: Future[Played] = Future()
        try:
            self._send(attempt, out)
        except Exception as error:  # as with threads: an attempt that could not begin has failed, the step has not
            out.set_exception(error)
        return out

    def close(self) -> None:
        """End what is played anywhere, sandboxes too. May be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        refs = [playing.ref for playing in list(self._playing.values())]
        self._give_up("the run was closed")
        for thread in self._threads:
            thread.join()
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)
        if refs:
            self.ray.wait(refs, num_returns=len(refs), timeout=END_SECONDS)
        self.ray.kill(self._mailbox)
        if self._connected:
            self.ray.shutdown()

    def _send(self, attempt: Attempt, out: Future[Played]) -> None:
        key, policy = f"{attempt.id}/{attempt.retry}", self.roles.policy
        task = self.roles.task(attempt.plan.what)
        sampling, files = replace(policy.sampling, seed=attempt.seed), files_of(task)
        self._playing[key] = playing = _Playing(attempt, policy.model.conversation(key), out)
        try:
            playing.ref = self._play.remote(
                __version__, self._mailbox, key, files, task.digest, policy.name, sampling, policy.solver_prompt, policy.budget, self.backend,
                attempt.id, self.roles.progress,
            )  # fmt: skip
        except BaseException:
            self._playing.pop(key)
            policy.model.forget(key)
            raise
        playing.ref.future().add_done_callback(partial(self._landed, key))

    def _landed(self, key: str, there: Future[tuple[Trial, str]]) -> None:
        """On a thread of Ray's own, which must not wait for a disk."""
        with suppress(RuntimeError):  # closed: nobody waits for it any more
            self._landing.submit(self._land, key, there)

    def _land(self, key: str, there: Future[tuple[Trial, str]]) -> None:
        playing = self._playing.pop(key, None)
        if playing is None:  # given up
            return
        try:
            trial, node = there.result()
            self.nodes[node] = self.nodes.get(node, 0) + 1
            result = self.roles.solved(playing.attempt, key, trial)
        except Exception as error:  # the collector counts it as infrastructure's
            playing.out.set_exception(self._lost(error, playing))
        else:
            playing.out.set_result(replace(result, extra={**result.extra, "node": node}))
        finally:
            self.roles.policy.model.forget(key)

    def _lost(self, error: Exception, playing: _Playing) -> Exception:
        """A node's death says which node, so that all that it took along counts as one failure of the cluster's."""
        if not isinstance(error, self.ray.exceptions.NodeDiedError):
            return error
        named = re.search(r"node ID: ([0-9a-f]+)", str(error))
        node = playing.node or (named[1] if named else "unknown")
        return Lost(f"node {node} of the cluster died in the middle of this trial", node)

    def _pull(self) -> None:
        while not self._stopping.is_set():
            try:
                asked = self.ray.get(self._mailbox.take.remote(PULL_SECONDS))
            except Exception as error:  # the trials' own questions fail alike
                self._give_up(f"the mailbox on this machine is gone, so no trial can ask for its answers: {error}")
                self._stopping.wait(LOOK_SECONDS)
                continue
            for question in asked:
                self._answers.submit(self._answer, *question)

    def _watch(self) -> None:
        """Ray lets a trial that no node could play wait for ever, and says nothing."""
        able = time.monotonic()
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                nodes = [n for n in self.ray.nodes() if n["Alive"]]
            except Exception as error:
                self._give_up(f"the cluster is gone: {error}")
                continue
            if not self._playing or any(n["Resources"].get("CPU", 0) >= self.cpus for n in nodes):
                able = time.monotonic()
            elif time.monotonic() - able > self.patience:
                self._give_up(
                    f"no node of the cluster could play a trial for {self.patience:.0f} s: {len(nodes)} live, none with "
                    f"{self.cpus:g} CPUs (`ray status` shows them; `ray start --address HOST:PORT` adds one)"
                )

    def _give_up(self, why: str) -> None:
        for key in list(self._playing):
            playing = self._playing.pop(key, None)
            if playing is not None:  # it has not landed meanwhile
                self.roles.policy.model.forget(key)
                with suppress(Exception):  # an interrupt there: a trial removes its sandbox and ends
                    self.ray.cancel(playing.ref)
                playing.out.set_exception(RuntimeError(why))

    def _answer(self, number: int, key: str, node: str, messages: Sequence[Message], sampling: Sampling) -> None:
        """Whatever happens, an answer goes back: a trial would wait for it for ever."""
        playing = self._playing.get(key)
        try:
            if playing is None:  # its node was taken for dead, and lives
                raise ModelError(f"trial {key} was given up, and is played elsewhere")
            playing.node = node
            reply: Reply | ModelError = playing.conversation.reply(messages, sampling)
        except ModelError as error:
            reply = error
        except Exception as error:
            reply = ModelError(f"the engine failed: {type(error).__name__}: {error}")
        self._mailbox.answer.remote(number, reply)
