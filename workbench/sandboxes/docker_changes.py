"""Which paths of a container differ from its image.

The engine answers this by walking both trees (0.2 s and more for a small image). On its own machine, as root and with
overlayfs, the container's upper folder says the same in a millisecond; only names and types in it are looked at.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

from workbench.sandboxes import SandboxOverrun

MODIFIED, ADDED, DELETED = 0, 1, 2  # the engine's numbers


def changes(client: Any, container: str) -> dict[str, int]:
    """Path → MODIFIED, ADDED or DELETED. A folder that was removed and made anew is DELETED, its contents are ADDED."""
    upper, lowers = _overlay(client.api.inspect_container(container))
    if upper is None:
        return {c["Path"]: c["Kind"] for c in client.api.diff(container) or []}
    found: dict[str, int] = {}
    _walk(upper, lowers, found)
    return found


def upper_folder(client: Any, container: str) -> Path | None:
    """Where this machine keeps what differs from the image; None when that is not ours to read."""
    return _overlay(client.api.inspect_container(container))[0]


def _overlay(info: dict[str, Any]) -> tuple[Path | None, list[str]]:
    """The upper folder and the lower ones, when they are this machine's and we may read them."""
    driver = info.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    upper = Path(data.get("UpperDir") or "/nonexistent")
    if (
        driver.get("Name") != "overlay2"
        or os.geteuid() != 0
        or info["Id"] not in _mount_owner(info)
        or not upper.is_dir()
    ):
        return None, []
    return upper, [folder for folder in (data.get("LowerDir") or "").split(":") if folder]


def _mount_owner(info: dict[str, Any]) -> str:
    """The engine's file of host names lies in the container's own folder: seeing it shows that this is its machine."""
    path = Path(info.get("HostsPath") or info.get("HostnamePath") or "/nonexistent")
    return str(path) if path.parent.is_dir() else ""


def _walk(upper: Path, lowers: list[str], found: dict[str, int]) -> None:
    """Fill `found` from the upper folder. Not recursive: a hostile tree may be deeper than Python's stack; one whose paths
    are longer than the system's limit cannot be carried over, and is its maker's doing."""
    waiting = [("", lowers)]
    while waiting:
        inside, lowers = waiting.pop()
        try:
            below = [_entry(e, f"{inside}/{e.name}", lowers, found) for e in os.scandir(f"{upper}{inside}")]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise SandboxOverrun(
                f"folders are nested too deep to take a snapshot ({len(inside):,} characters)"
            ) from error
        waiting += filter(None, below)


def _entry(
    entry: os.DirEntry[str], path: str, lowers: list[str], found: dict[str, int]
) -> tuple[str, list[str]] | None:
    """Note one entry; for a folder, where to go on and the lower folders that it merges with."""
    info = entry.stat(follow_symlinks=False)
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        found[path] = DELETED
        return None
    below = [f"{folder}{path}" for folder in lowers]
    if not entry.is_dir(follow_symlinks=False):
        found[path] = MODIFIED if any(os.path.lexists(p) for p in below) else ADDED
        return None
    if _opaque(entry.path):
        found[path] = DELETED
        return path, []
    # what lies below as no folder was replaced by this one
    under = [f for f, p in zip(lowers, below, strict=True) if os.path.isdir(p) and not os.path.islink(p)]  # noqa: PTH112, PTH114
    found[path] = MODIFIED if under else ADDED
    return path, under


def _opaque(path: str) -> bool:
    try:
        return os.getxattr(path, "trusted.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False
