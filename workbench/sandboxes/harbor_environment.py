"""Our sandboxes as a Harbor environment: `harbor run` without a Docker engine.

    HARBOR_TELEMETRY=0 harbor run -p TASK -a oracle -e workbench.sandboxes.harbor_environment:WorkbenchEnvironment

Any back end can stand behind it: `--ek backend=docker`. In Harbor's shared verifier mode agent and verifier use one
sandbox, so the verifier's packages are in it from the start (`--ek verifier_packages=false` leaves them out); grades
that must hold against a hostile agent need Harbor's separate mode, or the workbench's own trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import tempfile
import uuid
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import COMPOSE_FILE_NAME, require_agent_environment_definition
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import TaskOS

from workbench.sandboxes import Backend, Image, Limits, Mount, Network, Sandbox, SandboxError, get_backend
from workbench.sandboxes.prebuilt import build_named

_BIG_OUTPUT = 16 << 20  # bytes: Harbor reads whole file lists and logs from a command's output
_NO_TIMEOUT = 24 * 3600.0
_MARK = "WORKBENCH_COMMAND"


@functools.cache
def _backend(name: str) -> Backend:
    """One back end a process: a job makes an environment for each trial."""
    return get_backend(name)


def _kill_marked(mark: str) -> None:
    """Kill this machine's processes whose environment carries a mark."""
    wanted = f"{_MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


class WorkbenchOptions(EnvironmentOptions):
    """What `--ek` takes."""

    backend: str = "bubblewrap"
    verifier_packages: bool = True
    processes: int = 512


class WorkbenchEnvironment(BaseEnvironment):
    """One sandbox of ours. Windows tasks, GPUs and Compose files are refused before anything starts."""

    options_model = WorkbenchOptions

    def __init__(self, *args: Any, **kwargs: Any):
        names = WorkbenchOptions.model_fields
        self.options = self.parse_options({k: v for k, v in kwargs.items() if k in names})
        self._backend = _backend(self.options.backend)
        self._sandbox: Sandbox | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "workbench"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        networks = self._backend.capabilities().networks
        listed = "allowlist" in networks
        return EnvironmentCapabilities(
            mounted=True,
            disable_internet="no-network" in networks,
            network_allowlist=listed,
            network_allowlist_hostnames=listed,
            network_allowlist_wildcard_hostnames=listed,
        )

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    def _validate_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists() or self.extra_docker_compose_paths:
            raise ValueError(f"{self.environment_dir}: Compose files need Harbor's docker environment (-e docker)")
        if self.os == TaskOS.WINDOWS:
            raise ValueError("the workbench's sandboxes run Linux tasks only")
        require_agent_environment_definition(self.environment_dir, docker_image=self.task_env_config.docker_image)

    # ------------------------------------------------------------------- life
    async def start(self, force_build: bool) -> None:
        """Build (cached by content, so `force_build` changes nothing) and start."""
        image = await asyncio.to_thread(self._build)
        policy = self.network_policy
        self._sandbox = await asyncio.to_thread(
            self._backend.start,
            image,
            limits=self._limits(),
            network=Network(policy.network_mode.value, tuple(policy.allowed_hosts)),
            mounts=self._binds(),
            env=self._startup_env(),
            verifier=self.options.verifier_packages,
            label=self.session_id,
        )
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    def _build(self) -> Image:
        name = self.task_env_config.docker_image
        timeout = self.task_env_config.build_timeout_sec
        if (self.environment_dir / "Dockerfile").exists() or not name:
            return self._backend.build(self.environment_dir, timeout=timeout)
        return build_named(self._backend, name, timeout=timeout)

    def _limits(self) -> Limits:
        config, usual = self.task_env_config, Limits()
        return Limits(
            cpus=self._resource_limit_value("cpu", auto_mode=self._limit_mode()) or usual.cpus,
            memory_mb=self._resource_limit_value("memory", auto_mode=self._limit_mode()) or usual.memory_mb,
            disk_mb=config.storage_mb or usual.disk_mb,
            processes=self.options.processes,
            output_bytes=_BIG_OUTPUT,
        )

    @staticmethod
    def _limit_mode() -> Any:
        from harbor.models.trial.config import ResourceMode

        return ResourceMode.LIMIT

    def _binds(self) -> list[Mount]:
        for mount in self._host_mounts:
            if mount["type"] != "bind":
                raise ValueError(f"mount {mount['target']}: only bind mounts are supported, not {mount['type']!r}")
        return [Mount(Path(m["source"]), str(m["target"]), writable=not m.get("read_only")) for m in self._host_mounts]

    async def stop(self, delete: bool) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.to_thread(sandbox.stop)

    def _started(self) -> Sandbox:
        if self._sandbox is None:
            raise SandboxError(f"environment {self.session_id} is not running")
        return self._sandbox

    # --------------------------------------------------------------- commands
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell line. A time limit that is reached gives return code 124, and nothing of the command lives on."""
        sandbox, who, mark = self._started(), self._resolve_user(user), uuid.uuid4().hex
        work = asyncio.to_thread(
            sandbox.exec,
            command,
            cwd=cwd or self.task_env_config.workdir,
            env={**(self._merge_env(env) or {}), _MARK: mark},
            user=None if who is None else str(who),
            timeout=timeout_sec or _NO_TIMEOUT,
        )
        running = asyncio.ensure_future(work)
        try:
            result = await asyncio.shield(running)
        except asyncio.CancelledError:
            # Harbor gave up on the agent: its command must not run on beside the verifier, nor hold the sandbox.
            await self._end(sandbox, mark)
            await asyncio.wait([running], timeout=30)
            raise
        return ExecResult(stdout=result.stdout, stderr=result.stderr, return_code=result.exit_code)

    @staticmethod
    async def _end(sandbox: Sandbox, mark: str) -> None:
        """Kill everything although a command holds the sandbox: that command is found by its mark and ended first.
        A command that hid its mark costs the sandbox."""
        killing = asyncio.ensure_future(asyncio.to_thread(sandbox.kill_all))
        for _ in range(100):
            done, _pending = await asyncio.wait([killing], timeout=0.1)
            if done:
                return
            await asyncio.to_thread(_kill_marked, mark)
        await asyncio.to_thread(sandbox.stop)

    # ------------------------------------------------------------------ files
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await asyncio.to_thread(self._started().put, Path(source_path), str(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await asyncio.to_thread(self._started().put, Path(source_dir), str(target_dir))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await asyncio.to_thread(self._get, str(source_path), Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await asyncio.to_thread(self._get, str(source_dir), Path(target_dir))

    def _get(self, source: str, target: Path) -> None:
        """Copy out beside the target first: nothing half-copied is left under its name, and folders merge."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".workbench-") as folder:
            copy = Path(folder) / "copy"
            self._started().get(source, copy, max_bytes=1 << 30)
            if copy.is_dir():
                shutil.copytree(copy, target, dirs_exist_ok=True)
            else:
                shutil.move(copy, target)
