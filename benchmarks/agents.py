"""What coding agents cost beside our terminal agent: seconds of an episode at a scripted endpoint that answers at once.

python -m benchmarks agents        no target: start and turn are the agents' own; printed as ratios to the terminal agent

Each episode runs the same commands in a fresh sandbox. start: seconds of an episode without its turns; turn: seconds that
one more turn takes; both from episodes of two lengths, medians. The relay's part of a turn is measured by itself.
"""

from __future__ import annotations

import socket
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.timing import median_ms
from tests.agents.wire_endpoints import Say, WireEndpoint
from workbench.agents import CODING, Agent, Budget, get_agent
from workbench.agents.coding import chat
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import InstallError, install, package
from workbench.agents.coding.relay import Relay
from workbench.models import get_model
from workbench.sandboxes import Backend, Image, get_backend
from workbench.tasks import Step, Task

SHORT, LONG = 4, 16
_COMMAND = "date >> /app/log; wc -l /app/log"
_TOOLS = {"claude-code": ("Bash", "command"), "codex": ("exec_command", "cmd"), "pi": ("bash", "command")}


def script(name: str, turns: int) -> list[Say]:
    """`turns` model calls: the same command again and again, then the end."""
    if name == "terminal":
        return [Say(f"Again.\n\n```bash\n{_COMMAND}\n```")] * (turns - 1) + [Say("Done.\n\n```bash\nsubmit\n```")]
    tool, argument = _TOOLS[name]
    return [Say("Again.", [(tool, {argument: _COMMAND})])] * (turns - 1) + [Say("Done.")]


def agent(name: str, endpoint: WireEndpoint) -> Agent:
    if name == "terminal":
        model = get_model("litellm:openai/scripted", api_base=f"{endpoint.url}/v1", api_key="none")
        return get_agent("terminal", model)
    return get_agent(name, endpoint=Endpoint(f"{endpoint.url}/v1", "scripted"))


def episode(name: str, turns: int, backend: Backend, image: Image) -> float:
    step = Step("", "Keep a log.", Path("tests"), None)
    with WireEndpoint(*script(name, turns)) as endpoint:
        actor = agent(name, endpoint)
        sandbox = backend.start(image, mounts=getattr(actor, "mounts", ()))
        begun = time.perf_counter()
        done = actor.run(Task(Path(), "bench", (step,), ""), step, sandbox, Budget(seconds=120))
        seconds = time.perf_counter() - begun
        sandbox.stop()
    assert done.submitted, done
    assert len(done.turns) == turns, len(done.turns)
    return seconds


def relay_ms() -> float:
    """One call through the relay, less the same call without it."""
    ask = {"model": "m", "messages": [{"role": "user", "content": "x" * 100_000}], "stream": True}
    with WireEndpoint(Say("Done.")) as endpoint, httpx.Client(trust_env=False) as client:
        target = Endpoint(f"{endpoint.url}/v1", "m")
        relay = Relay(socket.create_server(("127.0.0.1", 0)), chat, target, Budget(turns=10_000, tokens=10**9),
                      time.monotonic() + 600)  # fmt: skip
        port = relay.server.server_address[1]
        through = median_ms(lambda: client.post(f"http://127.0.0.1:{port}/v1{chat.PATH}", json=ask), 50)
        direct = median_ms(lambda: client.post(f"{endpoint.url}/v1{chat.PATH}", json=ask), 50)
        relay.close()
    return through - direct


def run(times: int = 3) -> list[dict[str, object]]:
    try:
        for name in CODING:
            install(package(name))
    except InstallError as error:
        return [{"what": "left out", "why": str(error)}]
    measured: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder, get_backend("bubblewrap") as backend:
        (Path(folder) / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
        image = backend.build(Path(folder))
        for name in ("terminal", *CODING):
            episode(name, SHORT, backend, image)  # warm
            short, long = (
                statistics.median(episode(name, n, backend, image) for _ in range(times)) for n in (SHORT, LONG)
            )
            turn = max((long - short) / (LONG - SHORT), 0.0)
            measured[name] = (max(short - SHORT * turn, 0.0), turn)
    own_start, own_turn = measured["terminal"]
    rows: list[dict[str, object]] = [
        {"what": f"{name}: an episode at an endpoint that answers at once", "start_s": start, "turn_ms": 1000 * turn,
         "turn_to_terminal": turn / own_turn, "episode_of_20_to_terminal": (start + 20 * turn) / (own_start + 20 * own_turn)}
        for name, (start, turn) in measured.items()
    ]  # fmt: skip
    return [*rows, {"what": "the relay's part of one turn (100 kB of messages)", "turn_ms": relay_ms()}]
