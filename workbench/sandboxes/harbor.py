"""The harbor back end: any of Harbor's environment types (docker, daytona, e2b, modal …) behind our Protocol.

Harbor's environments are asynchronous; they live on one event loop in a thread of ours. Harbor starts environments and
runs commands in them; everything else (bounded output, killing, snapshots) is done inside, by `harbor_inside`, and
`capabilities` says what that is worth.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import uuid
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.runs.temporary import prefix
from workbench.sandboxes import (
    BuildError,
    Capabilities,
    Image,
    Limits,
    Mount,
    Network,
    Sandbox,
    SandboxError,
    Snapshot,
    Unsupported,
    state_dir,
)
from workbench.sandboxes import docker_images as images
from workbench.sandboxes import docker_verifier as verifier_layer
from workbench.sandboxes import harbor_inside as inside
from workbench.sandboxes.docker_owner import dead, owner
from workbench.sandboxes.harbor_context import blame, declared_env, remove_compose_project, unpack_context, volume
from workbench.sandboxes.harbor_sandbox import HarborSandbox, Saved

BASE = "python:3.13-slim"
_START_SECONDS = 1800.0
# Harbor's docker type otherwise waits 10 s for a process that ignores TERM at each stop, and keeps zombies.
_COMPOSE_OVERLAY = {"services": {"main": {"stop_grace_period": "0s", "init": True}}}


@dataclass(frozen=True)
class _Facts:
    workdir: str
    user: str
    python: bool
    shell: str


class HarborBackend:
    """`kind`: a type that Harbor knows ("docker", "daytona", …) or "module:Class" of an environment of one's own.

    options are passed to the environment (what `harbor run --ek` takes). base: what a verifier without a Dockerfile of
    its own is built from. Raises SandboxError when Harbor does not know the type or it cannot be used here.
    """

    def __init__(self, kind: str, *, base: str = BASE, **options: Any):
        os.environ["HARBOR_TELEMETRY"] = "0"  # Harbor reports each use to its makers otherwise
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        from harbor.environments.factory import EnvironmentFactory
        from harbor.models.environment_type import EnvironmentType

        self.name, self._kind, self._options, self._base = f"harbor:{kind}", kind, options, base
        try:
            self._type = None if ":" in kind else EnvironmentType(kind)
            self._class = EnvironmentFactory.get_environment_class(self._type, kind if self._type is None else None)
            self._class.preflight(dict(options))
        except (ValueError, TypeError, ImportError, SystemExit) as error:
            raise SandboxError(f"harbor: the environment type {kind!r} cannot be used here: {error}") from None
        if "verifier_packages" in getattr(self._class.options_model, "model_fields", {}):
            options.setdefault("verifier_packages", False)  # our own environment class: here `start` says who sees them
        self._home = state_dir() / "harbor"
        self._home.mkdir(parents=True, exist_ok=True)
        if kind == "docker":
            overlay = self._home / "compose-overlay.json"
            overlay.write_text(json.dumps(_COMPOSE_OVERLAY))
            options.setdefault("extra_docker_compose", [overlay])
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=f"harbor-{kind}", daemon=True).start()
        self._facts: dict[str, _Facts] = {}
        self._pythons: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._building: dict[str, threading.Lock] = {}
        self._capabilities: Capabilities | None = None
        self._features: Any = None

    # ----------------------------------------------------------------- event loop
    def _wait(self, work: Any, seconds: float, what: str) -> Any:
        """Run one of Harbor's coroutines to its end. SandboxError for anything it raises, save what the task caused."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except (BuildError, SandboxError):
            raise
        except (FutureTimeout, asyncio.CancelledError) as error:
            future.cancel()
            raise SandboxError(f"{self.name}: could not {what} within {seconds:g} s") from error
        except Exception as error:
            raise SandboxError(f"{self.name}: could not {what}: {type(error).__name__}: {error}") from error

    def _environment(self, folder: Path, session: Path, network: Network, **more: Any) -> Any:
        """One environment, not started. ValueError when Harbor refuses what is asked of it."""
        from harbor.environments.factory import EnvironmentFactory
        from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
        from harbor.models.trial.paths import TrialPaths

        paths = TrialPaths(trial_dir=session / "trial")
        paths.mkdir()
        policy = NetworkPolicy(network_mode=NetworkMode(network.mode), allowed_hosts=list(network.hosts))
        common = {
            "environment_dir": folder, "environment_name": "workbench", "session_id": session.name, "trial_paths": paths,
            "task_env_config": EnvironmentConfig(), "network_policy": policy, **self._options, **more,
        }  # fmt: skip
        if self._type is None:
            return EnvironmentFactory.create_environment_from_import_path(self._kind, **common)
        return EnvironmentFactory.create_environment(self._type, **common)

    def _session(self) -> Path:
        """A folder for one environment, with its owner's name in it for `clean`."""
        session = Path(tempfile.mkdtemp(dir=self._home, prefix=f"workbench-{uuid.uuid4().hex[:8]}-"))
        renamed = session.with_name(re.sub(r"[^a-z0-9-]", "x", session.name.lower()))
        session.rename(renamed)
        (renamed / "owner.json").write_text(json.dumps({"owner": owner(), "kind": self._kind}))
        return renamed

    # --------------------------------------------------------------- capabilities
    def capabilities(self) -> Capabilities:
        with self._lock:
            if self._capabilities is None:
                self._capabilities = self._ask_capabilities()
            return self._capabilities

    def _ask_capabilities(self) -> Capabilities:
        networks = []
        with tempfile.TemporaryDirectory(prefix=prefix("harbor")) as folder:
            (Path(folder) / "Dockerfile").write_text(f"FROM {self._base}\n")
            for network in (Network(), Network("public"), Network("allowlist", ("example.com",))):
                session = self._session()
                try:
                    environment = self._environment(Path(folder), session, network)
                    self._features = environment.capabilities
                    networks.append(network.mode)
                except (ValueError, RuntimeError):
                    continue  # Harbor refuses what a type cannot do when an environment is made
                finally:
                    shutil.rmtree(session, ignore_errors=True)
        resources = self._class.resource_capabilities()
        limits = {
            "cpus": "harbor" if resources and resources.cpu_limit else "",
            "memory_mb": "harbor" if resources and resources.memory_limit else "",
            "disk_mb": "", "processes": "", "output_bytes": "runner inside", "command_seconds": "runner inside",
        }  # fmt: skip
        notes = [
            "killing, time limits and bounded output are done inside, by programs of the image: an agent that is root and "
            "replaces them can defeat them, so grade in a fresh sandbox",
            "without python3 in the image: no standard input, output is bounded on the host only, a timeout may leave children",
            "snapshots are copied to the host; they need GNU find and tar in the image",
            "share_network is not possible",
        ]
        if not getattr(self._features, "mounted", False):
            notes.append("mounts are copies: a program inside that is root can change them, and nothing comes back")
        return Capabilities(tuple(networks), users=True, limits=limits, notes=tuple(notes))

    # ------------------------------------------------------------------ images
    def build(self, environment: Path, *, verifier: bool = False, timeout: float = 600.0) -> Image:
        """Starts and stops one environment, so that the provider has the image and faults of the Dockerfile show."""
        text = f"FROM {self._base}\n" if verifier and not (environment / "Dockerfile").exists() else None
        context = images.read_context(environment, text)
        bases = [name for name, _ in images.bases(context)]
        key = hashlib.sha256(f"{self.name}\n{context.key}".encode()).hexdigest()
        folder = self._home / "contexts" / key[:32]
        with self._lock:
            lock = self._building.setdefault(key, threading.Lock())
        with lock:
            if not folder.exists():
                unpack_context(context.archive, folder)
            if key not in self._facts:
                self._facts[key] = self._probe(folder, context, timeout)
        facts = self._facts[key]
        handle = {"folder": str(folder), "python": facts.python, "shell": facts.shell}
        return Image(
            backend=self.name, key=key, workdir=facts.workdir, env=declared_env(context.instructions), user=facts.user,
            stands_for={name: f"{self.name}/{name}" for name in bases}, handle=handle,
        )  # fmt: skip

    def _probe(self, folder: Path, context: images.Context, timeout: float) -> _Facts:
        networks = self.capabilities().networks
        session = self._session()
        try:
            environment = self._environment(
                folder, session, Network("no-network" if "no-network" in networks else networks[0])
            )
            try:
                self._wait(environment.start(force_build=False), timeout, "build an image")
                said = self._wait(
                    environment.exec(inside.PROBE, timeout_sec=60), 120, "look into a new environment"
                ).stdout
            finally:
                with contextlib.suppress(Exception):
                    self._wait(environment.stop(delete=False), 300, "stop an environment")
        except SandboxError as error:
            raise blame(error, context) from error
        finally:
            shutil.rmtree(session, ignore_errors=True)
        pairs = dict(line.partition("=")[::2] for line in (said or "").splitlines())
        shell = "bash" if pairs.get("bash") else "sh"
        return _Facts(pairs.get("workdir") or "/", pairs.get("user") or "root", "python" in pairs, shell)

    # --------------------------------------------------------------- sandboxes
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
    ) -> HarborSandbox:
        if share_network is not None:
            raise Unsupported("Harbor's environments cannot share a network; use the bubblewrap or docker back end")
        if network.mode not in self.capabilities().networks:
            raise Unsupported(
                f"{self.name} has no network mode {network.mode!r} here; bubblewrap and docker may have it"
            )
        base = image.image if isinstance(image, Snapshot) else image
        binds = [*mounts, *([Mount(self._verifier_layer(base), verifier_layer.TARGET)] if verifier else [])]
        can_mount = bool(getattr(self._features, "mounted", False))
        session = self._session()
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, session, ignore_errors=True)
            try:
                environment = self._environment(
                    Path(base.handle["folder"]), session, network, override_cpus=limits.cpus,
                    override_memory_mb=limits.memory_mb, override_storage_mb=limits.disk_mb,
                    mounts=[volume(m) for m in binds] if can_mount else [],
                )  # fmt: skip
            except ValueError as error:
                raise Unsupported(f"{self.name} refuses this environment: {error}") from error
            undo.callback(self._discard, environment)
            self._wait(environment.start(force_build=False), _START_SECONDS, "start an environment")
            sandbox = HarborSandbox(environment, base, limits, {**base.env, **(env or {})}, self._wait, session)
            if not can_mount:
                for mount in binds:
                    sandbox.put(mount.source, mount.target)
            if isinstance(image, Snapshot) and isinstance(image.handle, Saved):
                sandbox.restore(image.handle, trusted=trusted_system)
            undo.pop_all()
        weakref.finalize(sandbox, self._discard, environment)
        return sandbox

    def _discard(self, environment: Any) -> None:
        with contextlib.suppress(Exception):
            self._wait(environment.stop(delete=True), 300, "stop an environment")

    def _verifier_layer(self, image: Image) -> Path:
        if image.key not in self._pythons:
            networks = self.capabilities().networks
            probe = self.start(image, network=Network("no-network" if "no-network" in networks else networks[0]))
            try:
                words = probe.exec(["sh", "-c", verifier_layer.PROBE], cwd="/").stdout.split()
            finally:
                probe.stop()
            self._pythons[image.key] = (words[0], words[1]) if len(words) == 2 else ("/usr/bin/python3", "3")
        return verifier_layer.layer(*self._pythons[image.key])

    # ---------------------------------------------------------------- leftovers
    def clean(self) -> list[str]:
        """Folders of dead runs; and what Harbor's docker type left. Elsewhere the provider ends idle environments."""
        removed = []
        for note in self._home.glob("*/owner.json"):
            try:
                known = json.loads(note.read_text())
            except (OSError, ValueError):
                continue
            if not dead(str(known.get("owner", ""))):
                continue
            session = note.parent
            where = (
                "" if ":" in known.get("kind", "") else f"; look at {known.get('kind')} for an environment of that name"
            )
            if known.get("kind") == "docker":
                where = remove_compose_project(session.name)
            shutil.rmtree(session, ignore_errors=True)
            removed.append(f"harbor session {session.name}{where}")
        return removed
