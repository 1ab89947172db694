"""What a proposer leaves behind, taken out of its sandbox: plain files of plain names, of bounded number and size.

Safety lies in `Sandbox.get`, which never follows or makes a link. What is listed in the sandbox first only makes for words
that tell the proposer what was wrong: a sandbox that lies about it loses its odd files and no more.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from workbench.proposer.tools_wire import unsafe_name
from workbench.sandboxes import Sandbox
from workbench.tasks.digest import TooMany, walk

_LISTING = 400  # of the odd names that are looked at


@dataclass(frozen=True)
class Taken:
    """path: the task on the host, or None with `kind` (no-files, link, special-file, too-many-files, too-large, bad-name,
    unsafe-path) and a message that says what to do."""

    path: Path | None
    kind: str = ""
    message: str = ""


def take(sandbox: Sandbox, source: str, target: Path, *, max_bytes: int = 64 << 20, max_files: int = 4_000) -> Taken:
    """Copy the folder `source` out to `target`, replacing what is there. Raises SandboxError for a sandbox that is gone."""
    if target.exists():
        shutil.rmtree(target)
    refused = _look(sandbox, source, max_files)
    if refused is None:
        try:
            sandbox.get(source, target, max_bytes=max_bytes)
            refused = _check(target, max_files)
        except FileNotFoundError:
            refused = Taken(None, "no-files", f"there is no {source}: write the task there before you submit")
        except ValueError as error:
            kind = (
                "too-many-files" if "files" in str(error) else "too-large" if "bytes" in str(error) else "unsafe-path"
            )
            refused = Taken(None, kind, f"{error}: make large data in a RUN step of the Dockerfile")
        except OSError as error:
            refused = Taken(None, "bad-name", f"a file cannot be written outside: {error.strerror}")
    if refused is None:
        return Taken(target)
    _remove(target)
    return refused


def _look(sandbox: Sandbox, source: str, max_files: int) -> Taken | None:
    """Ask the sandbox for what `get` would leave out, and for the number of files."""
    script = f'cd -- "$1" && {{ find . ! -type d ! -type f -printf "%y %p\\0" | head -c 40000; printf "\\0#"; find . | head -n {max_files + 2} | wc -l; }}'
    try:
        result = sandbox.exec(["bash", "-c", script, "look", source], timeout=60)
    except ValueError:
        return None
    odd, _, count = result.stdout.rpartition("\0#")
    for entry in [e for e in odd.split("\0") if e][:_LISTING]:
        kind, _, name = entry.partition(" ")
        what = "link" if kind == "l" else "special-file"
        return Taken(
            None,
            what,
            f"{name[:200]!r} is a {'link' if kind == 'l' else 'special file'}: a task holds plain files only",
        )
    if count.strip().isdigit() and int(count) > max_files + 1:
        return Taken(
            None, "too-many-files", f"more than {max_files:,} files; make them in a RUN step of the Dockerfile"
        )
    return None


def _check(target: Path, max_files: int) -> Taken | None:
    """The copy itself, whatever the sandbox said."""
    if target.is_file():
        return Taken(None, "no-files", "the task must be a folder")
    try:
        entries = list(walk(target, max_files))
    except TooMany as error:
        return Taken(None, "too-many-files", str(error))
    if not entries:
        return Taken(None, "no-files", "the task's folder is empty: write the task there before you submit")
    for entry in entries:
        if entry.kind != "file":  # cannot be: get makes none
            return Taken(None, "link", f"{entry.path!r} is not a plain file")
        if why := unsafe_name(entry.path):
            return Taken(None, why, f"{entry.path[:200]!r}: use plain names without odd characters")
    return None


def _remove(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target, ignore_errors=True)
    else:
        target.unlink(missing_ok=True)
