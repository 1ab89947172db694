"""From a Dockerfile's steps to layers: every step that changes files runs in a sandbox whose upper folder becomes a layer.

A layer is named by the digest of everything below it and of the step with the files that it copies, so a second build
of the same bytes runs nothing, and two Dockerfiles share the layers of a common beginning.
"""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH118
from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.sandboxes import BuildError, Image, Limits, SandboxError, base_layer, dockerfile, files
from workbench.sandboxes.context import Context
from workbench.sandboxes.dockerfile import Step
from workbench.sandboxes.sandbox import BubblewrapSandbox, Stack

if TYPE_CHECKING:
    from workbench.sandboxes.bubblewrap import Bubblewrap

_LIMITS = Limits(cpus=64, memory_mb=8192, disk_mb=16384, processes=4096, output_bytes=256 * 1024)
_MAX_LAYERS = 40  # the kernel takes a page of options for a mount, and every layer's name stands in it
_LOG_LINES = 40
_PASSED = (  # where packages come from: all that a build learns of the host's environment
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "UV_INDEX_URL",
    "UV_DEFAULT_INDEX", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_PREDEFINED = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")


def build(backend: Bubblewrap, environment: Path, *, verifier: bool, timeout: float) -> Image:
    """See `Backend.build`."""
    path = environment / "Dockerfile"
    if not environment.is_dir():
        raise BuildError(f"{environment} is not a folder: a task's environment/ with a Dockerfile is needed")
    if path.is_file():
        steps = dockerfile.parse(path)
        return _Build(backend, Context(environment), time.monotonic() + timeout).run(steps)
    if verifier:
        base = backend.base()
        return Image(
            backend.name, Path(base).name, stands_for={"(no Dockerfile)": stand_in(base)}, handle=Stack((base,))
        )
    raise BuildError(
        f"{environment} has no Dockerfile: add one (FROM python:3.13-slim is enough), or name a docker_image"
    )


def stand_in(base: str) -> str:
    return f"{Path(base).name.replace('-', ':', 1)} ({base_layer.system_name()})"


@dataclass
class _Build:
    backend: Bubblewrap
    context: Context
    deadline: float
    layers: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    shell: tuple[str, ...] = ("/bin/sh", "-c")
    key: str = ""
    stands_for: dict[str, str] = field(default_factory=dict)

    def run(self, steps: list[Step]) -> Image:
        for step in steps:
            getattr(self, f"on_{step.name.lower()}", lambda step: None)(step)
        settings = [self.key, self.workdir, self.user, *(f"{name}={value}" for name, value in sorted(self.env.items()))]
        stack = Stack(tuple(self.layers))
        return Image(self.backend.name, base_layer.digest(settings), self.workdir, dict(self.env), self.user,
                     dict(self.stands_for), stack)  # fmt: skip

    @property
    def variables(self) -> dict[str, str]:
        return {**self.args, **self.env}

    def on_from(self, step: Step) -> None:
        name = dockerfile.known_base(step, self.args)
        begun = time.monotonic()
        base = self.backend.base()
        self.deadline += time.monotonic() - begun  # making the base layer, once a machine, is not the task's time
        self.layers, self.args, self.key = [base], {}, Path(base).name
        self.stands_for[name] = stand_in(base)

    def on_arg(self, step: Step) -> None:
        for word in dockerfile.words(step.value, self.variables):
            name, equals, value = word.partition("=")
            if equals or name not in _PREDEFINED:
                self.args[name] = value

    def on_env(self, step: Step) -> None:
        self.env.update(dockerfile.pairs(step, self.variables))

    def on_user(self, step: Step) -> None:
        self.user = dockerfile.expand(step.value, self.variables)

    def on_shell(self, step: Step) -> None:
        words = step.argv()
        if not words:
            raise step.fault('SHELL takes a list such as ["/bin/bash", "-c"]')
        self.shell = tuple(words)

    def on_workdir(self, step: Step) -> None:
        self.workdir = os.path.normpath(os.path.join(self.workdir, dockerfile.expand(step.value, self.variables)))
        if self.workdir.startswith("//"):
            self.workdir = self.workdir[1:]
        folder = self.workdir

        def make(box: BubblewrapSandbox) -> None:
            done = box.exec(["mkdir", "-p", folder], cwd="/", user="root")
            if not done.ok:
                raise step.fault(done.output.strip())

        self.layer(step, ["workdir", folder], make)

    def on_run(self, step: Step) -> None:
        argv = step.argv() or [*self.shell, step.value]
        env = self.variables
        cwd, user = self.workdir, self.user

        def execute(box: BubblewrapSandbox) -> None:
            passed = {**_passed(), **env}
            done = box.exec(argv, cwd=cwd, env=passed, user=user, timeout=max(self.deadline - time.monotonic(), 1.0))
            if done.killed_by == "time":
                raise step.fault("the build's time is over while this command runs", _tail(done.output))
            if not done.ok:
                cause = f"stopped by its limit on {done.killed_by}" if done.killed_by else f"exit code {done.exit_code}"
                raise step.fault(_failed(cause, done.output), done.output)
            box.kill_all()

        self.layer(step, ["run", *argv, cwd, user, *(f"{n}={v}" for n, v in sorted(env.items()))], execute)

    def on_copy(self, step: Step) -> None:
        sources, target = dockerfile.copied(step, self.variables)
        owner = dockerfile.expand(step.flags.get("chown", "root"), self.variables)
        mode = dockerfile.expand(step.flags.get("chmod", ""), self.variables)
        destination = os.path.join(self.workdir, target)
        items = self.context.items(step, sources, destination)
        parts = ["copy", owner, mode, *(part for source, goal in items for part in (goal, self.context.digest(source)))]

        def copy(box: BubblewrapSandbox) -> None:
            for source, goal in items:
                self._put(box, step, source, goal, owner, mode)

        self.layer(step, parts, copy)

    on_add = on_copy

    def _put(self, box: BubblewrapSandbox, step: Step, source: Path, goal: str, owner: str, mode: str) -> None:
        staged = self.backend.host.new_folder("context")
        try:
            ready = self.context.stage(source, staged / "it", step, mode)
            files.put(box.slot, ready, goal, owner if self.backend.uids > 1 else "root", self.backend.uids > 1)
        except (SandboxError, OSError, ValueError) as error:
            raise step.fault(f"cannot copy to {goal}: {error}") from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def layer(self, step: Step, parts: list[str], change: Callable[[BubblewrapSandbox], None]) -> None:
        """Add the layer of one step, from the store or by letting `change` work in a sandbox on the layers so far."""
        self.key = base_layer.digest([self.key, *parts])
        if len(self.layers) >= _MAX_LAYERS:
            raise step.refuse(f"more than {_MAX_LAYERS} steps that change files (join RUN and COPY lines)")
        self.layers.append(
            self.backend.store.layer(f"image-{self.key}", lambda folder: self._make(folder, step, change))
        )

    def _make(self, folder: Path, step: Step, change: Callable[[BubblewrapSandbox], None]) -> None:
        if time.monotonic() > self.deadline:
            raise step.fault("the build's time is over before this step")
        below = Image(self.backend.name, self.key, handle=Stack(tuple(self.layers)))
        network = (
            self.backend.build_network
        )  # through the proxy, which also leads to a mirror in the house, never to this machine
        with self.backend.start(below, limits=_LIMITS, network=network, label="build", reach="network") as box:
            change(box)
            box.snapshot(seal=True)
            for part in ("root", "usr"):
                (box.folder / part).rename(folder / part)


def _passed() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    certificates = dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), _CERTIFICATES)
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "PIP_ROOT_USER_ACTION": "ignore"}
    return {**(certificates if Path(_CERTIFICATES).is_file() else {}), **quiet, **passed}


def _failed(cause: str, output: str) -> str:
    """What a RUN step left behind, and advice where its last words would not tell anybody what to do."""
    if not output.strip():
        return f"{cause}; it printed nothing (an option such as -q may hide why)"
    text = f"{cause}; the last lines of its output:\n{_tail(output)}"
    if "unable to make backup link" in output:
        text += (
            "\nThe base here is this machine's own files, and without root those cannot be upgraded. Keep the installed "
            "versions with `apt-get install --no-upgrade`, leave out what needs newer ones, or use the docker back end"
        )
    return text


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-_LOG_LINES:])
