"""Claude Code, Codex and Pi as they ship, in real sandboxes, against a scripted endpoint in their own wire format."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from wire_endpoints import Say, WireEndpoint

from workbench.agents import Agent, Budget, get_agent
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import InstallError, install, package
from workbench.models.prices import Price
from workbench.sandboxes import Network, SandboxError, get_backend
from workbench.sandboxes.slots import Slot
from workbench.tasks.load import load
from workbench.tasks.scaffold import scaffold
from workbench.traces.importers.drafts import UnknownEntry
from workbench.traces.reading import open_trace
from workbench.trials.run import run_trial

TASKS = Path(__file__).resolve().parents[2] / "data" / "tasks"
NAMES = ("claude-code", "codex", "pi")
KEY = "sk-the-key-that-no-sandbox-sees"


@pytest.fixture(scope="module")
def backend():
    try:
        with get_backend("bubblewrap") as found:
            yield found
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")


@pytest.fixture(params=NAMES)
def name(request) -> str:
    try:
        install(package(request.param))
    except InstallError as error:
        pytest.skip(f"{request.param} cannot be installed here: {error}")
    return request.param


def run(name: str, command: str) -> tuple[str, dict]:
    """A call of the agent's shell."""
    return {"claude-code": ("Bash", {"command": command}), "codex": ("exec_command", {"cmd": command}),
            "pi": ("bash", {"command": command})}[name]  # fmt: skip


def write(name: str, path: str, content: str) -> tuple[str, dict]:
    """A call of the agent's own tool for files (Codex brings a program for its shell)."""
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"
    return {"claude-code": ("Write", {"file_path": path, "content": content}), "pi": ("write", {"path": path, "content": content}),
            "codex": ("exec_command", {"cmd": f"apply_patch <<'PATCH'\n{patch}\nPATCH"})}[name]  # fmt: skip


def agent(
    name: str, endpoint: WireEndpoint, *, context: int = 200_000, keep_logs: Path | None = None, **options
) -> Agent:
    target = Endpoint(f"{endpoint.url}/v1", "scripted-model", **{"retries": 0, **options})
    return get_agent(name, endpoint=target, context=context, keep_logs=keep_logs)


@pytest.fixture
def sandbox(backend, tmp_path, name):
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
    with WireEndpoint(Say("x")) as nowhere:
        seen = agent(name, nowhere).mounts
    with backend.start(backend.build(environment), mounts=seen) as box:
        yield box


def play(agent: Agent, sandbox, budget: Budget = Budget(seconds=60), words: str = "Do it."):
    task = load(TASKS / "config-merge")
    return agent.run(task, replace(task.steps[0], instruction=words), sandbox, budget)


def test_a_task_is_solved_over_several_turns(name, backend, tmp_path, monkeypatch):
    """Write a file, run it, read the result, finish; graded 1 by the task's own tests. Counted by what passed the relay."""
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    task = load(TASKS / "config-merge")
    solution = (task.steps[0].solution / "solve.sh").read_text()
    script = [
        Say("I write the merge.", [write(name, "/app/merge.sh", solution)]),
        Say(
            "I run it, and look around.",
            [run(name, "bash /app/merge.sh && ls /app; env; cat /var/tmp/coding-agent/* 2>/dev/null")],
        ),
        Say("", [run(name, "head -c 300 /app/merged/*; rm /app/merge.sh")]),
        Say("Everything is merged.", completion_tokens=70),
    ]
    with WireEndpoint(*script) as endpoint:
        solver = agent(name, endpoint, key_env="SCRIPTED_KEY", price=Price(1.0, 10.0), keep_logs=tmp_path / "logs")
        trial = run_trial(task, solver, backend)
    assert (trial.outcome, trial.reward, trial.message) == ("graded", 1.0, "")
    episode = trial.episodes[0]
    assert (episode.submitted, episode.ended_by, episode.agent, episode.model) == (
        True,
        "submit",
        name,
        "scripted-model",
    )
    assert [t.text for t in episode.turns] == [s.text for s in script]
    assert [bool(t.command) for t in episode.turns] == [True, True, True, False]
    assert all(t.observation for t in episode.turns[:3])
    assert episode.instruction == task.steps[0].instruction
    assert episode.system
    assert (trial.prompt_tokens, trial.completion_tokens) == (4000, 220)
    assert trial.usd == pytest.approx((4000 + 10 * 220) / 1e6)
    assert KEY not in repr(trial)
    assert KEY not in json.dumps(endpoint.requests)
    assert KEY in json.dumps(endpoint.headers)
    assert task.steps[0].instruction.strip()[:200] in json.dumps(endpoint.requests[0], ensure_ascii=False).replace(
        "\\n", "\n"
    )
    _same_as_its_own_log(episode, tmp_path / "logs")


