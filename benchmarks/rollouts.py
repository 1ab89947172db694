"""Collecting rollouts: how busy they keep an endpoint, how much they gain from running side by side, what is not generation.

python -m benchmarks rollouts        targets: an endpoint stub with 32 concurrent trials busy at least 85 % of the time; collection at least 3 times as
fast as one after the other; with the in-process engine at least 60 % of the tokens/s of generation alone; sandboxes, grading and
bookkeeping under 10 % of a step of SmolLM2; under 100 MB of growth over 200 steps of a tiny policy, and no sandbox left
"""

from __future__ import annotations

import gc
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.timing import small_tasks
from benchmarks.trials import descendants, resident_mb
from workbench.agents import Budget
from workbench.agents.terminal import TerminalAgent
from workbench.models import Reply, Sampling
from workbench.sandboxes import get_backend
from workbench.tasks import Task, load_task
from workbench.training.collect import Collector, CollectSettings, Threads
from workbench.training.groups import Attempt, Plan, Played
from workbench.training.records import Rollout
from workbench.trials.run import run_trial

BUDGET = Budget(turns=4, tokens=4096, seconds=120.0, command_seconds=20.0)


class Endpoint:
    """A model behind a connection: `slots` requests at once, each takes `seconds`; busy while any is in work."""

    name = "stub"

    def __init__(self, seconds: float, slots: int):
        self.seconds, self.calls = seconds, 0
        self._slots, self._lock = threading.Semaphore(slots), threading.Lock()
        self._working, self._since, self.busy = 0, 0.0, 0.0

    def reply(self, messages: Any, sampling: Sampling = Sampling()) -> Reply:
        with self._slots:
            self._enter()
            time.sleep(self.seconds)
            self._leave()
        turn = sum(m["role"] == "assistant" for m in messages) % 4
        return Reply("```bash\n" + ("submit" if turn == 3 else "echo hello > /app/note.txt; ls /app") + "\n```")

    def _enter(self) -> None:
        with self._lock:
            self.calls += 1
            self._working += 1
            if self._working == 1:
                self._since = time.perf_counter()

    def _leave(self) -> None:
        with self._lock:
            self._working -= 1
            if not self._working:
                self.busy += time.perf_counter() - self._since


def endpoint_rows(trials: int = 96, seconds: float = 1.0, slots: int = 8, workers: int = 32) -> list[dict[str, object]]:
    """An endpoint that serves `slots` requests of one second: busy is the share of the time in which it works at all; load the share of its slots in use."""
    backend, rows, took = get_backend("bubblewrap"), [], {}
    with small_tasks(1) as (path,):
        task = load_task(path)
        run_trial(task, TerminalAgent(Endpoint(0, 1), prompt="standard"), backend, budget=BUDGET)
        for side, count in ((workers, trials), (1, 4)):
            endpoint = Endpoint(seconds, slots)
            began = time.perf_counter()
            with ThreadPoolExecutor(side) as threads:
                play = lambda _: run_trial(task, TerminalAgent(endpoint, prompt="standard"), backend, budget=BUDGET)  # noqa: E731, B023
                assert all(t.counts for t in threads.map(play, range(count)))
            took[side] = (time.perf_counter() - began) / count
            load = endpoint.calls * seconds / (slots * took[side] * count)
            rows.append({"what": "endpoint stub", "concurrent": side, "trials": count, "seconds_a_trial": took[side],
                         "busy": endpoint.busy / (took[side] * count), "load": load})  # fmt: skip
    rows.append({"what": "collection against one after the other", "times_as_fast": took[1] / took[workers]})
    return rows


# A few million weights decode so fast that sandboxes take most of any two cores; a hundred million are what a small machine has to wait for.
MICRO = {"policy": "micro:random", "max_tokens": 20, "turns": 4, "groups": 16, "size": 8}
SMALL = {"policy": "smollm2", "max_tokens": 48, "turns": 3, "groups": 8, "size": 8}


def engine_rows(shape: dict[str, Any], workers: int = 32) -> list[dict[str, object]]:
    """Tokens/s of collecting (sandboxes and grades on the same cores) against generating alone: the same calls once more, as many at once, without sandboxes."""
    from workbench.proposer.latent import LatentWorlds
    from workbench.training.policy import open_policy

    values = {"temperature": 1.0, "seconds": 600.0, "command_seconds": 10.0, "seed": 0, "workers": workers, "prompt": "small",
              "generators": ["micro_shelf"], "tiers": ["micro"], **shape}  # fmt: skip
    policy, backend = open_policy(shape["policy"], values), get_backend("bubblewrap")
    policy.model.engine = recorded = _Recorded(policy.model.engine)
    with tempfile.TemporaryDirectory() as folder:
        library = LatentWorlds(generators=["micro_shelf"], tiers=("micro",))
        tasks = [
            load_task(library.compose("micro_shelf", "micro", (), Path(folder) / str(n), draw=n))
            for n in range(shape["groups"])
        ]
        collected, spent = _collect(policy, backend, tasks, workers, shape["size"])
    policy.model.engine.update_weights(policy.network.state_dict())  # which also empties the prefix cache
    alone = _alone(recorded, workers)
    policy.close()
    share = collected["tokens_a_second"] / alone["tokens_a_second"]
    return [{"policy": shape["policy"], **row} for row in (alone, {**collected, "of_alone": share}, spent)]


class _Recorded:
    """An engine that writes down which thread asked it for what."""

    def __init__(self, engine: Any):
        self._engine, self.calls = engine, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def generate(self, prompt: Any, sampling: Sampling = Sampling()) -> Any:
        self.calls.append((threading.get_ident(), prompt, sampling))
        return self._engine.generate(prompt, sampling)


