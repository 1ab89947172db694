"""Rollouts on a local Ray cluster whose node and worker processes are killed in the middle: none counts twice, none is lost silently."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tests.training.learning_parts import VALUES, parents, tiny_policy
from tests.training.ray_cluster import another, children, cluster, descendants
from workbench.runs.folder import new_run
from workbench.runs.temporary import start_time, sweep_temporary
from workbench.sandboxes import leftovers, state_dir
from workbench.sandboxes.layers import Host
from workbench.training.collect_ray import RayExecutor, connect
from workbench.training.groups import Plan
from workbench.training.setup import play
from workbench.training.setup_learning import make_learning

ray = pytest.importorskip("ray", reason="Ray is optional: pip install 'terminal-env-workbench[cluster]'")
pytestmark = pytest.mark.timeout(600)


class Held(RayExecutor):
    """Lets a node's trials wait for an answer, so that what is killed is surely in the middle of one."""

    held, asked, go = "", threading.Event(), threading.Event()

    def hold(self, node_id: str) -> None:
        self.held, self.asked, self.go = node_id, threading.Event(), threading.Event()

    def _answer(self, number, key, node_id, messages, sampling):
        if node_id == self.held:
            self.asked.set()
            self.go.wait(120)
        super()._answer(number, key, node_id, messages, sampling)


@pytest.fixture(scope="module")
def made():
    """Two nodes, the head and another."""
    with cluster(1) as started:
        started.other = another(started)
        yield started


def learning(folder: Path, address: str, **options):
    run = new_run("40_flywheel", {}, results=folder).begin()
    values = {
        **VALUES, "parents": str(parents(folder / "p")), "groups": 2, "group": 4, "cap": 12, "steps": 2, "proposer_every": 9, "retries": 3,
        "review_every": 0,
    }  # fmt: skip
    made = make_learning(
        run, values, policy=tiny_policy(workers=8), executor=lambda roles: Held(roles, address, cpus=0.5, workers=8, **options)
    )  # fmt: skip
    made.say = lambda text: None
    return made


def raylet(of) -> int:
    return of.all_processes["raylet"][0].process.pid


def end(killed: set[tuple[int, str]], seconds: float = 60.0) -> None:
    """Nothing of what was killed lives on, and `workbench clean` finds its folders (without it, the next trial's worker does some)."""
    deadline = time.monotonic() + seconds
    while left := {process for process in killed if start_time(process[0]) == process[1]}:
        assert time.monotonic() < deadline, f"these outlived their node: {left}"
        time.sleep(0.2)
    temporary = Path(tempfile.gettempdir())
    folders = [f for pid, start in killed for f in temporary.glob(f"workbench-*-{pid}.{start}.*")]
    assert folders, "a trial that is killed leaves the folder of its task"
    host = Host.open(state_dir())
    leftovers.clean(host)
    host.close()
    sweep_temporary()
    folders += [state_dir() / "hosts" / f"{pid}-{start}" for pid, start in killed]
    assert not [f for f in folders if f.exists()]


def check(run, steps: int) -> list[dict]:
    """Every group once, every attempt with one end; the rows of what was lost."""
    rows, updates = run.rows("rollout"), run.rows("update")
    assert len(updates) == steps
    groups = [name for row in updates for name in row["collect"]["seen"]]
    assert groups
    assert len(groups) == len(set(groups)), "no group counts twice"
    for name in groups:
        ended = [r["id"] for r in rows if r["group"] == name and r["outcome"] != "infra"]
        assert sorted(ended) == [f"{name}-{i}" for i in range(4)], "each attempt came to one end, whatever died"
    assert all(0.0 <= r["reward"] <= 1.0 for r in rows if r["outcome"] == "graded")
    lost = [r for r in rows if r["outcome"] == "infra"]
    assert all(r["why"] for r in lost), "what was lost is written down with its reason"
    return lost


def test_what_dies_in_the_middle_is_played_again(tmp_path, made):
    flywheel = learning(tmp_path, made.address)
    executor, run, head, other = flywheel.executor, flywheel.run, made.head_node, made.other
    flywheel.open()
    flywheel.step()
    assert set(executor.nodes) == {head.node_id, other.node_id}, "both nodes play"
    assert not check(run, 1)
    assert {r["node"] for r in run.rows("rollout")} == set(executor.nodes)

    executor.hold(other.node_id)
    stepping = Stepping(flywheel)
    assert executor.asked.wait(120)
    killed = descendants(raylet(other))
    made.remove_node(other, allow_graceful=False)
    executor.go.set()
    stepping.end()  # on the head, the only node that is left
    lost = check(run, 2)
    assert lost
    assert all(f"node {other.node_id} of the cluster died" in r["why"] for r in lost)
    end(killed)

    executor.hold(head.node_id)
    stepping = Stepping(flywheel)
    assert executor.asked.wait(120)
    playing = [pid for pid in children(raylet(head)) if title(pid).startswith(b"ray::play_there") and task_folders(pid)]
    killed = descendants(playing[0])
    os.kill(playing[0], signal.SIGKILL)
    executor.go.set()
    stepping.end()
    fresh = check(run, 3)[len(lost) :]
    assert [r["why"].split(":")[0] for r in fresh] == ["WorkerCrashedError"], "one trial was lost, once"
    end(killed)

    attempt = Plan("last", "solver", flywheel.state.active[0].id, 1).attempts(0)[0]
    wide = RayExecutor(flywheel.roles, made.address, cpus=64, patience=1.0)
    with pytest.raises(
        RuntimeError,
        match=r"no node of the cluster could play a trial for 1 s: [12] live, none with 64 CPUs",  # Ray may not have missed the dead one yet
    ):
        wide.submit(attempt).result(60)
    wide.close()

    executor.hold(head.node_id)
    future = executor.submit(attempt)
    assert executor.asked.wait(120)
    executor.go.set()
    flywheel.close()
    assert future.done(), "nobody waits for a trial of a closed run"
    assert not ray.is_initialized()
    flywheel.policy.close()
    run.close()


def task_folders(pid: int) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"workbench-task-{pid}.*"))


def title(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


class Stepping(threading.Thread):
    """A step of the flywheel on a thread of its own."""

    def __init__(self, flywheel):
        super().__init__()
        self.flywheel, self.error = flywheel, None
        self.start()

    def run(self):
        try:
            self.flywheel.step()
        except Exception as error:
            self.error = error

    def end(self):
        self.join(300)
        assert not self.is_alive(), "the step ended"
        if self.error:
            raise self.error


@pytest.mark.parametrize("address", ["local", "ray://127.0.0.1:10001", "127.0.0.1", ":6379", "somewhere:port"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="give auto, or HOST:PORT"):
        connect(address)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'terminal-env-workbench\[cluster\]', on every node"):
        connect("auto")


def test_a_round_without_learning_refuses_a_cluster():
    with pytest.raises(ValueError, match="leave ray empty"):
        play(None, {"learn": False, "ray": "auto"})


def test_no_cluster_there_says_what_to_start():
    with pytest.raises(ConnectionError, match=r"nothing answers at 127\.0\.0\.1:1 .*ray start --head --port 1"):
        connect("127.0.0.1:1")
