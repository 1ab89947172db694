"""Images of the docker back end: a Dockerfile and its folder become a tag that is keyed by all that went in."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.sandboxes import BuildError, SandboxError
from workbench.sandboxes.docker_files import add_bytes, add_tree

REPOSITORY = "workbench/environment"
_STEP = re.compile(r"^Step (\d+)/\d+ : ")
_LINE = re.compile(r"[Dd]ockerfile parse error (?:on )?line (\d+)")


@dataclass(frozen=True)
class Context:
    """What is sent to the engine. key: sha256 over paths, executable bits and bytes."""

    archive: bytes
    key: str
    instructions: tuple[tuple[str, int, str], ...]  # name, first line (from 1), value


def read_context(folder: Path, dockerfile: str | None = None) -> Context:
    """Pack a build context (.dockerignore is respected), or one Dockerfile given as text. BuildError when unusable."""
    if dockerfile is None:
        path = folder / "Dockerfile"
        if path.is_symlink() or not path.is_file():
            raise BuildError(f"{path}: no Dockerfile here; write one (it may be the single line FROM python:3.13-slim)")
        dockerfile = path.read_text(errors="replace")
        paths = _context_paths(folder)
    else:
        paths = []
    buffer, digest = io.BytesIO(), hashlib.sha256()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for relative in paths:
            _add(tar, folder, relative)
        add_bytes(tar, "Dockerfile", dockerfile.encode(), mode=0o644)
    digest.update(buffer.getvalue())  # times are zero and owners root: equal files, equal bytes
    return Context(buffer.getvalue(), digest.hexdigest(), _instructions(dockerfile))


def _context_paths(folder: Path) -> list[str]:
    from docker.utils.build import exclude_paths

    ignore = folder / ".dockerignore"
    patterns = []
    if ignore.is_file() and not ignore.is_symlink():
        lines = (line.strip() for line in ignore.read_text(errors="replace").splitlines())
        patterns = [line for line in lines if line and not line.startswith("#")]
    found = exclude_paths(str(folder), patterns, dockerfile="Dockerfile")
    return sorted(p for p in found if p and p != "Dockerfile")


def _add(tar: tarfile.TarFile, folder: Path, relative: str) -> None:
    path = folder / relative
    if path.is_dir() and not path.is_symlink():
        member = tarfile.TarInfo(relative)
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(member)
        return
    try:
        add_tree(tar, path, relative)
    except (OSError, ValueError) as error:
        raise BuildError(
            f"{path}: cannot be sent to the engine ({error}); remove it or name it in .dockerignore"
        ) from error


def _instructions(dockerfile: str) -> tuple[tuple[str, int, str], ...]:
    from dockerfile_parse import DockerfileParser

    parsed = DockerfileParser(fileobj=io.BytesIO(dockerfile.encode())).structure
    return tuple((p["instruction"], p["startline"] + 1, p["value"]) for p in parsed if p["instruction"] != "COMMENT")


def bases(context: Context) -> list[tuple[str, int]]:
    """Names after FROM that are neither earlier stages nor `scratch`, with their lines; ARG defaults filled in."""
    arguments: dict[str, str] = {}
    stages: set[str] = set()
    found = []
    for name, line, value in context.instructions:
        if name == "ARG" and not stages and "=" in value:
            key, _, default = value.partition("=")
            arguments[key.strip()] = default.strip().strip("\"'")
        if name != "FROM":
            continue
        words = [w for w in value.split() if not w.startswith("--")]
        image = re.sub(
            r"\$\{?(\w+)[^}]*\}?", lambda m: arguments.get(m.group(1), m.group(0)), words[0] if words else ""
        )
        if image and image.lower() != "scratch" and image not in stages:
            found.append((image, line))
        stages.add(words[2] if len(words) > 2 and words[1].lower() == "as" else "")
    if not found and not any(name == "FROM" for name, _, _ in context.instructions):
        raise BuildError("Dockerfile: has no FROM; start it with one, such as FROM python:3.13-slim", line=1)
    return found


def resolve(client: Any, name: str, line: int | None = None) -> str:
    """Id of an image, pulled when the engine lacks it. BuildError when it cannot be had."""
    from docker.errors import APIError, ImageNotFound

    try:
        return client.images.get(name).id
    except ImageNotFound:
        pass
    try:
        return client.images.pull(name).id
    except APIError as error:
        where = f"Dockerfile line {line}: FROM {name}" if line else name
        raise BuildError(
            f"{where}: the engine has no such image and could not pull it ({str(error.explanation or error)[:200]}); "
            f"correct the name, or load the image first (docker pull, docker import, docker tag)",
            line=line,
        ) from error


def run_build(
    client: Any,
    context: Context,
    tag: str,
    *,
    timeout: float,
    labels: dict[str, str],
    memory_mb: int,
    network: str | None = None,
) -> None:
    """Build and tag. BuildError says which line of the Dockerfile failed, with the end of the log."""
    import requests
    import urllib3
    from docker.errors import APIError

    end, log, step = time.monotonic() + timeout, [], 0
    late = f"not finished after {timeout:g} s (build timeout)"
    stream = client.api.build(
        fileobj=io.BytesIO(context.archive), custom_context=True, tag=tag, rm=True, forcerm=True, labels=labels, timeout=timeout,
        network_mode=network,
        container_limits={"memory": memory_mb << 20, "memswap": memory_mb << 20},
    )  # fmt: skip
    try:
        for event in _events(stream):
            text = event.get("stream") or event.get("error") or ""
            log.append(text)
            match = _STEP.match(text)
            step = int(match.group(1)) if match else step
            if "error" in event:
                raise _build_error(context, step, event["error"].strip(), "".join(log))
            if time.monotonic() > end:
                raise _build_error(context, step, late, "".join(log))
    except (urllib3.exceptions.ReadTimeoutError, requests.Timeout, requests.ConnectionError):
        if time.monotonic() < end - 0.1:
            raise  # the engine is gone
        raise _build_error(context, step, late, "".join(log)) from None  # a step that says nothing
    except APIError as error:
        message = str(error.explanation or error)
        if error.is_server_error() and not _LINE.search(message) and "dockerfile" not in message.lower():
            raise SandboxError(f"the Docker engine failed while building: {message}") from error
        raise _build_error(context, 0, message, "".join(log)) from error
    finally:
        stream.close()  # the engine cancels a build whose client left


def _events(stream: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    rest = b""
    for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield json.loads(line)
    if rest.strip():
        yield json.loads(rest)


def _build_error(context: Context, step: int, message: str, log: str) -> BuildError:
    tail = "\n".join(log.strip().splitlines()[-30:])[-4000:]
    match = _LINE.search(message)
    if match:
        line, what = int(match.group(1)), ""
    elif 0 < step <= len(context.instructions):
        name, line, value = context.instructions[step - 1]
        what = f": {name} {value[:120]}"
    else:
        line, what = None, ""
    where = f"Dockerfile line {line}{what}" if line else "Dockerfile"
    return BuildError(f"{where}: {message}", line=line, log=tail)
