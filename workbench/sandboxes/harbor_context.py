"""A task's build folder for Harbor, and what Harbor's errors say of it."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workbench.sandboxes import BuildError, SandboxError
from workbench.sandboxes.docker_images import Context

_LINE = re.compile(r"(?:[Dd]ockerfile(?: parse error)?(?: on)?(?: line |:)|line )(\d+)")


def unpack_context(archive: bytes, folder: Path) -> None:
    """Write a context that `read_context` packed (so its names are clean) to a folder that appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(made, filter="tar")
        made.chmod(0o755)
        made.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


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


def blame(error: SandboxError, context: Context, words: Sequence[str]) -> Exception:
    """The task's fault (BuildError with the line) when the message speaks of the build, else infrastructure's."""
    cause = error.__cause__
    message = str(error)
    if isinstance(cause, BuildError):
        return cause
    named = type(cause).__name__ if cause is not None else ""
    if named != "SandboxBuildFailedError" and not any(word in message.lower() for word in words):
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
