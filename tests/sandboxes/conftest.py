"""Fixtures of the sandboxes' tests: back ends by name, one image and one shared sandbox a class."""

from __future__ import annotations

import functools
import shutil
import subprocess

import pytest

from workbench.sandboxes import Network, SandboxError, get_backend

from .conformance import make_environment


@functools.cache
def docker_problem() -> str:
    """Why no Docker engine can be used here, "" when one answers with the images that the tests build from."""
    try:
        client = get_backend("docker")._client
    except SandboxError as error:
        return str(error)
    names = {tag for image in client.images.list() for tag in image.tags}
    if "python:3.13-slim" not in names:
        return "the Docker engine lacks python:3.13-slim (scripts/docker_engine.sh start makes it)"
    return ""


@functools.cache
def compose_problem() -> str:
    """Why Harbor's own docker environment cannot be used here."""
    if docker_problem():
        return docker_problem()
    if not shutil.which("docker"):
        return "the docker command is not installed"
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        return "Harbor's docker environment needs docker compose v2, which is not installed"
    return ""


def problem(spec: str) -> str:
    if spec == "docker":
        return docker_problem()
    if spec == "harbor:docker":
        return compose_problem()
    return ""


@functools.cache
def open_backend(spec: str):
    return get_backend(spec)


@pytest.fixture(scope="class")
def backend(request):
    spec = request.cls.spec
    if reason := problem(spec):
        pytest.skip(reason)
    return open_backend(spec)


@pytest.fixture(scope="class")
def image(backend, tmp_path_factory):
    return backend.build(make_environment(tmp_path_factory.mktemp("environment")))


def usual_network(backend) -> Network:
    """None, or a public one where a back end truthfully has no other (Harbor's docker without a registry)."""
    networks = backend.capabilities().networks
    return Network("no-network" if "no-network" in networks else networks[0])


@pytest.fixture(scope="class")
def shared(backend, image):
    """One sandbox for tests that only add files of their own."""
    sandbox = backend.start(image, network=usual_network(backend))
    yield sandbox
    sandbox.stop()


@pytest.fixture
def start(backend, image):
    """Starts sandboxes (of the class's image unless another is given) and stops them after the test."""
    started = []

    def begin(source=None, **options):
        if "share_network" not in options:
            options.setdefault("network", usual_network(backend))
        sandbox = backend.start(source or image, **options)
        started.append(sandbox)
        return sandbox

    yield begin
    for sandbox in reversed(started):
        sandbox.stop()


@pytest.fixture
def box(start):
    return start()
