"""Each coding agent as a designer of environments: the harness method with its workspace and the host's tools."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from wire_endpoints import Say, WireEndpoint

from workbench.agents import get_agent
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import InstallError, install, package
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.tools import Toolbox
from workbench.sandboxes import Network, SandboxError, get_backend
from workbench.tasks import load_task

pytestmark = pytest.mark.slow
_SHELLS = {"claude-code": ("Bash", "command"), "codex": ("exec_command", "cmd"), "pi": ("bash", "command")}


@pytest.fixture(scope="module")
def backend():
    try:
        with get_backend("bubblewrap", build_network=Network("no-network")) as found:
            yield found
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")


@pytest.fixture
def parts(monkeypatch):
    """The environment that the harness's own tests design."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).resolve().parents[1])])
    return importlib.import_module("proposer.harness_parts")


@pytest.mark.parametrize("name", _SHELLS)
def test_it_writes_an_environment_validates_it_and_stops(name, backend, parts, tmp_path):
    try:
        install(package(name))
    except InstallError as error:
        pytest.skip(f"{name} cannot be installed here: {error}")
    tool, argument = _SHELLS[name]
    commands = ["cat assignment.md; ls", parts.SOUND, f"{parts.TOOL}validate.py {parts.ENV} oracle",
                f"{parts.TOOL}validate.py {parts.ENV} noop"]  # fmt: skip
    script = [Say(f"Step {n}.", [(tool, {argument: command})]) for n, command in enumerate(commands)]
    with WireEndpoint(*script, Say("It is ready.")) as endpoint:
        agent = get_agent(name, endpoint=Endpoint(f"{endpoint.url}/v1", "scripted"))
        proposer = HarnessProposer(agent, backend=backend, toolbox=Toolbox(backend), store=tmp_path / "store")
        proposal = proposer.propose(parts.assignment(), tmp_path / "new", seed=1)
        proposer.close()
    episode = proposal.episode
    assert (episode.ended_by, episode.agent, len(episode.turns)) == ("submit", name, 5)
    assert "Build a harder variant" in episode.turns[0].observation
    assert "reward=1 (oracle; wanted exactly 1): OK" in episode.turns[2].observation
    assert "reward=0 (noop; wanted below 0.5): OK" in episode.turns[3].observation
    assert proposal.tools["validated"] == {"oracle": True, "noop": True}
    assert proposal.violations == ()
    assert load_task(proposal.path).name == "scripted/orders"
