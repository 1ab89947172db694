"""Files and messages at the harbor back end's border: build folders, what Harbor's errors say of them, snapshots' tars."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.sandboxes import BuildError, Mount, SandboxError
from workbench.sandboxes import docker_files as files
from workbench.sandboxes.docker_images import Context
from workbench.sandboxes.docker_snapshots import is_system, renamed
from workbench.sandboxes.whole_folder import whole_folder

_LINE = re.compile(r"(?:[Dd]ockerfile(?: parse error)?(?: on)?(?: line |:)|line )(\d+)")

_BUILD_WORDS = ("dockerfile", "failed to solve", "failed to build", "build failed", "building", "manifest unknown")


def unpack_context(archive: bytes, folder: Path) -> None:
    """Write a context that `read_context` packed (so its names are clean) to a folder that appears whole or not at all."""
    with whole_folder(folder) as made:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(made, filter="tar")
        made.chmod(0o755)


def declared_env(instructions: Sequence[tuple[str, int, str]]) -> dict[str, str]:
    """Variables that the last stage's ENV lines set to plain text (no expansion)."""
    import shlex

    env: dict[str, str] = {}
    for name, _, value in instructions:
        if name == "FROM":
            env = {}
        if name != "ENV":
            continue
        if "=" in value.split(" ", 1)[0]:
            env.update(word.partition("=")[::2] for word in shlex.split(value))
        else:
            key, _, text = value.partition(" ")
            env[key] = text.strip()
    return {key: text for key, text in env.items() if "$" not in text}


def blame(error: SandboxError, context: Context) -> Exception:
    """The task's fault (BuildError with the line) when the message speaks of the build, else infrastructure's."""
    cause = error.__cause__
    message = str(error)
    if isinstance(cause, BuildError):
        return cause
    named = type(cause).__name__ if cause is not None else ""
    if named != "SandboxBuildFailedError" and not any(word in message.lower() for word in _BUILD_WORDS):
        return error
    found = _LINE.search(message)
    line = int(found.group(1)) if found else _line_of_step(message, context)
    tail = "\n".join(message.splitlines()[-30:])[-4000:]
    where = f"Dockerfile line {line}" if line else "Dockerfile"
    return BuildError(f"{where}: {tail[-600:]}", line=line, log=tail)


def _line_of_step(message: str, context: Context) -> int | None:
    """The instruction whose text a builder quotes last."""
    at, chosen = -1, None
    for _name, line, value in context.instructions:
        found = message.rfind(value.strip()) if len(value.strip()) > 3 else -1
        if found > at:
            at, chosen = found, line
    return chosen


def remove_compose_project(project: str) -> str:
    """Containers and networks of one Compose project; says what went."""
    import docker

    with contextlib.suppress(docker.errors.DockerException):
        client = docker.from_env(timeout=60)
        chosen = {"label": f"com.docker.compose.project={project}"}
        containers, networks = client.containers.list(all=True, filters=chosen), client.networks.list(filters=chosen)
        for container in containers:
            container.remove(force=True, v=True)
        for network in networks:
            network.remove()
        return f": {len(containers)} containers, {len(networks)} networks"
    return ""


def missing(now: bytes, then: bytes, *, trusted: bool) -> list[bytes]:
    """Paths of a fresh environment that a snapshot did not have; the topmost only."""
    kept = set(then.split(b"\0"))
    gone: list[bytes] = []
    for path in sorted(set(now.split(b"\0")) - kept - {b""}):
        name = path.decode("utf-8", "surrogateescape")
        if (trusted and is_system(name)) or name.startswith("/tmp/.workbench-"):
            continue
        if not gone or not path.startswith(gone[-1] + b"/"):
            gone.append(path)
    return gone


def filtered(archive: Path, *, trusted: bool) -> bytes:
    """A snapshot's tar without what must not be carried over."""
    buffer = io.BytesIO()
    with (
        archive.open("rb") as file,
        files.open_stream(iter(lambda: file.read(1 << 18), b"")) as tar,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out,
    ):
        for member in tar:
            if "tmp/.workbench-" not in member.name and renamed(member, "", trusted=trusted):
                out.addfile(member, tar.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()


def volume(mount: Mount) -> dict[str, Any]:
    """A mount in Harbor's words."""
    volume: dict[str, Any] = {"type": "bind", "source": str(mount.source.resolve()), "target": mount.target}
    return volume if mount.writable else {**volume, "read_only": True}
