"""Folders on disk: layers shared by all (named by content), and the folder of one host process with its sandboxes."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH115, PTH101, PTH113, PTH118, PTH123
from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.runs.temporary import start_time
from workbench.sandboxes import cgroups as cg
from workbench.sandboxes.warden import trees


def mapped_range() -> tuple[int, int]:
    """(first host uid, how many) that sandboxes of root use: none of them belongs to anybody, so a sandbox's root is
    nobody outside. (uid, 1) for an ordinary user, whose sandboxes can only hold that one user."""
    if os.geteuid() != 0:
        return os.geteuid(), 1
    first, count = 0x70000000, 65536
    rows = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    if any(start <= first and first + count <= start + length for start, _, length in rows):
        return first, count
    start, _, length = max(rows, key=lambda row: row[2])  # in a container: the upper half of what it may use
    count = min(count, length // 2)
    return start + length - count, count


def here() -> tuple[str, str]:
    """(this boot, this process namespace): a pid means something only to processes of the same two."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")


def give_away(folder: Path) -> None:
    """As root: make `folder` and all in it the property of the sandboxes' root, who is nobody outside."""
    if os.geteuid() != 0:
        return
    first, count = mapped_range()
    for path, folders, files in os.walk(folder):
        for name in (path, *(os.path.join(path, name) for name in (*folders, *files))):
            info = os.lstat(name)
            if info.st_uid < count and info.st_uid != first:
                mode = info.st_mode
                os.chown(
                    name, first + info.st_uid if info.st_uid < first else info.st_uid, first, follow_symlinks=False
                )
                if mode & 0o6000 and os.path.isfile(name):
                    os.chmod(name, mode & 0o7777)  # chown clears these


_OPEN: dict[tuple[Path, int], Host] = {}
_GUARD = threading.Lock()


class Host:
    """This process's own: the folder `hosts/PID-STARTTIME`, found by `clean` when the process is dead, and its control
    groups. All back ends of one process share it; the last one that closes removes it."""

    def __init__(self, state: Path):
        self.state, self.users, self.pid = state, 0, os.getpid()
        self.name = f"{os.getpid()}-{start_time(os.getpid())}"
        self.numbers = itertools.count(1)
        self.hierarchy: cg.Hierarchy | None = None
        for folder in (state, state / "hosts", state / "layers", state / "locks"):
            folder.mkdir(parents=True, exist_ok=True)
            if folder.stat().st_uid == os.geteuid():
                folder.chmod(0o711)
        self.folder = state / "hosts" / self.name
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o711)

    @staticmethod
    def open(state: Path) -> Host:
        with _GUARD:
            key = (state, os.getpid())
            if key not in _OPEN:
                host = _OPEN[key] = Host(state)
                host.hierarchy = cg.find(f"workbench-{host.name}")
                host.record(list(dict.fromkeys(host.hierarchy.folders.values())) if host.hierarchy else [])
            _OPEN[key].users += 1
            return _OPEN[key]

    def close(self) -> None:
        with _GUARD:
            self.users -= 1
            if self.users or self.pid != os.getpid():
                return
            _OPEN.pop((self.state, self.pid), None)
            if self.hierarchy:
                self.hierarchy.remove()
            with contextlib.suppress(OSError):
                trees.remove(str(self.folder))

    def record(self, cgroups: list[Path]) -> None:
        """What `clean` must look for when this process died: its groups (its folder says the rest)."""
        temporary = self.folder / "host.json.new"
        boot, namespace = here()
        about = {"cgroups": [str(path) for path in cgroups], "boot": boot, "pids": namespace}
        temporary.write_text(json.dumps(about))
        temporary.rename(self.folder / "host.json")

    def new_folder(self, kind: str, label: str = "") -> Path:
        folder = self.folder / f"{kind}-{next(self.numbers)}"
        folder.mkdir(mode=0o755)
        if os.geteuid() == 0:
            first, _ = mapped_range()
            os.chown(folder, first, first)
        if label:
            (self.folder / f"{folder.name}.label").write_text(label)
        return folder

    def relative(self, folder: Path) -> str:
        return str(folder.relative_to(self.state))

    def remove(self, folder: Path) -> None:
        trees.remove(str(folder))
        (self.folder / f"{folder.name}.label").unlink(missing_ok=True)


class Store:
    """Layers in `layers/KEY`: built once whoever asks first, complete or absent."""

    def __init__(self, host: Host):
        self.host = host

    def path(self, key: str) -> Path:
        return self.host.state / "layers" / key

    def layer(self, key: str, build: Callable[[Path], None]) -> str:
        """The relative folder of layer `key`; `build(folder)` fills it when it is not there yet."""
        target = self.path(key)
        if not target.is_dir():
            with self.locked(key):
                if not target.is_dir():
                    folder = self.host.new_folder("build")
                    try:
                        build(folder)
                        folder.rename(target)
                    finally:
                        if folder.exists():
                            trees.remove(str(folder))
        return self.host.relative(target)

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """One builder at a time, over all processes of this machine; a dead builder's lock is free."""
        with open(self.host.state / "locks" / key, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
