"""A Ray cluster of this machine: node processes that listen on loopback only, and report to nobody."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from workbench.runs.temporary import start_time

SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # no cluster over machines: every address is 127.0.0.1
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "300000",  # its own limits are too short for a busy machine
}
ATTEMPTS = 4


@contextmanager
def cluster(cpus: float = 1) -> Iterator[Any]:
    """Started with its head; `another` adds nodes."""
    import ray
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, SETTINGS))
        # Ray, had it been imported before, knows its settings already.
        stack.enter_context(mock.patch.object(ray_constants, "ENABLE_RAY_CLUSTER", False))
        for name in ("_private.utils.write_ray_address", "_common.utils.reset_ray_address"):
            stack.enter_context(mock.patch(f"ray.{name}", create=True))  # "auto" goes on to mean the user's own cluster
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
        made = started(lambda: Cluster(initialize_head=True, head_node_args={**node(cpus), "temp_dir": folder}))
        stack.callback(made.shutdown)
        stack.callback(ray.shutdown)
        yield made


def started(start: Callable[[], Any]) -> Any:
    """A node's own agents have 15 seconds to begin, which no setting changes: on a busy machine, try again."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return start()
        except Exception as error:
            if not left or "timed out during startup" not in str(error):
                raise
    raise AssertionError("ATTEMPTS is at least 1")


def another(made: Any, cpus: float = 1) -> Any:
    return started(lambda: made.add_node(**node(cpus)))


def node(cpus: float) -> dict[str, Any]:
    return {"num_cpus": cpus, "include_dashboard": False, "node_ip_address": "127.0.0.1", **ports()}


def ports() -> dict[str, int]:
    """Free ports for a node's own agents: no two nodes of a machine may have the usual ones."""
    names = ("metrics_agent_port", "runtime_env_agent_port", "dashboard_agent_listen_port", "metrics_export_port")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in zip(names, sockets, strict=True)}


def descendants(pid: int) -> set[tuple[int, str]]:
    """(pid, start time) of a process and of all that stem from it."""
    return {(pid, start_time(pid) or "")}.union(*(descendants(child) for child in children(pid)))


def children(pid: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it ended meanwhile
            found += [int(child) for child in thread.read_text().split()]
    return found
