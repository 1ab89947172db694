"""Create + `true` + destroy, and exec: our back ends against the bare Docker SDK on the same machine in the same run.

    python -m benchmarks sandboxes        targets: bubblewrap at most 1/10 of the SDK in both

The SDK's side is its plainest use: containers.run(image, "true", remove=True) and exec_run("true") with limits like ours.
"""

from __future__ import annotations

from benchmarks.timing import docker_client, median_ms, small_tasks
from workbench.sandboxes import Backend, Limits, get_backend

LIMITS = Limits(cpus=1, memory_mb=256, disk_mb=64, processes=64)
SDK_LIMITS = {"mem_limit": "256m", "nano_cpus": 10**9, "pids_limit": 64, "network_mode": "none"}


def ours(backend: Backend, times: int) -> dict[str, float]:
    """Milliseconds of one life and of one exec on one of our back ends."""
    with small_tasks(1) as (task,):
        image = backend.build(task / "environment")

        def life() -> None:
            box = backend.start(image, limits=LIMITS)
            box.exec(["true"])
            box.stop()

        life_ms = median_ms(life, times)
        box = backend.start(image, limits=LIMITS)
        exec_ms = median_ms(lambda: box.exec(["true"]), 2 * times)
        box.stop()
    return {"life_ms": life_ms, "exec_ms": exec_ms}


def sdk(client, times: int) -> dict[str, float]:
    """The same with the Docker SDK alone."""
    image = "python:3.12-slim"
    life_ms = median_ms(lambda: client.containers.run(image, "true", remove=True, **SDK_LIMITS), times)
    box = client.containers.run(image, "sleep 600", detach=True, **SDK_LIMITS)
    try:
        exec_ms = median_ms(lambda: box.exec_run("true"), 2 * times)
    finally:
        box.remove(force=True)
    return {"life_ms": life_ms, "exec_ms": exec_ms}


def run(times: int = 25) -> list[dict[str, object]]:
    found = {"bubblewrap": ours(get_backend("bubblewrap"), times)}
    if client := docker_client():
        found["docker SDK"] = sdk(client, times)
        found["docker"] = ours(get_backend("docker"), times)
    rows: list[dict[str, object]] = []
    base = found.get("docker SDK")
    for name, ms in found.items():
        row: dict[str, object] = {"back_end": name, **ms}
        if base and name != "docker SDK":
            row |= {"life_ratio": ms["life_ms"] / base["life_ms"], "exec_ratio": ms["exec_ms"] / base["exec_ms"]}
        rows.append(row)
    return rows
