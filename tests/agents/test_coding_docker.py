"""The host's socket in a container's network, and a coding agent that it serves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from wire_endpoints import Say, WireEndpoint

from workbench.agents import Budget, get_agent
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import InstallError, install, package
from workbench.sandboxes import SandboxError, get_backend
from workbench.sandboxes.docker_listen import listen_in
from workbench.tasks import Step, Task


@pytest.fixture
def process():
    """A process in a network of its own, with a loopback that is down, as a container without a network has it."""
    started = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo in; exec sleep 60"], stdout=subprocess.PIPE)
    if started.stdout.readline() != b"in\n":
        pytest.skip("this user may not make a network namespace")
    yield started
    started.kill()
    started.wait()


def test_a_socket_in_another_network_is_reached_there_and_nowhere_else(process):
    with listen_in(process.pid, lambda pid: True) as listening:
        port = listening.getsockname()[1]
        ask = ["python3", "-c", f"import socket; print(socket.create_connection(('127.0.0.1', {port}), 5).recv(9))"]
        inside = subprocess.Popen(["nsenter", f"--net=/proc/{process.pid}/ns/net", *ask], stdout=subprocess.PIPE)
        listening.settimeout(10)
        client, _ = listening.accept()
        client.sendall(b"hello")
        client.close()
        assert inside.communicate()[0] == b"b'hello'\n"
        assert b"refused" in subprocess.run(ask, capture_output=True, check=False).stderr


def test_a_process_that_is_another_one_by_now_is_left_alone(process):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SandboxError, match="gone"):
        listen_in(process.pid, lambda pid: False)
    with pytest.raises(SandboxError, match="cannot be entered"):
        listen_in(2**22 + 1, lambda pid: True)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.docker
@pytest.mark.slow
def test_an_agent_in_a_container(tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM python:3.13-slim\nWORKDIR /app\n")
    try:
        backend = get_backend("docker")
        image = backend.build(tmp_path)
        install(package("pi"))
    except InstallError as error:
        pytest.skip(str(error))
    except Exception as error:  # no engine, or not this image
        pytest.skip(f"no Docker engine here: {error}")
    step = Step("", "Do it.", Path("tests"), None)
    with WireEndpoint(Say("look", [("bash", {"command": "echo hi > a; cat a"})]), Say("Done.")) as endpoint:
        agent = get_agent("pi", endpoint=Endpoint(f"{endpoint.url}/v1", "scripted"))
        box = backend.start(image, mounts=agent.mounts)
        try:
            episode = agent.run(Task(tmp_path, "t", (step,), "x"), step, box, Budget(seconds=60))
        finally:
            box.stop()
    assert episode.submitted
    assert episode.turns[0].observation.strip() == "hi"
