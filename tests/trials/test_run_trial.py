"""The life of a trial on real sandboxes."""

from __future__ import annotations

import json
import threading

import pytest

from workbench.agents import Budget
from workbench.models import ContextFull, ModelError
from workbench.sandboxes import Limits, SandboxError
from workbench.trials.recheck import recheck, settle
from workbench.trials.run import run_trial

from .small_tasks import TEST_SH, A, B, Commands, Counting, Journal, Raises, make, write

R = "/logs/verifier/reward.txt"


@pytest.mark.parametrize(("commands", "reward"), [((), 0.0), ((A,), 0.5), ((A, B), 1.0)])
def test_the_reward_is_what_the_tests_say(tmp_path, backend, commands, reward):
    trial = run_trial(make(tmp_path / "t"), Commands(*commands), backend)
    assert (trial.outcome, trial.reward, trial.message) == ("graded", reward, "")
    assert trial.passed is (reward == 1.0)
    assert trial.counts
    assert trial.steps[0].stdout == f"right: {int(reward * 2)} of 2\n"
    assert trial.turns == len(commands)
    assert trial.seconds >= trial.agent_seconds + trial.verifier_seconds
    assert trial.backend == "bubblewrap"
    assert trial.stands_for
    assert trial.limits


def test_it_is_written_down_with_its_trace(tmp_path, backend):
    journal = Journal(tmp_path / "run")
    trial = run_trial(make(tmp_path / "t"), Commands(A), backend, run=journal, seed=7, id="mine")
    ((kind, row),) = journal.rows
    assert (kind, row["id"], row["reward"], row["seed"], row["run_id"]) == ("trial", "mine", 0.5, 7, "run-1")
    assert "episodes" not in row
    saved = json.loads((tmp_path / "run" / "traces" / "mine.json").read_text())
    assert saved["episodes"][0]["turns"][0]["command"] == A
    assert saved["steps"][0]["stdout"] == trial.steps[0].stdout


def test_the_sandboxes_are_gone_whatever_happens(tmp_path, backend):
    task = make(tmp_path / "t")
    for agent in (Commands(A), Raises(SandboxError("lost")), Raises(KeyError("bug")), Raises(KeyboardInterrupt())):
        counting = Counting(backend)
        try:
            run_trial(task, agent, counting)
        except KeyboardInterrupt:
            assert isinstance(agent, Raises)
        assert len(counting.stopped) == len(counting.started) >= 1


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (SandboxError("lost"), "infra", "sandbox"),
        (ModelError("server gone"), "infra", "model"),
        (KeyError("bug"), "infra", "unexpected"),
        (ContextFull("full"), "policy", "context"),
    ],
)
def test_errors_of_the_agents_turn(tmp_path, backend, error, outcome, reason):
    trial = run_trial(make(tmp_path / "t"), Raises(error), backend, admitted=True)
    assert (trial.outcome, trial.reason) == (outcome, reason)
    assert trial.reward == (0.0 if outcome == "policy" else None)
    assert trial.ended_by == ("context" if outcome == "policy" else "error")


def test_limits_of_the_agent_are_graded_on_what_it_left(tmp_path, backend):
    task = make(tmp_path / "t")
    for ended_by in ("turns", "tokens", "context", "malformed"):
        trial = run_trial(task, Commands(A, ended_by=ended_by), backend)
        assert (trial.outcome, trial.reward, trial.ended_by, trial.submitted) == ("graded", 0.5, ended_by, False)


def test_running_out_of_time_reads_as_time(tmp_path, backend):
    trial = run_trial(make(tmp_path / "t"), Commands(A, "sleep 60"), backend, budget=Budget(seconds=0.5))
    assert (trial.outcome, trial.reward, trial.ended_by, trial.submitted) == ("graded", 0.5, "time", False)
    assert trial.seconds < 10
    task = make(tmp_path / "short", agent=0.5)
    assert run_trial(task, Commands("sleep 60"), backend).ended_by == "time"


def test_the_agent_sees_neither_tests_nor_solution_nor_the_host(tmp_path, backend, monkeypatch):
    monkeypatch.setenv("A_HOST_SECRET", "very-secret-word")
    look = Commands(
        "ls -A /tests /solution /logs/verifier 2>/dev/null; env; find / -xdev -name 'solve.sh' -not -path '/proc/*'"
    )
    run_trial(make(tmp_path / "t"), look, backend)
    (seen,) = look.outputs
    assert "test.sh" not in seen
    assert "solve.sh" not in seen
    assert "very-secret-word" not in seen
    assert "pytest" not in seen


