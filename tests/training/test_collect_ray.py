"""Rollouts on a local Ray cluster of two node processes, one of which is killed in the middle: none counts twice, none is lost silently."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from tests.training.learning_parts import VALUES, parents, tiny_policy
from workbench.runs.folder import new_run
from workbench.training.collect_ray import RayExecutor, wait_for_nodes
from workbench.training.setup_learning import make_learning

for name, value in {"RAY_raylet_start_wait_time_s": "300", "RAY_agent_register_timeout_ms": "300000"}.items():
    os.environ.setdefault(name, value)  # its own limits are too short for a busy machine
ray = pytest.importorskip("ray", reason="Ray is an optional dependency: pip install ray")


def ports() -> dict[str, int]:
    """Free ports for a node's own agents: for ports that they choose themselves Ray waits only 15 seconds."""
    names = ("metrics_agent_port", "runtime_env_agent_port", "dashboard_agent_listen_port", "metrics_export_port")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in zip(names, sockets, strict=True)}


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **ports()})
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_node_that_dies_costs_nothing_but_time(tmp_path, cluster):
    other = cluster.add_node(num_cpus=1, **ports())
    run = new_run("40_flywheel", {}, results=tmp_path).begin()
    values = {
        **VALUES,
        "parents": str(parents(tmp_path / "p")),
        "groups": 4,
        "group": 4,
        "cap": 16,
        "steps": 2,
        "proposer_every": 9,
        "retries": 3,
    }
    made = make_learning(
        run,
        values,
        policy=tiny_policy(workers=8),
        executor=lambda roles: RayExecutor(roles, cluster.address, cpus=0.5, workers=8),
    )
    made.say = lambda text: None
    wait_for_nodes(ray, 2)
    made.open()
    made.step()
    executor = made.executor
    assert len(executor.nodes) == 2, "both nodes play"
    killer = threading.Thread(target=lambda: (time.sleep(1.0), cluster.remove_node(other, allow_graceful=False)))
    killer.start()
    made.step()
    killer.join()
    rows = run.rows("rollout")
    updates = run.rows("update")
    assert len(updates) == 2
    groups = [name for row in updates for name in row["collect"]["seen"]]
    assert len(groups) == len(set(groups)), "no group counts twice"
    for name in groups:
        ended = [r["id"] for r in rows if r["group"] == name and r["outcome"] != "infra"]
        assert sorted(ended) == [f"{name}-{i}" for i in range(4)], "each attempt came to one end, whatever died"
    lost = [r for r in rows if r["outcome"] == "infra"]
    assert all(r["why"] for r in lost), "what was lost is written down with its reason"
    assert all(0.0 <= r["reward"] <= 1.0 for r in rows if r["outcome"] == "graded")
    made.close()
    made.policy.close()
    run.close()