def _same_as_its_own_log(episode, folder: Path) -> None:
    """The agent's own session file, read by the importer, tells the same turns."""
    (log,) = [p for p in folder.rglob("*.jsonl") if p.is_file()]
    reading = open_trace(log, redact=False)
    steps = [s for s in reading if not isinstance(s, UnknownEntry) and s.source == "agent" and not s.branch]
    assert reading.info.agent == episode.agent
    assert [s.text for s in steps if s.text] == [t.text for t in episode.turns if t.text]
    calls = [(c.name, c.parsed()) for s in steps for c in s.calls]
    assert calls == [(c["name"], json.loads(c["arguments"])) for t in episode.turns for c in t.extra.get("calls", ())]
    told = [r.text.strip() for s in steps for r in s.results]
    assert told == [t.observation.strip() for t in episode.turns if t.command]


@pytest.mark.slow
def test_as_a_proposer_it_writes_files_with_its_own_tools(name, sandbox):
    task = {
        "task.toml": "[task]\nname = 'a/b'\n",
        "instruction.md": "Write 42.\n",
        "environment/Dockerfile": "FROM python:3.12\n",
    }
    script = [Say("", [write(name, f"/app/env_001/{path}", text)]) for path, text in task.items()]
    with WireEndpoint(*script, Say("The environment is ready.")) as endpoint:
        episode = play(agent(name, endpoint), sandbox, words="Design an environment in /app/env_001.")
    assert episode.submitted
    for path, text in task.items():
        assert sandbox.read(f"/app/env_001/{path}").decode() == text
    assert sandbox.exec("ls -A /opt/workbench").stdout.split() == [name]
    assert sandbox.exec("ls -A /tmp /var/tmp /root").stdout.split() == [
        "/root:",
        "/tmp:",
        "/var/tmp:",
    ]  # nothing of its own is left
    assert sandbox.exec("find / -xdev -newer /app/env_001/task.toml -name '*.jsonl' 2>/dev/null").stdout == ""


def test_too_many_turns(name, sandbox):
    with WireEndpoint(Say("again", [run(name, "date >> /app/log")])) as endpoint:
        episode = play(agent(name, endpoint), sandbox, Budget(turns=3, seconds=60))
    assert (episode.ended_by, episode.submitted, len(episode.turns)) == ("turns", False, 3)
    assert len(endpoint.requests) == 3
    assert all(math.isnan(t.usd) for t in episode.turns)  # nobody stated a price
    assert all(t.observation for t in episode.turns)  # the third command ran: its result came with the refused request
    assert sandbox.exec("wc -l < /app/log").stdout.strip() == "3"


@pytest.mark.slow
def test_malformed_arguments_are_the_models_to_repair(name, sandbox):
    tool, _ = run(name, "")
    script = [
        Say("", [(tool, '{"command": "echo broken > /app/broken')]),
        Say("Again.", [run(name, "echo whole > /app/whole")]),
        Say("Done."),
    ]
    with WireEndpoint(*script) as endpoint:
        episode = play(agent(name, endpoint), sandbox)
    assert episode.submitted
    assert len(episode.turns) == 3
    assert episode.turns[0].extra["calls"][0]["arguments"] == '{"command": "echo broken > /app/broken'
    assert sandbox.exec("ls /app").stdout.split() == ["whole"]


@pytest.mark.slow
@pytest.mark.parametrize("item", [500, "cut"])
def test_an_endpoint_that_fails_is_infrastructure(name, backend, item):
    task = load(TASKS / "config-merge")
    with WireEndpoint(Say("look", [run(name, "ls")]), item) as endpoint:
        trial = run_trial(task, agent(name, endpoint), backend)
    assert (trial.outcome, trial.reward, trial.reason) == ("infra", None, "model")
    assert name in trial.message
    assert len(endpoint.requests) == 2  # the agent asked no more than once again: the host does that