FORGERIES = {
    "reward before": f"mkdir -p /logs/verifier; echo 1 > {R}; echo '{{\"reward\": 1}}' > /logs/verifier/reward.json",
    "logs is a link": "mkdir -p /app/l/verifier; rm -rf /logs; ln -s /app/l /logs; echo 1 > /app/l/verifier/reward.txt",
    "verifier is a link": "rm -rf /logs/verifier; mkdir -p /app/v /logs; ln -s /app/v /logs/verifier; echo 1 > /app/v/reward.txt",
    "read-only": f"mkdir -p /logs/verifier; echo 1 > {R}; chmod 0555 /logs/verifier {R}",
    "logs is a file": "rm -rf /logs; echo 1 > /logs",
    "tests of its own": f"mkdir -p /tests; printf '#!/bin/bash\\necho 1 > {R}\\n' > /tests/test.sh; chmod +x /tests/test.sh",
    "PATH": f"for d in /usr/local/bin /usr/bin /app; do printf '#!/bin/sh\\necho 1 > {R}\\n' > $d/cat.x && chmod +x $d/cat.x && mv -f $d/cat.x $d/cat; done",
    "start-up files": f"for f in /root/.bashrc /root/.profile /etc/bash.bashrc /etc/profile; do echo 'echo 1 > {R}; exit' > $f; done",
    "background": f"(setsid bash -c \"trap '' TERM; while :; do mkdir -p /logs/verifier; echo 1 > /tmp/r; mv /tmp/r {R}; done\" >/dev/null 2>&1 &)",
    "workdir": "rm -rf /app; ln -s /etc /app",
}


@pytest.mark.parametrize("trick", FORGERIES)
def test_a_forged_reward_has_no_effect(tmp_path, backend, trick):
    trial = run_trial(make(tmp_path / "t"), Commands(FORGERIES[trick], A), backend, admitted=True)
    assert (trial.outcome, trial.reward) == ("graded", 0.5), trial.message


VERIFIERS = {
    "nan": ("echo nan > " + R, "reward-not-finite"),
    "two": ("printf '1\\n0\\n' > " + R, "reward-many-values"),
    "huge": ("head -c 10000000 /dev/zero > " + R, "reward-too-large"),
    "link": ("ln -s /etc/hostname " + R, "reward-not-regular"),
    "folder": ("mkdir " + R, "reward-not-regular"),
    "fifo": ("mkfifo " + R, "reward-not-regular"),
    "nothing": ("true", "reward-missing"),
    "crash": ("exit 3", "verifier-crash"),
    "killed": ("kill -9 $$", "verifier-crash"),
    "no tests": ("echo 'no tests ran in 0.01s'; exit 5", "no-tests"),
    "network": ("echo 'Could not resolve host: packages.example.org'; exit 1", "verifier-needs-network"),
    "child": (f"echo 1 > {R}; setsid sleep 100 >/dev/null 2>&1 &", "verifier-left-process"),
    "hangs": (f"echo 1 > {R}; trap '' TERM; while :; do sleep 1; done", "verifier-timeout"),
    "empty report": (f'echo 1 > {R}; echo \'{{"results": {{"tests": []}}}}\' > /logs/verifier/ctrf.json', "no-tests"),
}


@pytest.mark.parametrize("name", VERIFIERS)
def test_faults_of_the_verifier(tmp_path, backend, name):
    script, fault = VERIFIERS[name]
    task = make(tmp_path / "t", {"tests/test.sh": f"#!/bin/bash\n{script}\n"}, verifier=1.5 if name == "hangs" else 20)
    trial = run_trial(task, Commands(A), backend)
    assert (trial.outcome, trial.reward, trial.reason) == ("task", None, fault), trial.message
    admitted = run_trial(task, Commands(A), backend, admitted=True)
    assert (admitted.outcome, admitted.reward, admitted.reason) == ("policy", 0.0, fault)


def test_helpers_that_are_about_to_end_are_no_leftovers(tmp_path, backend):
    script = f"#!/bin/bash\nexec > >(tee /tmp/log)\n(sleep 0.1) &\necho 0.5 > {R}\n"
    trial = run_trial(make(tmp_path / "t", {"tests/test.sh": script}), Commands(), backend)
    assert (trial.outcome, trial.reward) == ("graded", 0.5), trial.message


