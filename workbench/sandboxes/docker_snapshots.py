"""The files of a container at one moment, and how a new container gets them.

As they are: an image committed from the container. With `trusted_system`: the pristine image, and on top of it each
changed file that is not below SYSTEM_PATHS, carried over the engine's archive API; no program of the snapshot runs.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
import tarfile
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from workbench.sandboxes import SYSTEM_PATHS, SandboxError
from workbench.sandboxes.docker_changes import ADDED, DELETED, MODIFIED, changes, upper_folder
from workbench.sandboxes.docker_files import inside, open_stream
from workbench.sandboxes.docker_owner import LABEL, owner

REPOSITORY = "workbench/snapshot"


def is_system(path: str) -> bool:
    return any(path == p or path.startswith(p + "/") for p in SYSTEM_PATHS)


class Saved:
    """A snapshot's handle. sealed: `container` is stopped and holds the files itself; else a committed image does.

    The image is removed when this object is no longer used, or by `clean` when our process died before.
    """

    def __init__(self, client: Any, container: str, name: str, *, sealed: bool):
        self._client, self._name, self._lock = client, name, threading.Lock()
        self._container = container
        self.sealed = sealed
        self.upper: Path | None = None  # where this machine keeps the files that changed, once nothing runs there
        if sealed:
            self.upper = upper_folder(client, container)
            self._image: str | None = None
            self.changes = changes(client, container)
            return
        client.api.pause(container)  # changes and image must speak of the same moment
        try:
            self.changes = changes(client, container)
            self._image = self._commit()
        finally:
            client.api.unpause(container)

    def image(self) -> str:
        """An image with these files."""
        with self._lock:
            if self._image is None:
                self._image = self._commit()
            return self._image

    def _commit(self) -> str:
        config = {"Labels": {LABEL: owner(), "workbench.snapshot": self._name}}
        made = self._client.api.commit(self._container, repository=REPOSITORY, tag=self._name, conf=config, pause=False)
        weakref.finalize(self, _remove_image, self._client, f"{REPOSITORY}:{self._name}")
        return made["Id"]

    @contextlib.contextmanager
    def container(self):
        """Id of a container that shows these files and runs nothing."""
        if self.sealed:
            self._client.api.inspect_container(self._container)  # raises when its sandbox was stopped
            yield self._container
            return
        made = self._client.api.create_container(
            self.image(), ["true"], labels={LABEL: owner()}, network_disabled=True
        )["Id"]
        try:
            yield made
        finally:
            self._client.api.remove_container(made, force=True, v=True)


def _remove_image(client: Any, name: str) -> None:
    with contextlib.suppress(Exception):
        client.api.remove_image(name, force=True)


def restore(client: Any, saved: Saved, sandbox: Any) -> None:
    """Bring the changes of `saved` into the running, still untouched DockerSandbox `sandbox`, system paths left out.

    Raises SandboxError when the snapshot is gone.
    """
    from docker.errors import APIError, NotFound

    relevant = {path: kind for path, kind in saved.changes.items() if not is_system(path)}
    try:
        with saved.container() as source:
            gone = [p for path, kind in relevant.items() if kind == DELETED for p in _spared(sandbox, path)]
            roots = _roots(client, source, relevant, {posixpath.dirname(path) for path in saved.changes})
            sandbox.remove_paths([*gone, *_turned(client, sandbox.container, roots)])
            if roots:
                with tempfile.TemporaryFile() as spool:
                    _collect(client, saved, source, roots, spool)
                    spool.seek(0)
                    sandbox.unpack(spool)
    except NotFound as error:
        raise SandboxError("the snapshot is gone: its sandbox was stopped") from error
    except APIError as error:
        raise SandboxError(f"the engine could not restore a snapshot: {error}") from error


def _spared(sandbox: Any, path: str) -> list[str]:
    """What to delete for a deleted `path`: itself, or, where system paths (and mounts of ours) lie below it, all but those."""
    if is_system(path):
        return []
    if not any(system.startswith(path.rstrip("/") + "/") for system in SYSTEM_PATHS):
        return [path]
    listed = sandbox.exec(["find", path, "-mindepth", "1", "-maxdepth", "1", "-print0"], cwd="/", user="0").stdout
    return [p for name in listed.split("\0") if name for p in _spared(sandbox, name)]


def _roots(client: Any, source: str, changes: dict[str, int], parents: set[str]) -> list[str]:
    """The fewest paths whose archives hold every change: whole new folders, single changed files.

    A folder that is only marked as modified stands for its children, which are listed themselves. One marked as
    deleted that is there all the same was removed and made anew. parents: folders that hold any change.
    """
    roots: list[str] = []
    for path, kind in sorted(changes.items()):
        if roots and path.startswith(roots[-1] + "/"):
            continue
        if kind == MODIFIED and path in parents:
            continue
        if kind != ADDED:
            info = _stat(client, source, path)
            if info is None or (kind == MODIFIED and _is_folder(info)):
                continue
        roots.append(path)
    return roots


def _turned(client: Any, target: str, roots: list[str]) -> list[str]:
    """Parents of changed paths that the pristine image has as links or files: they would lead writes elsewhere."""
    parents = set()
    for root in roots:
        parent = posixpath.dirname(root)
        while parent != "/":
            parents.add(parent)
            parent = posixpath.dirname(parent)
    infos = {path: _stat(client, target, path) for path in parents}
    return sorted(path for path, info in infos.items() if info is not None and not _is_folder(info))


def _stat(client: Any, container: str, path: str) -> dict[str, Any] | None:
    """What the engine says of a path (links not followed), None when it is not there."""
    import base64
    import json

    url = client.api._url("/containers/{0}/archive", container)
    answer = client.api.head(url, params={"path": path}, timeout=60)
    if answer.status_code == 404:
        return None
    answer.raise_for_status()
    return json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))


def _is_folder(info: dict[str, Any]) -> bool:
    return bool(info["mode"] & (1 << 31))  # the engine sends Go's file mode: its highest bit says folder


def _collect(client: Any, saved: Saved, source: str, roots: list[str], spool: IO[bytes]) -> None:
    """Write one archive of all `roots`, members under their full paths: from the layer's own folder where that is ours
    to read, else over the engine."""
    if saved.upper is not None:
        try:
            with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as out:
                for root in roots:
                    out.add(f"{saved.upper}{root}", root.lstrip("/"), filter=_whole(saved.upper))
            return
        except (OSError, RecursionError):  # trees that are too deep, a layer that is no plain copy
            spool.seek(0)
            spool.truncate()
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as out:
        for root in roots:
            _carry(client, source, root, out)


def _whole(upper: Path) -> Callable[[tarfile.TarInfo], tarfile.TarInfo | None]:
    """A filter as `renamed`. OSError for an entry whose contents overlayfs keeps elsewhere."""

    def check(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        marks = os.listxattr(upper / member.name, follow_symlinks=False)
        if "trusted.overlay.redirect" in marks or "trusted.overlay.metacopy" in marks:
            raise OSError(f"{member.name} is not whole in its layer")
        return member if renamed(member, "", trusted=True) else None

    return check


def _carry(client: Any, source: str, root: str, out: tarfile.TarFile) -> None:
    """Add one path of `source`, members renamed to their full paths."""
    chunks, _ = client.api.get_archive(source, root, chunk_size=1 << 20)
    parent = posixpath.dirname(root).strip("/")
    with open_stream(chunks) as tar:
        for member in tar:
            if renamed(member, parent, trusted=True):
                out.addfile(member, tar.extractfile(member) if member.isreg() else None)


def renamed(member: tarfile.TarInfo, parent: str, *, trusted: bool) -> bool:
    """Give an archive's member its full path, below `parent`. False when it must not be carried over."""
    name = inside(member.name)
    if name is None or not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return False
    member.name = posixpath.join(parent, name)
    if trusted and is_system("/" + member.name):
        return False
    if member.islnk():
        linked = inside(member.linkname)
        if linked is None or (trusted and is_system("/" + posixpath.join(parent, linked))):
            return False
        member.linkname = posixpath.join(parent, linked)
    if trusted and stat.S_IMODE(member.mode) & 0o6000:
        member.mode &= 0o1777  # set-user-id programs of an agent's are not carried into a grader
    member.pax_headers = {}
    return True