@pytest.mark.slow
def test_an_endpoint_that_is_not_there_is_infrastructure(name, backend):
    with WireEndpoint(Say("x")) as endpoint:
        pass
    trial = run_trial(load(TASKS / "config-merge"), agent(name, endpoint), backend)
    assert (trial.outcome, trial.reason) == ("infra", "model")
    assert "no connection" in trial.message


@pytest.mark.slow
def test_a_reply_that_is_cut_at_its_limit_is_no_submission(name, sandbox):
    with WireEndpoint(Say("I was about to", finish="length")) as endpoint:
        episode = play(agent(name, endpoint), sandbox, Budget(turns=8, seconds=60))
    assert not episode.submitted
    assert episode.ended_by in ("error", "turns")  # Claude Code asks the model to go on, as it does for its users


@pytest.mark.slow
def test_an_endpoint_that_hangs_ends_with_the_time_and_nothing_is_left_running(name, sandbox):
    with WireEndpoint(Say("look", [run(name, "echo begun > /app/begun")]), "hang") as endpoint:
        episode = play(agent(name, endpoint), sandbox, Budget(seconds=6))
    assert (episode.ended_by, episode.submitted) == ("time", False)
    assert len(episode.turns) == 1
    assert "given_up" in episode.turns[0].extra
    assert sandbox.exec("cat /app/begun").stdout == "begun\n"
    assert (
        len([line for line in sandbox.exec("ps -eo comm").stdout.split() if line in ("claude", "codex", "node")]) == 0
    )
    assert not sandbox.exec("test -e /var/tmp/coding-agent").ok


@pytest.mark.slow
def test_a_command_that_does_not_end(name, sandbox):
    with WireEndpoint(Say("wait", [run(name, "sleep 60")]), Say("Done.")) as endpoint:
        episode = play(agent(name, endpoint), sandbox, Budget(seconds=40, command_seconds=2))
    assert episode.submitted
    assert episode.turns[0].command_seconds < 20


@pytest.mark.slow
def test_a_policy_that_ends_its_own_agent_has_not_submitted(name, sandbox):
    kill = "for p in /proc/[0-9]*; do case $(readlink $p/exe) in */opt/workbench/*) kill -9 ${p#/proc/};; esac; done"
    with WireEndpoint(Say("bye", [run(name, kill)])) as endpoint:
        episode = play(agent(name, endpoint), sandbox)
    assert (episode.ended_by, episode.submitted) == ("error", False)
    assert "middle of its work" in episode.error


_FORGED = """import json, sys, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "say that all is done"}], "max_tokens": 5}).encode()
head = {"content-type": "application/json"}
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head), timeout=20).status)
"""


@pytest.mark.slow
def test_a_policy_that_asks_the_model_itself_is_counted_and_marked(backend, tmp_path):
    """It can: the agent is its own process. What it asks counts as its turns, and is marked as no turn of the agent's."""
    name = "pi"
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
    find = "grep -o 'http://127.0.0.1:[0-9]*/v1' /var/tmp/coding-agent/models.json"
    script = [
        Say("", [write(name, "/app/forged.py", _FORGED)]),
        Say("", [run(name, f"python3 forged.py $({find})/chat/completions")]),
        Say("All is done."),
        Say("Done indeed."),
    ]
    with WireEndpoint(*script) as endpoint:
        solver = agent(name, endpoint)
        with backend.start(backend.build(tmp_path), mounts=solver.mounts) as box:
            episode = play(solver, box)
    assert [bool(t.extra.get("detached")) for t in episode.turns] == [False, False, True, False]
    assert episode.turns[2].text == "All is done."


@pytest.mark.slow
def test_the_prompt_no_longer_fits(name, sandbox):
    full = Say(status=400, body="This model's maximum context length is 100 tokens")
    with WireEndpoint(Say("look", [run(name, "ls")]), full) as endpoint:
        episode = play(agent(name, endpoint), sandbox)
    assert episode.ended_by == "context"


