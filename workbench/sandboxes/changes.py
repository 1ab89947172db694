"""What changed in folders of a living sandbox since the last look, as bytes in memory: for a grader outside of it.

Back ends that can tell (bubblewrap) read only what changed; others read the folders anew and compare. Either way the
agent's processes stand still meanwhile where the back end can pause them, links are not followed, and sizes are capped.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import nullcontext
from pathlib import Path

from workbench.runs.temporary import prefix
from workbench.sandboxes import Sandbox

MAX_FILES = 5000


class Watcher:
    """Looks at `workspace`/<path> for each folder of `paths`."""

    def __init__(self, sandbox: Sandbox, workspace: str, paths: tuple[str, ...], *, max_bytes: int):
        self.sandbox, self.workspace, self.paths, self.max_bytes = sandbox, workspace.rstrip("/"), paths, max_bytes
        self._known: dict[str, dict[str, object]] = {path: {} for path in paths}

    def look(self) -> tuple[dict[str, bytes], list[str]]:
        """(path below the workspace -> new bytes, names gone). ValueError when the folders hold too much, or are none; the
        next look then starts from nothing, and says that everything before is gone."""
        changed: dict[str, bytes] = {}
        gone: list[str] = []
        with getattr(self.sandbox, "paused", nullcontext)():
            for path in self.paths:
                new, old = self._one(f"{self.workspace}/{path}", self._known[path])
                changed |= {_join(path, name): data for name, data in new.items()}
                gone += [_join(path, name) for name in old]
        return changed, gone

    def forget(self) -> None:
        """The next look finds everything new."""
        self._known = {path: {} for path in self.paths}

    def _one(self, source: str, known: dict[str, object]) -> tuple[dict[str, bytes], list[str]]:
        if (changes := getattr(self.sandbox, "changes", None)) is not None:
            return changes(source, known, max_bytes=self.max_bytes, max_files=MAX_FILES)
        with tempfile.TemporaryDirectory(prefix=prefix("look")) as temporary:
            found = self._copy(source, Path(temporary) / "copy")
        digests = {name: hashlib.sha256(data).digest() for name, data in found.items()}
        gone = [name for name in known if name not in found]
        changed = {name: data for name, data in found.items() if known.get(name) != digests[name]}
        known.clear()
        known.update(digests)
        return changed, gone

    def _copy(self, source: str, target: Path) -> dict[str, bytes]:
        try:
            self.sandbox.get(source, target, max_bytes=self.max_bytes)
        except FileNotFoundError:
            return {}
        if not target.is_dir():
            raise ValueError(f"{source} is not a folder")
        files = [path for path in sorted(target.rglob("*")) if path.is_file() and not path.is_symlink()]
        if len(files) > MAX_FILES:
            raise ValueError(f"{source} holds more than {MAX_FILES} files")
        return {path.relative_to(target).as_posix(): path.read_bytes() for path in files}


def _join(path: str, name: str) -> str:
    return name if path in ("", ".") else f"{path.rstrip('/')}/{name}"
