"""Validating 12 small tasks (reference solution and no-op, once each): ours against Harbor with Docker, same concurrency.

    python -m benchmarks validation        targets: bubblewrap at least 40 times Harbor's tasks a minute, docker at least 5 times

Harbor runs `harbor run -a oracle` and `-a nop` on copies of the tasks whose compose file sets `stop_grace_period: 0s`, because
by default 10 s of each of its trials is waiting for a stop; its images are built in a first run that does not count. Its
network is left public, since its no-network mode needs images that cannot be fetched everywhere; ours has none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import docker_client, small_tasks
from workbench.admission.admit import admit_many
from workbench.sandboxes import Backend, get_backend

COMPOSE = "services:\n  main:\n    stop_grace_period: 0s\n"


def ours(backend: Backend, tasks: list[Path], workers: int) -> float:
    """Tasks a minute; every verdict is checked."""
    admit_many(tasks, backend, workers=workers, repeats=1)  # images are built before, as Harbor's are
    start = time.perf_counter()
    found = admit_many(tasks, backend, workers=workers, repeats=1)
    seconds = time.perf_counter() - start
    bad = [a for a in found if not a.validated]
    if bad:
        raise RuntimeError(f"{len(bad)} of {len(found)} were not validated: {bad[0].reasons}")
    return 60 * len(tasks) / seconds


def harbor_copies(tasks: list[Path], folder: Path) -> None:
    for task in tasks:
        copy = folder / task.name
        shutil.copytree(task, copy)
        (copy / "environment/docker-compose.yaml").write_text(COMPOSE)
        toml = (copy / "task.toml").read_text().replace('network_mode = "no-network"\n', "")
        (copy / "task.toml").write_text(toml)


def harbor_once(tasks: Path, agent: str, jobs: Path, workers: int) -> None:
    env = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    harbor = Path(sys.executable).with_name("harbor")
    command = [harbor, "run", "-p", tasks, "-a", agent, "-e", "docker", "-n", str(workers), "-o", jobs]
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"harbor run failed: {done.stderr[-800:] or done.stdout[-800:]}")


def harbor(tasks: list[Path], workers: int) -> float:
    """Tasks a minute of Harbor itself: both runs together are one validation of every task."""
    folder = Path(tempfile.mkdtemp(prefix="bench-harbor-"))
    try:
        harbor_copies(tasks, folder / "tasks")
        harbor_once(folder / "tasks", "nop", folder / "warm", workers)
        start = time.perf_counter()
        harbor_once(folder / "tasks", "oracle", folder / "oracle", workers)
        harbor_once(folder / "tasks", "nop", folder / "nop", workers)
        return 60 * len(tasks) / (time.perf_counter() - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(count: int = 12, workers: int = 4) -> list[dict[str, object]]:
    with small_tasks(count) as tasks:
        rates = {"bubblewrap": ours(get_backend("bubblewrap"), tasks, workers)}
        if docker_client():
            rates["docker"] = ours(get_backend("docker"), tasks, workers)
            rates["harbor with docker"] = harbor(tasks, workers)
    base = rates.get("harbor with docker")
    return [
        {"runner": name, "tasks_a_minute": rate, **({"times_harbor": rate / base} if base else {})}
        for name, rate in rates.items()
    ]
