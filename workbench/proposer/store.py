"""What a proposer keeps across rounds: `memory/` and `tools/`, every version of both, and what changed between two.

Versions are whole copies, numbered from 0. Episodes of one round run side by side and all begin with the same version; each
one's changes are laid over the newest version when it ends, file by file (the later writer of a file wins, and the record
says whose text it replaced: that is still in its own version). This is the store half of AutoEnvScaling's harness
optimization (§3.1, §3.3); how edits are merged is not published and is our choice.
"""

from __future__ import annotations

import difflib
import json
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.tasks.digest import digest, read_plain
from workbench.trials import plain

PARTS = ("memory", "tools")
MAX_BYTES, MAX_FILES = 4 << 20, 400
Files = Mapping[str, tuple[bytes, bool]]  # path → (bytes, x bit)


@dataclass(frozen=True)
class Version:
    """One version. number: its place; parent: the version it was laid over; started: what its episode had begun with.
    source: the episode. changed: paths added, changed or removed. replaced: of these, the ones that another episode had
    changed since `started`."""

    number: int
    digest: str
    time: float
    source: str = ""
    parent: int | None = None
    started: int | None = None
    changed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        return {**self.__dict__, "changed": list(self.changed), "replaced": list(self.replaced)}


class HarnessStore:
    """A folder of versions. One object a process may serve many threads; one process writes a folder at a time.

    folder: `versions/0000/{memory,tools}/…`, `versions.jsonl` (a line a version), `rounds.json` (round → version).
    """

    def __init__(self, folder: str | Path, seed: str | Path | None = None):
        """seed: a folder with `memory/` and `tools/` for version 0 (default: both hold a README)."""
        self.folder = Path(folder)
        self._lock = threading.RLock()
        self.versions: list[Version] = self._read()
        if not self.versions:
            first = _read_files(Path(seed)) if seed is not None else _FIRST
            self._write(first, source="seed", parent=None, started=None, changed=(), replaced=())

    def _read(self) -> list[Version]:
        path = self.folder / "versions.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        found = []
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # torn by a crash: its folder is written again under the same number
            found.append(Version(**{**row, "changed": tuple(row["changed"]), "replaced": tuple(row["replaced"])}))
        return found

    @property
    def latest(self) -> Version:
        return self.versions[-1]

    def path(self, number: int) -> Path:
        """The folder of a version. Raises KeyError when there is none."""
        if not 0 <= number < len(self.versions):
            raise KeyError(f"{self.folder}: no version {number}; there are 0 to {len(self.versions) - 1}")
        return self.folder / "versions" / f"{number:04d}"

    def for_round(self, round: int) -> Version:
        """The version that every episode of a round begins with: the newest one when the round is first asked for."""
        with self._lock:
            path = self.folder / "rounds.json"
            pinned = json.loads(path.read_text()) if path.is_file() else {}
            if str(round) not in pinned:
                pinned[str(round)] = self.latest.number
                _replace(path, json.dumps(pinned, indent=1) + "\n")
            return self.versions[pinned[str(round)]]

    def save(self, edited: Path, *, started: int, source: str) -> Version:
        """Lay what an episode changed (`edited` against version `started`) over the newest version. Without a change that
        is the newest version itself. Raises ValueError when it is too large to keep."""
        ours, base = _read_files(edited), _read_files(self.path(started))
        changed = tuple(sorted(name for name in {*ours, *base} if ours.get(name) != base.get(name)))
        with self._lock:
            head = self.latest
            there = _read_files(self.path(head.number))
            replaced = tuple(name for name in changed if there.get(name) not in (base.get(name), ours.get(name)))
            merged = {name: data for name, data in there.items() if name not in changed}
            merged |= {name: ours[name] for name in changed if name in ours}
            lost = _in_the_way(merged, {name for name in changed if name in ours})
            replaced += tuple(sorted(lost))
            merged = {name: data for name, data in merged.items() if name not in lost}
            if merged == there:
                return head
            _check_size(merged)
            return self._write(
                merged, source=source, parent=head.number, started=started, changed=changed, replaced=replaced
            )

    def _write(self, files: Files, **fields: Any) -> Version:
        number = len(self.versions)
        folder = self.folder / "versions" / f"{number:04d}"
        if folder.exists():
            shutil.rmtree(folder)
        for part in PARTS:
            (folder / part).mkdir(parents=True)
        for name, (data, executable) in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if executable else 0o644)
        version = Version(number, digest(folder), time.time(), **fields)
        lines = "".join(json.dumps(v.to_row()) + "\n" for v in [*self.versions, version])
        _replace(self.folder / "versions.jsonl", lines)
        self.versions.append(version)
        return version

    def diff(self, old: int, new: int) -> str:
        """What changed from one version to another, as a unified diff without control characters (it is shown on terminals);
        files that are no text are named only."""
        before, after = _read_files(self.path(old)), _read_files(self.path(new))
        parts = []
        for name in sorted({*before, *after}):
            a, b = before.get(name, (b"", False)), after.get(name, (b"", False))
            if a == b:
                continue
            if b"\0" in a[0] + b[0]:
                parts.append(f"binary file {name} differs\n")
                continue
            texts = [plain(data.decode("utf-8", "replace")).splitlines(keepends=True) for data, _ in (a, b)]
            lines = difflib.unified_diff(*texts, f"{old:04d}/{name}", f"{new:04d}/{name}")
            text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
            parts.append(text or f"{'mode' if a[0] == b[0] else 'control characters'} of {name} changed\n")
        return "".join(parts)


_FIRST: Files = {
    "memory/README.md": (
        b"# Memory\n\nNotes that you keep for later rounds: what worked, what was refused and why.\n",
        False,
    ),
    "tools/README.md": (b"# Tools\n\nPrograms of your own that you keep for later rounds.\n", False),
}


def _read_files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Plain files below memory/ and tools/; links and special files are not there. ValueError when there is too much."""
    found: dict[str, tuple[bytes, bool]] = {}
    left = MAX_BYTES
    for part in PARTS:
        for path in sorted((folder / part).rglob("*")):
            if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts:
                continue
            if len(found) >= MAX_FILES:
                raise ValueError(f"memory/ and tools/ hold more than {MAX_FILES} files")
            data = read_plain(path, left)
            left -= len(data)
            found[str(path.relative_to(folder))] = (data, bool(path.stat().st_mode & 0o100))
    return found


def _in_the_way(files: Files, newer: Iterable[str]) -> set[str]:
    """Files of another episode that stand where a newer one needs a folder, or below what a newer one made a file."""
    newer = set(newer)
    above = {"/".join(parts[:n]) for name in newer if (parts := name.split("/")) for n in range(1, len(parts))}
    return {n for n in files if n not in newer and (n in above or any(n.startswith(f"{own}/") for own in newer))}


def _check_size(files: Files) -> None:
    if sum(len(data) for data, _ in files.values()) > MAX_BYTES or len(files) > MAX_FILES:
        raise ValueError(f"memory/ and tools/ together hold more than {MAX_BYTES:,} bytes or {MAX_FILES} files")


def _replace(path: Path, text: str) -> None:
    made = path.with_suffix(".new")
    made.write_text(text, encoding="utf-8")
    made.replace(path)
