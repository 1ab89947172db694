"""From a task's declarations to what a back end is asked for: images, limits, networks, variables, step inputs."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, Image, Limits, Mount, Network, Sandbox
from workbench.sandboxes.prebuilt import build_named
from workbench.tasks import Step, Task
from workbench.trials.outcomes import TaskFault

# No task gets more than this, whatever it asks for (cpus, MiB): the papers' evaluation size, 4 CPUs and 8 GiB.
MAXIMUM = Limits(cpus=4.0, memory_mb=8192, disk_mb=20_480, processes=512)
TRUSTED_PATH = "/opt/verifier/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Variables by which a loader, a shell or an interpreter is told to run something.
_LOADS_CODE = re.compile(
    r"LD_\w+|PYTHON\w*|PYTEST_\w+|PERL5?(LIB|OPT|DB)|RUBY(LIB|OPT)|NODE_(OPTIONS|PATH)|GIT_\w+|GCONV_PATH|CLASSPATH"
    r"|_JAVA_OPTIONS|J(AVA_TOOL|DK_JAVA)_OPTIONS|BASH_ENV|ENV|GLIBC_TUNABLES|OPENSSL_\w+"
)
_TEMPLATE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Setting:
    """The built images of a task. verifier: one a step, None where the agent's files are graded in place ("shared");
    bundled: whether that verifier image holds the tests itself."""

    agent: Image
    verifier: tuple[Image | None, ...]
    bundled: tuple[bool, ...]


def prepare(task: Task, backend: Backend) -> Setting:
    """Build every image of a task (cached by the back end, so that trials need not wait). Raises BuildError."""
    config = task.config.get("environment") or {}
    agent = _build(task, backend, task.environment, config.get("docker_image"), verifier=False)
    if workdir := config.get("workdir"):  # before the image's own, as in Harbor
        agent = replace(agent, workdir=str(workdir))
    if user := (task.config.get("agent") or {}).get("user"):
        agent = replace(agent, user=str(user))
    choices = [_verifier_image(task, backend, index, agent) for index in range(len(task.steps))]
    return Setting(agent, tuple(image for image, _ in choices), tuple(bundled for _, bundled in choices))


def _verifier_image(task: Task, backend: Backend, index: int, agent: Image) -> tuple[Image | None, bool]:
    """Harbor's order: the step's own definition, the task's, else the agent's environment with the tests added."""
    if not is_separate(task, index):
        return None, False
    for verifier, tests in ((_step(task, index).get("verifier") or {}, task.steps[index].tests),
                            (task.config.get("verifier") or {}, task.path / "tests")):  # fmt: skip
        name = (verifier.get("environment") or {}).get("docker_image")
        if name or (tests / "Dockerfile").is_file():
            return _build(task, backend, tests, name, verifier=True), True
    return agent, False


def is_separate(task: Task, index: int) -> bool:
    """Whether a step is graded in an image of its own; a step's own words come before the task's."""
    verifier = _step(task, index).get("verifier") or {}
    if mode := verifier.get("environment_mode"):
        return str(getattr(mode, "value", mode)) == "separate"
    return bool(verifier.get("environment")) or task.separate


def _build(task: Task, backend: Backend, folder: Path, docker_image: str | None, *, verifier: bool) -> Image:
    if not docker_image:
        return backend.build(folder, verifier=verifier, timeout=task.build_timeout)
    return build_named(backend, docker_image, verifier=verifier, timeout=task.build_timeout)


def agent_limits(task: Task, limits: Limits | None = None) -> Limits:
    """What the task asks for, at most MAXIMUM; or the caller's limits as they are."""
    if limits is not None:
        return limits
    return Limits(
        cpus=min(task.cpus, MAXIMUM.cpus),
        memory_mb=min(task.memory_mb, MAXIMUM.memory_mb),
        disk_mb=min(task.storage_mb, MAXIMUM.disk_mb),
        processes=MAXIMUM.processes,
    )


def agent_network(task: Task) -> Network:
    return Network(task.network, task.allowed_hosts)  # type: ignore[arg-type]


def verifier_network(task: Task) -> Network:
    verifier = task.config.get("verifier") or {}
    return Network(task.verifier_network, tuple(verifier.get("allowed_hosts") or ()))  # type: ignore[arg-type]


def plain_env(variables: Mapping[str, Any] | None, where: str) -> dict[str, str]:
    """Declared variables with `${NAME:-default}` replaced by the default.

    Harbor reads NAME from the host's environment. We never do: a task may come from a policy that would like to see
    the host's keys. `${NAME}` without a default is refused (TaskFault "host-variable")."""

    def default(match: re.Match[str]) -> str:
        if match[2] is None:
            text = f"{where} asks for the host's variable {match[1]}: tasks do not see the host; write a value instead"
            raise TaskFault("host-variable", text)
        return match[2]

    return {key: _TEMPLATE.sub(default, str(value)) for key, value in (variables or {}).items()}


