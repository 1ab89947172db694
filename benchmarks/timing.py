"""What the benchmarks share: medians, Docker's presence, and small tasks to work on."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.proposer.program import draw, write_task


def median_ms(action: Callable[[], object], times: int, warm: int = 2) -> float:
    """Median wall clock of `action` in milliseconds, after `warm` calls that do not count."""
    for _ in range(warm):
        action()
    return 1000 * statistics.median(_one(action) for _ in range(times))


def _one(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def docker_client():
    """A client of a running engine, or None."""
    try:
        import docker

        client = docker.from_env()
        client.ping()
        return client
    except Exception:
        return None


@contextmanager
def small_tasks(count: int) -> Iterator[list[Path]]:
    """`count` program tasks of mixed rungs with plain-script graders, in a folder that goes away."""
    folder = Path(tempfile.mkdtemp(prefix="bench-tasks-"))
    try:
        for n in range(count):
            write_task(draw(n % 8, 100 + n), folder / f"task-{n:02d}", f"task-{n:02d}")
        yield sorted(folder.iterdir())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
