"""The docker back end: images built by a Docker engine, sandboxes as containers, through the `docker` SDK.

Nothing in a container is trusted. Each container's first process ends when our connection to it does, so that a killed
host leaves no process behind; `clean` removes the stopped container later. Capabilities are dropped to what package
managers need, and no new privileges can be gained.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.sandboxes import (
    Capabilities,
    Image,
    Limits,
    Mount,
    Network,
    Sandbox,
    SandboxError,
    Snapshot,
    Unsupported,
)
from workbench.sandboxes import docker_images as images
from workbench.sandboxes import docker_verifier as verifier_layer
from workbench.sandboxes.docker_owner import LABEL, dead, owner
from workbench.sandboxes.docker_processes import run_once
from workbench.sandboxes.docker_sandbox import DockerSandbox, engine_errors
from workbench.sandboxes.docker_snapshots import Saved, restore

# What apt, pip and services need of root's capabilities. Not among them: SYS_ADMIN, NET_ADMIN, NET_RAW, MKNOD, PTRACE.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
# Ends at the end of its standard input, which is our connection. Only words that every shell has built in.
IDLE = ["-c", "while read -r line; do :; done"]
BASE = "python:3.13-slim"


class Docker:
    """Makes images and sandboxes on a Docker engine. One object may serve many threads.

    host: the engine's address (default: DOCKER_HOST, else the usual socket). base: image of a verifier without a
    Dockerfile of its own, and of the egress of allowlists (it needs python3). build_memory_mb: limit of a build step.
    private_addresses: whether allowlists may lead to this machine and to private networks.
    Raises SandboxError when no engine answers.
    """

    name = "docker"

    def __init__(self, host: str | None = None, *, base: str = BASE, build_memory_mb: int = 4096,
                 private_addresses: bool = False):  # fmt: skip
        import docker

        self._private = private_addresses
        self._base, self._build_memory = base, build_memory_mb
        try:
            options = {"base_url": host} if host else {}
            make = docker.DockerClient if host else docker.from_env
            self._client = make(**options, timeout=120, max_pool_size=64)
            self._info = self._client.info()
        except (docker.errors.DockerException, OSError) as error:
            raise SandboxError(
                f"no Docker engine answers ({error}). Start one, set DOCKER_HOST, or use the bubblewrap back end"
            ) from error
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._pythons: dict[str, tuple[str, str]] = {}

    def capabilities(self) -> Capabilities:
        bridge = self._has_bridge
        networks = ("no-network", "public", "allowlist") if bridge else ("no-network", "allowlist")
        info = self._info
        limits = {
            "cpus": "docker" if info.get("CpuCfsQuota") else "",
            "memory_mb": "docker" if info.get("MemoryLimit") else "",
            "disk_mb": "watchdog",
            "processes": "docker" if info.get("PidsLimit") else "",
            "output_bytes": "watchdog",
            "command_seconds": "watchdog",
        }
        notes = [
            f"engine {info.get('ServerVersion')}, cgroup v{info.get('CgroupVersion', '1')}, {info.get('Driver')}",
            "disk is looked at once a second while a command runs, so a fast writer overshoots",
            "allowlist: HTTP and HTTPS through a proxy named by http_proxy and https_proxy; nothing else gets out",
            "graders take pytest from the workbench and Python (3.10 or newer) from the task's image",
        ]
        if not bridge:
            notes.append("no public network: this engine runs without its bridge")
        return Capabilities(networks, users=True, limits=limits, notes=tuple(notes))

    @functools.cached_property
    def _has_bridge(self) -> bool:
        return bool(self._client.api.networks(names=["^bridge$"]))

    # ------------------------------------------------------------------ images
    def build(self, environment: Path, *, verifier: bool = False, timeout: float = 600.0) -> Image:
        text = f"FROM {self._base}\n" if verifier and not (environment / "Dockerfile").exists() else None
        context = images.read_context(environment, text)
        with engine_errors("build an image"):
            ids = {name: images.resolve(self._client, name, line) for name, line in images.bases(context)}
            key = hashlib.sha256("\n".join([context.key, *(f"{n}={i}" for n, i in ids.items())]).encode()).hexdigest()
            tag = f"{images.REPOSITORY}:{key[:32]}"
            with self._key_lock(key):
                config = self._found(tag)
                if config is None:
                    images.run_build(self._client, context, tag, timeout=timeout, labels={"workbench.image": key},
                                     memory_mb=self._build_memory, network=None if self._has_bridge else "none")  # fmt: skip
                    config = self._client.api.inspect_image(tag)
        return self._image(config, key, ids)

    def _key_lock(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def _found(self, tag: str) -> dict[str, Any] | None:
        from docker.errors import ImageNotFound

        try:
            return self._client.api.inspect_image(tag)
        except ImageNotFound:
            return None

    def _image(self, config: dict[str, Any], key: str, ids: Mapping[str, str]) -> Image:
        settings = config.get("Config") or {}
        pairs = (entry.partition("=") for entry in settings.get("Env") or [])
        env = {name: value for name, _, value in pairs}
        return Image(
            backend=self.name, key=key, workdir=settings.get("WorkingDir") or "/", env=env,
            user=settings.get("User") or "root", stands_for=dict(ids), handle=config["Id"],
        )  # fmt: skip

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
    ) -> DockerSandbox:
        base = image.image if isinstance(image, Snapshot) else image
        saved = image.handle if isinstance(image, Snapshot) else None
        with engine_errors("start a sandbox"), contextlib.ExitStack() as undo:
            source = saved.image() if isinstance(saved, Saved) and not trusted_system else str(base.handle)
            binds = list(mounts)
            if verifier:
                binds.append(Mount(self._verifier_layer(str(base.handle)), verifier_layer.TARGET))
            variables = {**base.env, **(env or {})}
            egress = None
            if share_network is None and network.mode == "allowlist":
                from workbench.sandboxes.docker_egress import Egress

                egress = Egress(self._client, network.hosts, self._base, label, private=self._private)
                undo.callback(egress.stop)
                variables = {**egress.variables, **variables}
            made = self._create(source, base, limits, binds, variables, label,
                                self._network_mode(network, share_network, egress))  # fmt: skip
            undo.callback(self._client.api.remove_container, made, force=True, v=True)
            sandbox = DockerSandbox(self._client, made, base, limits, variables, egress)
            if saved is not None and trusted_system:
                restore(self._client, saved, sandbox)
            undo.pop_all()
            return sandbox

    def _network_mode(self, network: Network, share: Sandbox | None, egress: Any) -> str:
        if share is not None:
            if not isinstance(share, DockerSandbox):
                raise Unsupported("share_network: the other sandbox must be one of the docker back end too")
            return f"container:{share.container}"
        if egress is not None:
            return f"container:{egress.container}"
        if network.mode == "public":
            if "public" not in self.capabilities().networks:
                raise Unsupported("this Docker engine runs without a bridge, so it has no public network")
            return "bridge"
        return "none"

    def _create(self, source: str, image: Image, limits: Limits, binds: Sequence[Mount], env: Mapping[str, str],
                label: str, network_mode: str) -> str:  # fmt: skip
        from docker.types import Mount as Bind

        memory = limits.memory_mb << 20
        api = self._client.api
        host = api.create_host_config(
            mounts=[Bind(m.target, str(m.source.resolve()), type="bind", read_only=not m.writable) for m in binds],
            network_mode=network_mode, init=True, cap_drop=["ALL"], cap_add=list(CAPABILITIES),
            security_opt=["no-new-privileges"], mem_limit=memory, memswap_limit=memory, pids_limit=limits.processes,
            nano_cpus=int(limits.cpus * 1e9), shm_size=64 << 20, log_config={"Type": "none"}, oom_score_adj=500,
        )  # fmt: skip
        return api.create_container(
            source, IDLE, entrypoint=["/bin/sh"], user="0:0", working_dir=image.workdir, host_config=host,
            # without the engine's own network code, which takes half of a start, the kernel's fresh loopback is all there is
            network_disabled=network_mode == "none", environment=dict(env), stdin_open=True, name=f"workbench-{uuid.uuid4().hex[:16]}", healthcheck={"test": ["NONE"]},
            labels={LABEL: owner(), "workbench.run": label}, stop_signal="SIGKILL",
        )["Id"]  # fmt: skip

    def _verifier_layer(self, image_id: str) -> Path:
        if image_id not in self._pythons:
            words = run_once(self._client, image_id, ["-c", verifier_layer.PROBE]).split()
            self._pythons[image_id] = (words[0], words[1]) if len(words) == 2 else ("/usr/bin/python3", "3")
        return verifier_layer.layer(*self._pythons[image_id])

    # ----------------------------------------------------------------- leftovers
    def clean(self) -> list[str]:
        removed = []
        api = self._client.api
        with engine_errors("remove leftovers"):
            for container in api.containers(all=True, filters={"label": LABEL}):
                if dead(container["Labels"].get(LABEL, "")):
                    run = container["Labels"].get("workbench.run", "")
                    with contextlib.suppress(Exception):
                        api.remove_container(container["Id"], force=True, v=True)
                        removed.append(f"container {container['Names'][0].lstrip('/')} (run {run or 'unnamed'})")
            for image in api.images(filters={"label": "workbench.snapshot"}):
                if dead((image["Labels"] or {}).get(LABEL, "")):
                    with contextlib.suppress(Exception):
                        api.remove_image(image["Id"], force=True)
                        removed.append(f"snapshot image {image['Id'][7:19]}")
        return removed
