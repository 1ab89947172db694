"""Many trials side by side: order kept, one failure stops nothing, broken infrastructure stops everything, loudly."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents import Agent, Budget
from workbench.sandboxes import Backend, Image, Limits, Sandbox, Snapshot
from workbench.tasks import Task
from workbench.trials import Trial
from workbench.trials.outcomes import Cancelled
from workbench.trials.run import Recorder, run_trial

RETRIES = 2  # of a trial that infrastructure ended; every attempt is recorded
WINDOW = 10  # attempts over which the share of infrastructure failures is watched
NOT_RETRIED = ("cancelled", "spending-cap")  # a second attempt could only say the same


@dataclass(frozen=True)
class Job:
    """What `run_trial` needs for one trial. task may be a folder; one agent object may serve several jobs. id: the trial's,
    by which a run that was killed finds it again. progress: grade Phi after each turn."""

    task: Task | str | Path
    agent: Agent
    backend: Backend
    budget: Budget = Budget()
    limits: Limits | None = None
    admitted: bool = False
    seed: int | None = None
    id: str | None = None
    progress: bool = True


class InfraBroken(RuntimeError):
    """Too many trials ended by infrastructure; the rest was not run. trials: what there is, None for jobs without."""

    def __init__(self, message: str, trials: list[Trial | None]):
        super().__init__(message)
        self.trials = trials


def run_trials(
    jobs: Sequence[Job],
    *,
    workers: int = 2,
    on_trial: Callable[[Trial], None] | None = None,
    run: Recorder | None = None,
    retries: int = RETRIES,
    stop_after_infra: float = 0.5,
    cancel: threading.Event | None = None,
) -> list[Trial]:
    """Run all jobs on `workers` threads; trials come back in the order of `jobs`.

    on_trial: called after every attempt, one call at a time. retries: further attempts for a trial that ended as
    `infra`, and for no other outcome; the list holds the last attempt, journal and on_trial get each.
    stop_after_infra: when more than this share of the last 10 attempts were infrastructure failures, nothing new is
    started and InfraBroken says what failed (1.0: never). cancel: set it to stop soon; trials not run are `infra`.
    An interrupt removes the living sandboxes at once and passes through.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    batch = _Batch(on_trial, run, retries, stop_after_infra, cancel or threading.Event())
    with ThreadPoolExecutor(workers, thread_name_prefix="trial") as pool:
        futures = [pool.submit(batch.run, job) for job in jobs]
        try:
            trials = _collect(futures)
        except BaseException:
            batch.watch.abort()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if batch.broken:
        raise InfraBroken(batch.broken, trials)
    return trials  # type: ignore[return-value]  # None only when broken


def _collect(futures: Sequence[Future[Trial | None]]) -> list[Trial | None]:
    return [future.result() for future in futures]


class _Batch:
    def __init__(
        self,
        on_trial: Callable[[Trial], None] | None,
        run: Recorder | None,
        retries: int,
        share: float,
        cancel: threading.Event,
    ):
        self.on_trial, self.run_record, self.retries, self.share, self.cancel = on_trial, run, retries, share, cancel
        self.recent: deque[bool] = deque(maxlen=WINDOW)
        self.broken = ""
        self.lock = threading.Lock()
        self.watch = Watch(cancel)

    def run(self, job: Job) -> Trial | None:
        for attempt in range(self.retries + 1):
            if self.broken:
                return None
            trial = self.attempt(job)
            self.note(trial)
            if trial.outcome != "infra" or trial.reason in NOT_RETRIED or attempt == self.retries:
                return trial
            self.cancel.wait(0.1 * 2**attempt)  # a moment for what failed to recover
        raise AssertionError("unreachable: the last attempt returns")

    def attempt(self, job: Job) -> Trial:
        with self.watch.over(job.backend) as backend:
            return run_trial(
                job.task,
                job.agent,
                backend,
                budget=job.budget,
                limits=job.limits,
                admitted=job.admitted,
                run=self.run_record,
                seed=job.seed,
                cancel=self.cancel,
                id=job.id,
                progress=job.progress,
            )

    def note(self, trial: Trial) -> None:
        with self.lock:
            if trial.reason != "cancelled":
                self.recent.append(trial.outcome == "infra")
            failures = sum(self.recent)
            if len(self.recent) == WINDOW and failures > self.share * WINDOW and not self.broken:
                self.broken = (
                    f"{failures} of the last {WINDOW} trials were ended by infrastructure, so no more were started. "
                    f"The latest: {trial.reason}: {trial.message[:500]}. Repair that, then run the rest again"
                )
            if self.on_trial is not None:
                self.on_trial(trial)


class Watch:
    """Knows the living sandboxes of work on many threads, so that an interrupt can remove them at once."""

    def __init__(self, cancel: threading.Event):
        self.cancel = cancel
        self._lock = threading.Lock()
        self._backends: set[_Watched] = set()

    @contextmanager
    def over(self, backend: Backend) -> Iterator[Backend]:
        """`backend`, watched while the block lasts."""
        watched = _Watched(backend, self.cancel)
        with self._lock:
            self._backends.add(watched)
        try:
            yield watched  # type: ignore[misc]  # every other attribute is the back end's own
        finally:
            with self._lock:
                self._backends.discard(watched)

    def abort(self) -> None:
        """Stop soon: no new phase, and the commands that run now end with their sandboxes."""
        self.cancel.set()
        with self._lock:
            living = [sandbox for backend in self._backends for sandbox in backend.sandboxes]
        for sandbox in living:
            sandbox.stop()


class _Watched:
    def __init__(self, backend: Backend, cancel: threading.Event):
        self._backend, self._cancel = backend, cancel
        self.name = backend.name
        self.sandboxes: list[Sandbox] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._backend, name)

    def start(self, image: Image | Snapshot, **options: Any) -> Sandbox:
        if self._cancel.is_set():
            raise Cancelled("the run was asked to stop")
        sandbox = self._backend.start(image, **options)
        self.sandboxes.append(sandbox)
        return sandbox
