"""Where commands run. A back end turns a task's `environment/` into an image and starts sandboxes from it.

Here belongs everything that isolates, limits, snapshots and removes; nothing that knows what a reward is.
Three back ends implement the Protocols below: `bubblewrap` (default), `docker`, `harbor`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

NetworkMode = Literal["no-network", "public", "allowlist"]

# What an agent changed below these paths never takes part in grading (start(..., trusted_system=True)):
# programs, libraries, the loader's and the interpreters' configuration, shell start-up files.
SYSTEM_PATHS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/verifier",
    "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.cache",
    "/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/environment", "/etc/python3",
    "/etc/pip.conf", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/nsswitch.conf", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/pam.d", "/etc/alternatives", "/etc/perl", "/etc/ssl/openssl.cnf",
    "/etc/resolv.conf", "/etc/hosts", "/root/.local", "/root/.config", "/root/.bashrc", "/root/.profile",
    "/root/.bash_profile", "/root/.pytest.ini", "/tests", "/solution", "/logs/verifier",
    # pytest takes configuration, and code, from the folders above /tests
    "/conftest.py", "/pytest.ini", "/.pytest.ini", "/pytest.toml", "/.pytest.toml", "/tox.ini", "/setup.cfg",
    "/setup.py", "/pyproject.toml", "/__init__.py",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use.

    cpus: cores (a fraction is allowed). memory_mb, disk_mb: MiB; disk counts what the sandbox writes.
    processes: processes and threads alive at once. output_bytes: kept of each of stdout and stderr of
    one command (the head and the tail; the rest is counted and dropped, never stored).
    command_seconds: default wall clock of one exec.
    """

    cpus: float = 1.0
    memory_mb: int = 1024
    disk_mb: int = 1024
    processes: int = 256
    output_bytes: int = 64 * 1024
    command_seconds: float = 120.0


@dataclass(frozen=True)
class Network:
    """`no-network` (loopback only), `public`, or `allowlist` of host names (exact, or `*.example.com`)."""

    mode: NetworkMode = "no-network"
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mount:
    """A host folder or file seen at `target` inside. Read-only unless `writable`. shared: large, and readable by all, so
    that it is never copied, also where the file system can show its owners only as they are."""

    source: Path
    target: str
    writable: bool = False
    shared: bool = False


@dataclass(frozen=True)
class ExecResult:
    """End of one command.

    exit_code: the process's status; 128+N when signal N ended it; 124 when `killed_by` is "time".
    stdout, stderr: text decoded as UTF-8 with replacement, at most `Limits.output_bytes` bytes each;
    when more was printed `truncated` is True and a line `[... N bytes dropped ...]` stands in the gap.
    killed_by: None, or the limit that ended it.
    """

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    truncated: bool = False
    killed_by: Literal["time", "memory", "processes", "disk"] | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.killed_by is None

    @property
    def output(self) -> str:
        """stdout, then stderr, as a terminal would have shown them when they are not interleaved."""
        if self.stderr and self.stdout and not self.stdout.endswith("\n"):
            return f"{self.stdout}\n{self.stderr}"
        return self.stdout + self.stderr


@dataclass(frozen=True)
class Image:
    """A built environment. `key` is a digest of all that went into it: equal keys, equal files.

    stands_for: what stood in for each `FROM` name, e.g. {"python:3.13-slim": "base:ab12…"}.
    handle: what the back end needs to find it again (layer folders, an image id); never shown to a task.
    """

    backend: str
    key: str
    workdir: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = "root"
    stands_for: Mapping[str, str] = field(default_factory=dict)
    handle: object = None


@dataclass(frozen=True)
class Snapshot:
    """The files of a sandbox at one moment, on top of the image it was started from. No process."""

    image: Image
    handle: object


@dataclass(frozen=True)
class Capabilities:
    """What this back end does on this machine, truthfully. `limits` maps a name of `Limits` to the means
    ("cgroup v1", "rlimit", "watchdog", "docker") or to "" when nothing enforces it."""

    networks: tuple[NetworkMode, ...]
    users: bool  # can exec as another user than the image's
    limits: Mapping[str, str]
    notes: tuple[str, ...] = ()


class SandboxError(RuntimeError):
    """The sandbox itself failed (an `infra` outcome): could not start, died, lost its host, disk full outside."""


class SandboxOverrun(SandboxError):
    """What ran in the sandbox used up its memory so far that the sandbox itself died: not the host's failure, but the
    doing of whoever's commands ran there."""


