"""Limits through control groups: version 1, version 2, or a hybrid, below this process's own group where writable."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from workbench.sandboxes import Limits

_WANTED = ("memory", "pids", "cpu")
_PERIOD_US = 100_000
_OVERHEAD = 4  # the warden and its parent, bwrap and the first process are in the group too


@dataclass
class Group:
    """One sandbox's group: a folder for each controller (the same one for all with version 2)."""

    folders: dict[str, Path]
    version: int

    def join(self, pid: int) -> None:
        for folder in dict.fromkeys(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def apply(self, limits: Limits) -> None:
        memory = str(limits.memory_mb << 20)
        quota = str(max(int(limits.cpus * _PERIOD_US), 1000))
        if self.version == 2:
            self._write("memory", "memory.swap.max", "0")
            self._write("memory", "memory.max", memory)
            self._write("cpu", "cpu.max", f"{quota} {_PERIOD_US}")
        else:
            self._write("memory", "memory.limit_in_bytes", memory)
            self._write("cpu", "cpu.cfs_period_us", str(_PERIOD_US))
            self._write("cpu", "cpu.cfs_quota_us", quota)
        self._write("pids", "pids.max", str(limits.processes + _OVERHEAD))

    def _write(self, controller: str, name: str, value: str) -> None:
        if controller in self.folders and (self.folders[controller] / name).exists():
            (self.folders[controller] / name).write_text(value)

    def counters(self) -> tuple[int, int]:
        """(processes killed for memory, forks refused) since the group was made."""
        memory = "memory.events" if self.version == 2 else "memory.oom_control"
        return self._count("memory", memory, "oom_kill"), self._count("pids", "pids.events", "max")

    def _count(self, controller: str, name: str, key: str) -> int:
        if controller not in self.folders:
            return 0
        try:
            lines = (self.folders[controller] / name).read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.split()[0] == key), 0)

    def remove(self) -> None:
        for folder in dict.fromkeys(self.folders.values()):
            remove_group(folder)


def remove_group(folder: Path, seconds: float = 2.0) -> bool:
    """Remove an empty group; the kernel may take a moment after its last process."""
    until = time.monotonic() + seconds
    while True:
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)


@dataclass
class Hierarchy:
    """Where this host process makes its groups. `folders`: controller -> a folder of this host's own."""

    folders: dict[str, Path]
    version: int
    controllers: tuple[str, ...] = field(default=())

    def group(self, name: str) -> Group:
        made = {}
        for controller, folder in self.folders.items():
            made[controller] = folder / name
            made[controller].mkdir(exist_ok=True)
        return Group(made, self.version)

    def remove(self) -> None:
        for folder in dict.fromkeys(self.folders.values()):
            remove_group(folder)


def _mounts() -> list[tuple[str, str, Path, str]]:
    """(kind, options, mount point, root within the hierarchy) of every cgroup mount."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            words = left.split()
            found.append((kind, options, Path(words[4]), words[3]))
    return found


def _own_folder(point: Path, root: str, path: str) -> Path:
    below = os.path.relpath(path, root) if path.startswith(root) else "."
    folder = point / below
    return folder if folder.is_dir() else point


def find(label: str) -> Hierarchy | None:
    """A hierarchy of groups called `label`, made now, with the controllers that can be had; None when there is none."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = {name: path for _, names, path in rows for name in names.split(",")}
    folders: dict[str, Path] = {}
    for kind, options, point, root in _mounts():
        if kind == "cgroup":
            for name in set(_WANTED) & set(options.split(",")):
                _try_make(folders, name, _own_folder(point, root, own.get(name, "/")) / label)
    if folders:
        return Hierarchy(folders, 1, tuple(sorted(folders)))
    for kind, _, point, root in _mounts():
        if kind == "cgroup2":
            return _find_v2(point, _own_folder(point, root, own.get("", "/")), label)
    return None


def _try_make(folders: dict[str, Path], name: str, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return
    if os.access(folder / "cgroup.procs", os.W_OK):
        folders[name] = folder


def _find_v2(point: Path, own: Path, label: str) -> Hierarchy | None:
    """Version 2 forbids processes beside groups: take the nearest ancestor that hands controllers down."""
    for parent in [own, *own.parents]:
        if parent == point.parent:
            return None
        try:
            offered = set((parent / "cgroup.subtree_control").read_text().split())
            names = tuple(name for name in _WANTED if name in offered)
            if not names or not os.access(parent / "cgroup.procs", os.W_OK):
                continue
            folder = parent / label
            folder.mkdir(exist_ok=True)
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
        except OSError:
            continue
        return Hierarchy(dict.fromkeys(names, folder), 2, names)
    return None