def agent_env(task: Task) -> dict[str, str]:
    return plain_env((task.config.get("environment") or {}).get("env"), "[environment.env]")


def verifier_env(task: Task, index: int, image: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Clean: a trusted PATH, no user packages, no compiled files, and what [verifier.env] says.

    image: the variables of the image that is graded in. Those that name code for a loader, a shell or an interpreter
    are emptied (as good as unset to all of them) unless they lead below /usr only: the agent may write elsewhere."""
    own = _step(task, index).get("verifier") or {}
    return {
        **{name: "" for name, value in image.items() if _LOADS_CODE.fullmatch(name) and not _below_usr(value)},
        "PATH": TRUSTED_PATH,
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **plain_env(task.verifier_env, "[verifier.env]"),
        **plain_env(own.get("env"), f"[steps.{index}.verifier.env]"),
    }


def _below_usr(value: str) -> bool:
    return ".." not in value and all(part.startswith("/usr/") for part in value.split(":"))


def verifier_user(task: Task, index: int) -> str | None:
    for section in (_step(task, index).get("verifier") or {}, task.config.get("verifier") or {}):
        if (user := section.get("user")) is not None:
            return str(user)
    return None


def artifacts(task: Task, image: Image) -> list[str]:
    """Absolute paths that a separate verifier receives: Harbor's `/logs/artifacts`, and what the task declares."""
    base = image.workdir.rstrip("/")
    absolute = [path if path.startswith("/") else f"{base}/{path}" for path in task.artifacts]
    return list(dict.fromkeys(["/logs/artifacts", *absolute]))


def collect_commands(task: Task, index: int) -> list[tuple[str, float]]:
    """[[verifier.collect]] commands of the main service with their time limits in seconds."""
    sections = (task.config.get("verifier") or {}, _step(task, index).get("verifier") or {})
    hooks = [hook for section in sections for hook in section.get("collect") or []]
    return [(h["command"], float(h.get("timeout_sec") or 60)) for h in hooks if h.get("service", "main") == "main"]


@contextmanager
def tests_mount(task: Task, step: Step) -> Iterator[Mount]:
    """The step's tests at /tests, read-only; for a step of several, laid over the task's shared `tests/` (Harbor)."""
    shared = task.path / "tests"
    if step.tests == shared or not shared.is_dir():
        yield Mount(step.tests, "/tests")
        return
    with TemporaryDirectory(prefix=prefix("tests")) as merged:
        for source in (shared, step.tests):
            if source.is_dir():
                shutil.copytree(source, merged, symlinks=True, dirs_exist_ok=True)
        Path(merged).chmod(0o755)
        yield Mount(Path(merged), "/tests")


def enter_step(task: Task, index: int, sandbox: Sandbox) -> None:
    """Harbor's preparation of a step: `steps/<name>/workdir/` is copied in, its `setup.sh` run, health checked."""
    step = task.steps[index]
    if step.name:
        folder = task.path / "steps" / step.name / "workdir"
        if folder.is_dir():
            _put_inputs(folder, sandbox, step.name)
        if (folder / "setup.sh").is_file():
            result = sandbox.exec(["bash", f"{sandbox.image.workdir.rstrip('/')}/setup.sh"], timeout=600)
            if not result.ok:
                text = f"steps/{step.name}/workdir/setup.sh ended with {result.exit_code}: {result.output[-800:]}"
                raise TaskFault("step-setup", text)
    if index == 0:
        _wait_healthy((task.config.get("environment") or {}).get("healthcheck"), sandbox)
    _wait_healthy(_step(task, index).get("healthcheck"), sandbox)


def _put_inputs(folder: Path, sandbox: Sandbox, name: str) -> None:
    """What an earlier step left may stand in the way: a folder of the file's name, a working folder that takes none."""
    try:
        sandbox.put(folder, sandbox.image.workdir)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError, ValueError) as error:
        raise TaskFault("step-setup", f"steps/{name}/workdir could not be copied in: {error}") from error


def _wait_healthy(check: Mapping[str, Any] | None, sandbox: Sandbox) -> None:
    """Docker's rule: failures in the start period are free; then `retries` in a row mean that it is not healthy."""
    if not check:
        return
    begin, failures = time.monotonic(), 0
    while True:
        result = sandbox.exec(check["command"], timeout=float(check.get("timeout_sec") or 30))
        if result.ok:
            return
        starting = time.monotonic() - begin < float(check.get("start_period_sec") or 0)
        failures += not starting
        if failures >= int(check.get("retries") or 3):
            text = f"the health check {check['command']!r} failed {failures} times: {result.output[-800:]}"
            raise TaskFault("unhealthy", text)
        time.sleep(float(check.get("start_interval_sec" if starting else "interval_sec") or 5))


def _step(task: Task, index: int) -> Mapping[str, Any]:
    steps = task.config.get("steps") or []
    return steps[index] if index < len(steps) else {}