class BuildError(ValueError):
    """The environment cannot be built (a `task` fault): says file, line, instruction, and what to do."""

    def __init__(self, message: str, *, line: int | None = None, log: str = ""):
        super().__init__(message)
        self.line, self.log = line, log


class Unsupported(BuildError):
    """This back end refuses what another one can do; the message names the one that can."""


@runtime_checkable
class Sandbox(Protocol):
    """One running sandbox. All methods may be called from any thread, one call at a time per sandbox."""

    id: str
    image: Image

    def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        """Run a shell line (`bash -c`, str) or an argv. `env` is added to the image's; nothing of the host's is
        inherited. On timeout the command and all its descendants die, setsid or not; the sandbox lives on.
        Raises SandboxError when the sandbox is gone."""

    def put(self, source: Path, target: str) -> None:
        """Copy a host file, or the contents of a host folder, to `target` (parents made; modes kept; owner: the
        image's user). Never follows a link of the sandbox's out of it."""

    def get(self, source: str, target: Path, *, max_bytes: int = 256 << 20) -> None:
        """Copy a file or folder out. Links, devices and sockets are not followed or created on the host; more than
        `max_bytes` raises ValueError. FileNotFoundError when it is not there."""

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """A regular file's bytes. FileNotFoundError; ValueError for a link, a device, a folder, or more bytes."""

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write one file (parents made)."""

    def kill_all(self) -> int:
        """Kill every process started by exec, however detached; returns only when none is left. The number killed."""

    def snapshot(self, *, seal: bool = False) -> Snapshot:
        """The files now. `seal=True`: kills everything first, no exec afterwards, and nothing is copied
        (the snapshot lives until `stop`)."""

    def stop(self) -> None:
        """Remove everything of it: processes, mounts, cgroups, folders. Never raises for one already gone."""


@runtime_checkable
class Backend(Protocol):
    """Makes images and sandboxes. One object may serve many threads."""

    name: str

    def capabilities(self) -> Capabilities: ...

    def build(self, environment: Path, *, verifier: bool = False, timeout: float = 600.0) -> Image:
        """Image of a task's `environment/` folder (its Dockerfile, and files it copies). Cached by content: a second
        build of the same bytes costs nothing. `verifier=True`: the environment is a `tests/` folder with a Dockerfile
        of its own (Harbor's separate verifier), or has none: then the base layer with the verifier's packages.
        BuildError (Unsupported) names the line."""

    def start(
        self,
        image: Image | Snapshot,
        *,
        limits: Limits = Limits(),
        network: Network = Network(),
        mounts: Sequence[Mount] = (),
        env: Mapping[str, str] | None = None,
        trusted_system: bool = False,
        verifier: bool = False,
        share_network: Sandbox | None = None,
        label: str = "",
    ) -> Sandbox:
        """A sandbox from an image, or with the files of a snapshot (which it cannot change).

        trusted_system: what the snapshot has below SYSTEM_PATHS is left out: programs come from the image.
        verifier: adds the layer of verifier-only packages (pytest, CTRF plug-in), which agents never see.
        share_network: joins the network of a living sandbox, so that a grader reaches its services while seeing
        neither its processes nor its files' later changes. label: the run's id; `clean` finds leftovers by it."""

    def clean(self) -> list[str]:
        """Remove what dead host processes left (of any earlier run of this back end, never of a living one);
        one line for each thing removed."""


def state_dir() -> Path:
    """Where layers, images and running sandboxes are kept: $WORKBENCH_HOME, else a folder of this user's own below
    /var/tmp (not the home folder: sandboxes run as a user that may not enter it)."""
    return Path(os.environ.get("WORKBENCH_HOME") or f"/var/tmp/workbench-{os.getuid()}")


def get_backend(name: str = "bubblewrap", **options: object) -> Backend:
    """The back end called `name`: "bubblewrap", "docker", or "harbor:<environment type>" (say "harbor:daytona")."""
    kind, _, rest = name.partition(":")
    if kind == "bubblewrap":
        from workbench.sandboxes.bubblewrap import Bubblewrap

        return Bubblewrap(**options)
    if kind == "docker":
        from workbench.sandboxes.docker import Docker

        return Docker(**options)
    if kind == "harbor" and rest:
        from workbench.sandboxes.harbor import HarborBackend

        return HarborBackend(rest, **options)
    raise ValueError(f"no sandbox back end {name!r}: use bubblewrap, docker, or harbor:<type> such as harbor:daytona")
