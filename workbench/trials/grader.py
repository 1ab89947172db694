"""One grade: the tests of a step on the files that an agent left, where the agent has no hand.

The grader is a sandbox of its own. It starts from a snapshot of the agent's files without the agent's version of
programs, libraries and start-up files (`trusted_system`), sees the tests read-only, a `/logs/verifier` made anew, and
a clean environment; no process of the agent's lives in it. What a test itself runs (the agent's program, say) does run
beside the verifier: so a process that is still alive shortly after `test.sh` has ended voids the grade, since it could
rewrite the reward (fault "verifier-left-process"; a sound verifier stops what it starts).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, ExecResult, Image, Limits, Sandbox, Snapshot
from workbench.tasks import Task
from workbench.tasks.verifier import MAX_CTRF_BYTES, CtrfError, is_managed, parse_ctrf
from workbench.trials import Grade
from workbench.trials.rewards import MAX_BYTES, TOLERANCE, RewardFault, read_rewards
from workbench.trials.setting import (
    Setting,
    artifacts,
    tests_mount,
    verifier_env,
    verifier_network,
    verifier_user,
)

# A fresh /logs/verifier even where an agent made /logs a link or a file; emptied where it is a mount point.
_FRESH = """[ -L /logs ] || [ ! -d /logs ] && rm -rf /logs
[ -e /logs/verifier ] || [ -L /logs/verifier ] && rm -rf /logs/verifier 2>/dev/null
mkdir -p /logs/verifier || exit 97"""

# Runs the tests as Harbor does (by their own first line when executable), then waits at most 0.3 s for helpers that
# are about to end (`tee` in a process substitution): what is left after that counts as left behind.
_RUN = r"""
cd -- "$1" 2>/dev/null || cd /
before=(/proc/[0-9]*)
before=" ${before[*]} "
if [ -x /tests/test.sh ]; then /tests/test.sh; else /bin/bash /tests/test.sh; fi </dev/null
code=$?
for try in {1..30}; do
  left=
  for process in /proc/[0-9]*; do
    case $before in *" $process "*) continue ;; esac
    read -r stat 2>/dev/null <"$process/stat" || continue
    case ${stat##*) } in Z*) continue ;; esac
    left=1
    break
  done
  [ "$left" ] || break
  sleep 0.01
done
exit $code
"""
_NO_NETWORK = re.compile(
    r"Temporary failure (in name resolution|resolving)|Could not resolve|Name or service not known|Network is unreachable"
    r"|NewConnectionError|getaddrinfo|Failed to establish a new connection|dns error|No matching distribution found"
)
_NO_TESTS = re.compile(r"collected no test|no tests ran|collected 0 items\s*$", re.MULTILINE)
_SHELL = ["/bin/bash", "--noprofile", "--norc", "-c"]
_TAIL = 4000  # characters of the verifier's output kept in a grade's message


def grade(
    task: Task,
    index: int,
    sandbox: Sandbox | None,
    backend: Backend,
    setting: Setting,
    *,
    last: bool = True,
    limits: Limits,
    label: str = "",
) -> Grade:
    """Grade step `index` on the files in `sandbox`; None: on those of the image.

    The caller has stopped the agent's processes (unless the task keeps its services). `last`: nothing runs in `sandbox`
    afterwards, so its files need not be copied. Raises SandboxError when infrastructure failed; a verifier that fails
    comes back as a Grade without a reward and with a fault.
    """
    step, image = task.steps[index], setting.verifier[index]
    with ExitStack() as stack:
        mounts = [] if setting.bundled[index] else [stack.enter_context(tests_mount(task, step))]
        source = image or _files(sandbox, setting, seal=last and not task.keep_services)
        grader = backend.start(
            source,
            limits=limits,
            network=verifier_network(task),
            mounts=mounts,
            trusted_system=image is None,
            verifier=True,
            share_network=sandbox if task.keep_services else None,
            label=label,
        )
        stack.callback(grader.stop)
        notes = _carry(task, sandbox, grader) if image is not None and sandbox is not None else []
        result = _run(task, index, grader)
        return _read(task, index, grader, result, notes)


def _files(sandbox: Sandbox | None, setting: Setting, *, seal: bool) -> Image | Snapshot:
    return setting.agent if sandbox is None else sandbox.snapshot(seal=seal)


def _run(task: Task, index: int, grader: Sandbox) -> ExecResult:
    user = verifier_user(task, index) or grader.image.user or "root"
    script = f"{_FRESH}\n{_RUN}"
    if user not in ("root", "0"):
        made = grader.exec([*_SHELL, f"{_FRESH}\nchmod 0777 /logs/verifier"], cwd="/", user="root", timeout=60)
        if not made.ok:
            return made
        script = _RUN
    return grader.exec(
        [*_SHELL, script, "grade", grader.image.workdir],
        cwd="/",
        env=verifier_env(task, index, grader.image.env),
        user=user,
        timeout=task.steps[index].verifier_timeout,
    )


def _carry(task: Task, sandbox: Sandbox, grader: Sandbox) -> list[str]:
    """Copy the declared artifacts, and nothing else, into a separate verifier. What could not be carried is noted."""
    notes = []
    with tempfile.TemporaryDirectory(prefix=prefix("artifacts")) as temporary:
        for number, path in enumerate(artifacts(task, sandbox.image)):
            local = Path(temporary) / str(number) / Path(path).name
            local.parent.mkdir()
            try:
                sandbox.get(path, local)
                grader.put(local, path)
            except FileNotFoundError:
                if path != "/logs/artifacts":
                    notes.append(f"the artifact {path} was not there")
            except (ValueError, IsADirectoryError, FileExistsError) as error:  # say a file where the image has a folder
                notes.append(f"the artifact {path} was not carried over: {error}")
    return notes


def _read(task: Task, index: int, grader: Sandbox, result: ExecResult, notes: list[str]) -> Grade:
    """A verdict from the end of `test.sh` and the files it wrote; its exit status is ignored when there is a reward."""
    left = grader.kill_all()
    output = result.output
    kept = {"stdout": output, "seconds": result.seconds}

    def fault(kind: str, what: str) -> Grade:
        text = "\n".join([what, *notes, *([f"the verifier's output ended:\n{output[-_TAIL:]}"] if output else [])])
        return Grade(None, tests=tests or {}, fault=kind, message=text, **kept)

    tests, note = _tests(grader)
    notes = [*notes, *([note] if note else [])]
    if result.killed_by == "time":
        return fault("verifier-timeout", f"the verifier was stopped after {result.seconds:.1f} s: it never ended")
    if result.killed_by:
        return fault(f"verifier-{result.killed_by}", f"the verifier was stopped: it used up its {result.killed_by}")
    try:
        rewards = read_rewards(lambda path: grader.read(path, max_bytes=MAX_BYTES))
    except RewardFault as error:
        if error.kind != "reward-missing":
            return fault(error.kind, str(error))
        if tests == {} or _collected_nothing(output):
            return fault("no-tests", "the verifier collected no test: tests/ needs files test_*.py with test functions")
        if task.verifier_network == "no-network" and _NO_NETWORK.search(output):
            text = "the verifier wrote no reward and seems to have wanted the network, which it does not have"
            return fault("verifier-needs-network", f"{text}: put what it installs into the image, or tests/Dockerfile")
        if result.exit_code:
            return fault("verifier-crash", f"the verifier ended with {result.exit_code} and wrote no reward")
        return fault("reward-missing", str(error))
    if left:
        text = f"{left} process(es) still ran after test.sh ended and could rewrite the reward: stop them in test.sh"
        return fault("verifier-left-process", text)
    if tests and is_managed(task.steps[index].tests / "test.sh") and not _agrees(tests, rewards["reward"]):
        text = f"reward.txt says {rewards['reward']:g}, but ctrf.json lists {_count(tests)}: one of them was rewritten"
        return fault("reward-disagree", text)
    if tests == {}:
        return fault("no-tests", "the verifier's ctrf.json lists no test")
    if result.exit_code:
        notes.append(f"test.sh ended with {result.exit_code} after writing a reward (ignored, as in Harbor)")
    return Grade(rewards["reward"], rewards=rewards, tests=tests or {}, message="\n".join(notes), **kept)


def _tests(grader: Sandbox) -> tuple[dict[str, str] | None, str]:
    """Per-test results, None when there is no readable report, and a note when it was unreadable."""
    try:
        return parse_ctrf(grader.read("/logs/verifier/ctrf.json", max_bytes=MAX_CTRF_BYTES)), ""
    except FileNotFoundError:
        return None, ""
    except (ValueError, CtrfError) as error:
        return None, f"ctrf.json was not used: {error}"


def _count(tests: Mapping[str, str]) -> str:
    return f"{sum(status == 'passed' for status in tests.values())} passed of {len(tests)}"


def _agrees(tests: Mapping[str, str], reward: float) -> bool:
    """Our own fraction verifier writes passed / collected and both files; a program that the tests ran may have
    written over one of them."""
    return abs(sum(status == "passed" for status in tests.values()) / len(tests) - reward) <= TOLERANCE


def _collected_nothing(output: str) -> bool:
    return bool(_NO_TESTS.search(output[-_TAIL:]))