@pytest.mark.slow
def test_as_a_user_who_is_not_root(name, backend, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\nRUN useradd -m bob\nWORKDIR /home/bob\nUSER bob\n")
    script = [Say("look", [run(name, "id -un > who; cat who")]), Say("Done.")]
    with WireEndpoint(*script) as endpoint:
        solver = agent(name, endpoint)
        with backend.start(backend.build(tmp_path), mounts=solver.mounts) as box:
            episode = play(solver, box)
            assert episode.submitted, episode
            assert "bob" in episode.turns[0].observation
            assert box.read("/home/bob/who") == b"bob\n"


@pytest.mark.slow
def test_in_a_sandbox_with_a_network_the_model_is_still_asked_directly(name, backend, tmp_path):
    """There the sandbox's variables name a proxy, which leads to no host of this machine."""
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
    with WireEndpoint(Say("look", [run(name, "echo $http_proxy")]), Say("Done.")) as endpoint:
        solver = agent(name, endpoint)
        with backend.start(backend.build(tmp_path), mounts=solver.mounts, network=Network("public")) as box:
            episode = play(solver, box)
    assert episode.submitted
    assert "127.0.0.1:3128" in episode.turns[0].observation


@pytest.mark.slow
def test_each_step_of_a_task_is_a_conversation_of_its_own(name, backend, tmp_path):
    task = scaffold(tmp_path / "task", multi_step=True)
    script = [Say("look", [run(name, "ls -A /var/tmp")]), Say("First done."), Say("Second done.")]
    with WireEndpoint(*script) as endpoint:
        trial = run_trial(task, agent(name, endpoint), backend)
    assert trial.outcome == "graded"
    assert [len(e.turns) for e in trial.episodes] == [2] + [1] * (len(trial.episodes) - 1)
    assert "First done." not in json.dumps(endpoint.requests[2:])


@pytest.mark.slow
def test_several_calls_in_one_reply(name, sandbox):
    calls = [run(name, "echo one > /app/1; echo first"), run(name, "echo two > /app/2; echo second")]
    with WireEndpoint(Say("both", calls), Say("Done.")) as endpoint:
        episode = play(agent(name, endpoint), sandbox)
    assert len(episode.turns) == 2
    assert "first" in episode.turns[0].observation
    assert "second" in episode.turns[0].observation
    assert len(episode.turns[0].extra["calls"]) == 2


@pytest.mark.slow
def test_a_sandbox_without_the_program_says_what_is_missing(name, backend, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\n")
    missing = pytest.raises(SandboxError, match=r"mounts=agent\.mounts")
    with backend.start(backend.build(tmp_path)) as box, WireEndpoint(Say("x")) as endpoint, missing:
        play(agent(name, endpoint), box)


def test_another_sandbox_and_other_hosts_are_out_of_reach(backend, tmp_path):
    """The relay stands in one sandbox's network only; and that network leads nowhere else."""
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\n")
    image = backend.build(tmp_path)
    ask = "import socket; s = socket.create_connection(('127.0.0.1', {}), 3); s.sendall(b'x'); print(s.recv(1))"
    with backend.start(image) as one, backend.start(image) as other, WireEndpoint(Say("x")) as endpoint:
        listening = one.listen()
        port = listening.getsockname()[1]
        assert "refused" in other.exec(["python3", "-c", ask.format(port)]).output
        assert "refused" in one.exec(["python3", "-c", ask.format(endpoint.server.server_port)]).output
        assert one.exec(["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"]).ok
        listening.close()


@pytest.mark.slow
def test_the_program_is_never_copied(name, tmp_path, monkeypatch):
    """Also where the file system cannot show its owners as others: a copy would be 400 MB a sandbox."""
    monkeypatch.setattr(Slot, "shown_tree", lambda self, source: None)
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\n")
    with WireEndpoint(Say("Done.")) as endpoint, get_backend("bubblewrap") as backend:
        solver = agent(name, endpoint)
        with backend.start(backend.build(tmp_path), mounts=solver.mounts) as box:
            assert not (box.folder / "mounts").exists()
            assert play(solver, box).submitted
            assert not box.exec("touch /opt/workbench/*/new").ok


def test_options_that_are_missing_are_named():
    with pytest.raises(ValueError, match="endpoint="):
        get_agent("pi")
    with pytest.raises(ValueError, match="claude-code, codex, pi"):
        get_agent("emacs")
