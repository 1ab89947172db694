"""The pool of a flywheel with learning: what comes in, what goes, by the latest rollouts (AutoEnvScaling §3.3, G.1)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.tasks import Task, load_task
from workbench.training.groups import Group, number_of
from workbench.training.learning_roles import loadable
from workbench.training.pool import PoolEntry, near_check, review

if TYPE_CHECKING:
    from workbench.training.learning import Learning


def review_pool(learning: Learning) -> None:
    """Evict what the latest rollouts show to be outside of the band. An environment that was not tried since the last review stays: it
    is the next one to be tried. The last active environments stay whatever they are, so that there is something to collect."""
    state, s = learning.state, learning.settings
    evicted = []
    for entry in state.active:
        step, trials = state.latest.get(entry.id, (0, []))
        rewards = [t.reward for t in trials if t.counts and t.reward is not None]
        if not rewards or step <= state.step - s.review_every:
            continue
        fresh = review(entry, rewards, low=s.low, high=s.high, min_std=s.min_std)
        if fresh.status == "active":
            state.pool[entry.id] = fresh
        else:
            evicted.append(fresh)
    room = len(state.active) - max(1, learning.collecting.groups)  # a step's worth of environments is kept
    evicted.sort(key=lambda e: -abs((e.mean or 0.0) - (s.low + s.high) / 2))  # those farthest outside go first
    for fresh in evicted[: max(0, room)]:
        state.pool[fresh.id] = fresh
        learning.roles.forget(fresh.id)
        learning.run.record("review", {**fresh.to_row(), "step": state.step})
    gone = min(len(evicted), max(0, room))
    learning.say(f"  review: {gone} environments left the band and were evicted, {len(state.active)} active")


def admit_entries(learning: Learning, groups: Iterable[Group], step: int) -> None:
    """Verdicts of a proposer phase to the journal; what was admitted, and is new, to the pool. In the order of their numbers."""
    state, run = learning.state, learning.run
    known = [(e.id, learning.roles.task(e.id)) for e in state.pool.values() if e.status == "active"]
    for group in groups:
        assignment = learning.roles.assignments.pop(group.plan.what)
        for played in group.results:
            if played.rollout.outcome == "infra" or "admission" not in played.extra:
                continue
            row = played.extra["admission"]
            run.record("proposal", {**played.extra["proposal"], "step": step}, id=row["id"])
            run.record("admission", {**row, "step": step}, id=row["id"])
            if not row["admitted"]:
                continue
            path = str(played.extra["path"])
            entry = near_check(
                _entry(row, path, assignment, learning), task := loadable(path), known, learning.settings.too_near
            )
            run.record("standing", entry.to_row())
            if entry.status == "active" and task is not None:
                known.append((entry.id, task))
                learning.roles.places[entry.id] = entry.path
                state.add(entry)


def _entry(row: dict[str, Any], path: str, assignment: Any, learning: Learning) -> PoolEntry:
    return PoolEntry(
        row["id"], learning.run.id, time.time(), learning.state.proposals, row["task"], path, row["digest"], assignment.parent,
        assignment.direction, "active", rewards=tuple(row["rewards"].get("solver", ())), proposer_reward=row["reward"],
    )  # fmt: skip


def entry_of(task: Task, run_id: str, number: int) -> PoolEntry:
    """An environment of the initial pool; the gate has not seen it, its first rollouts and the first review judge it."""
    return PoolEntry(f"w{number:03d}", run_id, time.time(), 0, task.name, str(task.path), task.digest, "", "", "active")


def given_pool(folder: str | Path, run_id: str) -> list[PoolEntry]:
    from workbench.training.evaluate import tasks_of

    return [entry_of(task, run_id, n) for n, task in enumerate(tasks_of(folder))]


def drawn_pool(folder: Path, library: Any, count: int, run_id: str, seed: int) -> list[PoolEntry]:
    """`count` worlds of the library: generators and tiers in turn, corruptions drawn. Written once; equal seeds give equal pools."""
    from workbench.worlds.catalog import get

    rungs = [(g, t) for g in library.generators for t in get(g).spec.tiers if t in library.tiers]
    out: list[Any] = []
    for number in range(count):
        generator, tier = rungs[number % len(rungs)]
        target = folder / f"w{number:03d}"
        if not target.exists():
            kinds = _kinds(library.kinds(generator, tier), number_of(seed, "kinds", number))
            whole(target, lambda t: library.compose(generator, tier, kinds, t, draw=f"pool/{seed}/{number}"))  # noqa: B023
        out.append(entry_of(load_task(target), run_id, number))
    return out


def whole(target: Path, write: Callable[[Path], object]) -> None:
    """A task folder that is whole or not there: written beside, then renamed."""
    beside = target.with_name(f".{target.name}")
    shutil.rmtree(beside, ignore_errors=True)
    write(beside)
    beside.rename(target)


def _kinds(kinds: Sequence[str], drawn: int) -> tuple[str, ...]:
    """A drawn subset of one or more kinds."""
    chosen = [k for i, k in enumerate(kinds) if drawn >> i & 1]
    return tuple(chosen or [kinds[drawn % len(kinds)]])