def test_an_exit_status_after_a_reward_is_ignored_and_noted(tmp_path, backend):
    task = make(tmp_path / "t", {"tests/test.sh": f"#!/bin/bash\necho 0.25 > {R}\nexit 3\n"})
    trial = run_trial(task, Commands(), backend)
    assert (trial.outcome, trial.reward) == ("graded", 0.25)
    assert "ended with 3" in trial.steps[0].message


def test_the_verifiers_environment_is_clean(tmp_path, backend):
    (tmp_path / "t").mkdir()
    toml = (
        write(tmp_path / "t") / "task.toml"
    ).read_text() + '\n[verifier.env]\nMODE = "strict"\nWHERE = "${HOME:-/srv}"\n'
    dump = f"#!/bin/bash\nenv\npwd\ntouch /tests/x || echo read-only\necho 1 > {R}\n"
    task = make(tmp_path / "t", {"task.toml": toml, "tests/test.sh": dump})
    trial = run_trial(task, Commands("echo 'export PYTHONPATH=/app LD_PRELOAD=/app/x.so' >> /root/.bashrc"), backend)
    out = trial.steps[0].stdout
    names = {line.partition("=")[0] for line in out.splitlines() if "=" in line}
    assert {"MODE", "WHERE", "PATH"} <= names
    assert not {name for name in names if name.startswith(("LD_", "BASH_ENV")) or name == "PYTHONPATH"}
    assert "WHERE=/srv" in out
    assert "/app\n" in out
    assert "read-only" in out


def test_a_task_does_not_see_the_hosts_variables(tmp_path, backend):
    toml = (write(tmp_path / "t") / "task.toml").read_text() + '\n[environment.env]\nKEY = "${HOME}"\n'
    trial = run_trial(make(tmp_path / "t", {"task.toml": toml}), Commands(), backend)
    assert (trial.outcome, trial.reason) == ("task", "host-variable")


def test_faulty_files_and_builds_are_the_tasks(tmp_path, backend):
    trial = run_trial(write(tmp_path / "t", {"instruction.md": None}), Commands(), backend)
    assert (trial.outcome, trial.reason, trial.digest) == ("task", "files", "")
    assert "instruction.md" in trial.message
    task = make(tmp_path / "u", {"environment/Dockerfile": "FROM python:3.13-slim\nRUN echo building; false\n"})
    trial = run_trial(task, Commands(), backend)
    assert (trial.outcome, trial.reason) == ("task", "build")


def test_a_cancelled_trial_says_nothing(tmp_path, backend):
    cancel = threading.Event()
    stop = Commands(A, lambda sandbox: cancel.set())
    trial = run_trial(make(tmp_path / "t"), stop, backend, cancel=cancel)
    assert (trial.outcome, trial.reward, trial.reason) == ("infra", None, "cancelled")


def test_limits_come_from_the_task_and_are_capped(tmp_path, backend):
    toml = (write(tmp_path / "t") / "task.toml").read_text().replace("cpus = 1", "cpus = 64").replace("512", "999999")
    counting = Counting(backend)
    run_trial(make(tmp_path / "t", {"task.toml": toml}), Commands(), counting)
    agent, grader = (options["limits"] for options in counting.started)
    assert (agent.cpus, agent.memory_mb, agent.disk_mb) == (4.0, 8192, 256)
    assert grader == agent
    own = Limits(memory_mb=100)
    counting = Counting(backend)
    run_trial(make(tmp_path / "t"), Commands(), counting, limits=own)
    assert [options["limits"] for options in counting.started] == [own, own]


def test_a_task_that_broke_is_told_from_an_agent_that_broke_the_grader(tmp_path, backend):
    brittle = TEST_SH.replace("n=0\n", "n=0\nset -e; cat /app/hello.txt >/dev/null; set +e\n")
    task = make(tmp_path / "t", {"tests/test.sh": brittle})
    trial = run_trial(task, Commands("rm /app/hello.txt"), backend, admitted=True)
    assert (trial.outcome, trial.reward, trial.reason) == ("policy", 0.0, "verifier-crash")
    found = recheck(task, backend)
    assert found.verdict == "sound", found.message
    assert settle(trial, found) == trial
    broken = make(tmp_path / "u", {"tests/test.sh": "#!/bin/bash\nexit 1\n"})
    trial = run_trial(broken, Commands(A), backend, admitted=True)
    found = recheck(broken, backend)
    assert found.verdict == "broken"
    settled = settle(trial, found)
    assert (settled.outcome, settled.reward) == ("task", None)
    assert "reference solution" in settled.message