def _alone(recorded: _Recorded, workers: int) -> dict[str, Any]:
    """The calls of each thread in their order, all threads at once."""
    lines: dict[int, list[Any]] = {}
    for thread, *call in recorded.calls:
        lines.setdefault(thread, []).append(call)
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:
        play = lambda calls: sum(len(recorded._engine.generate(*call).ids) for call in calls)  # noqa: E731
        tokens = sum(threads.map(play, lines.values()))
    return {"what": "generation alone", "batch": workers, "tokens": tokens, "tokens_a_second": tokens / (time.perf_counter() - began)}  # fmt: skip


def _collect(
    policy: Any, backend: Any, tasks: list[Task], workers: int, size: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    spent: list[tuple[float, float]] = []

    def play(attempt: Attempt) -> Played:
        task = tasks[int(attempt.plan.what)]
        trial = run_trial(task, policy.solver(attempt.id, attempt.seed), backend, budget=policy.budget, admitted=True)
        segments = tuple(policy.model.segments(attempt.id))
        policy.model.forget(attempt.id)
        spent.append((trial.seconds, sum(t.model_seconds for e in trial.episodes for t in e.turns)))
        return Played(
            Rollout(attempt.id, attempt.plan.name, "solver", segments, attempt.number % 2 * 1.0, outcome=trial.outcome)
        )

    order = iter(range(len(tasks)))
    collector = Collector(
        Threads(play, workers), lambda: Plan(f"g{(n := next(order))}", "solver", str(n), size), CollectSettings(groups=len(tasks), oversample=1.0, cap=len(tasks)),
    )  # fmt: skip
    began = time.perf_counter()
    found = collector.collect(0)
    seconds = time.perf_counter() - began
    collector.executor.close()
    tokens = sum(r.tokens for r in found.rollouts)
    rows = {
        "what": "collection, in-process engine",
        "batch": workers,
        "trials": len(spent),
        "tokens": tokens,
        "tokens_a_second": tokens / seconds,
    }
    return rows, {
        "what": "of a trial's wall clock",
        "waiting_for_the_model": sum(m for _, m in spent) / sum(t for t, _ in spent),
    }


def memory_rows(steps: int = 200) -> list[dict[str, object]]:
    """Steps of a whole flywheel with a tiny model in real sandboxes (the tests' own), collection, updates, checkpoints and all."""
    from tests.training.learning_parts import VALUES, parents, tiny_policy
    from workbench.runs.folder import new_run
    from workbench.training.setup_learning import make_learning

    with tempfile.TemporaryDirectory() as folder:
        run = new_run("40_flywheel", {}, results=Path(folder)).begin()
        values = {
            **VALUES,
            "parents": str(parents(Path(folder) / "p")),
            "learning_rate": 1e-5,
            "steps": steps,
            "arm": "static-pool",
            "group": 6,
            "cap": 40,
        }
        made = make_learning(run, values, policy=tiny_policy())
        made.say = lambda text: None
        made.open()
        for _ in range(20):
            made.step()
        gc.collect()
        before, processes = resident_mb(), descendants()
        for _ in range(steps):
            made.step()
        gc.collect()
        growth, left = resident_mb() - before, descendants() - processes
        made.close()
        made.policy.close()
        run.close()
    return [{"what": f"{steps} steps of a tiny policy", "growth_mb": growth, "processes_left": max(0, left)}]


def small_rows(groups: int = 2, size: int = 8) -> list[dict[str, object]]:
    """A step of SmolLM2-135M: the share of its wall clock in which no trial waits for the model, and nothing is learned."""
    from tests.training.learning_parts import VALUES, parents
    from workbench.runs.folder import new_run
    from workbench.training.policy import open_policy
    from workbench.training.setup_learning import make_learning

    shape = {
        "temperature": 1.0,
        "max_tokens": 48,
        "turns": 3,
        "seconds": 600.0,
        "command_seconds": 10.0,
        "workers": groups * size,
        "prompt": "small",
    }
    with tempfile.TemporaryDirectory() as folder:
        values = {**VALUES, **shape, "parents": str(parents(Path(folder) / "p", 4)), "groups": groups, "group": size, "cap": 2 * groups,
                  "arm": "static-pool", "steps": 1, "learning_rate": 1e-6}  # fmt: skip
        run = new_run("40_flywheel", {}, results=Path(folder)).begin()
        made = make_learning(run, values, policy=open_policy("smollm2", values))
        watched = _Watched(made.policy.model.engine)
        made.policy.model.engine = watched
        made.say = lambda text: None
        made.open()
        began = time.perf_counter()
        row = made.step()
        whole = time.perf_counter() - began
        made.close()
        made.policy.close()
        run.close()
    rest = whole - watched.busy - row["update"]["seconds"]
    return [{"what": "a step of SmolLM2", "seconds": whole, "generating": watched.busy / whole, "learning": row["update"]["seconds"] / whole,
             "rest": rest / whole}]  # fmt: skip


class _Watched:
    """An engine, and how long at least one request was with it."""

    def __init__(self, engine: Any):
        self._engine, self.busy = engine, 0.0
        self._lock, self._working, self._since = threading.Lock(), 0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def generate(self, prompt: Any, sampling: Sampling = Sampling()) -> Any:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._since = time.perf_counter()
        try:
            return self._engine.generate(prompt, sampling)
        finally:
            with self._lock:
                self._working -= 1
                if not self._working:
                    self.busy += time.perf_counter() - self._since


def run() -> list[dict[str, object]]:
    import torch

    torch.set_num_threads(1)
    return [*endpoint_rows(), *engine_rows(MICRO), *engine_rows(SMALL), *memory_rows(), *small_rows()]
