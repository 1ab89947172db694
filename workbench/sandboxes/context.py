"""The folder that COPY and ADD take from: which files, their digest, and a copy with nothing that leads out of it."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH115, PTH118
from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import stat
from pathlib import Path

from workbench.sandboxes.dockerfile import Step


class Context:
    def __init__(self, folder: Path):
        self.folder = folder.resolve(strict=True)
        self.rules = _rules(self.folder / ".dockerignore")

    def ignored(self, path: Path) -> bool:
        """The last matching line of .dockerignore decides; a line covers what lies below what it names."""
        name = path.relative_to(self.folder).as_posix()
        verdict = False
        for pattern, keep in self.rules:
            if pattern.match(name):
                verdict = not keep
        return verdict

    def items(self, step: Step, sources: list[str], destination: str) -> list[tuple[Path, str]]:
        """(host path, absolute target) for each source. A folder's contents go into the target; a file goes to the
        target, or into it when it ends with / or several are copied."""
        found = [path for source in sources for path in self._matches(step, source)]
        into = destination.endswith("/") or len(found) > 1
        if len(found) > 1 and not destination.endswith("/"):
            raise step.fault(f"several sources need a destination that ends with / (not {destination!r})")
        place = os.path.normpath(destination)
        return [(path, place if path.is_dir() or not into else os.path.join(place, path.name)) for path in found]

    def _matches(self, step: Step, source: str) -> list[Path]:
        name = os.path.normpath(source.lstrip("/") or ".")
        if any(letter in name for letter in "*?["):
            found = sorted(self.folder.glob(name))
        else:
            found = [self.folder / name] if (self.folder / name).exists() else []
        found = [path for path in found if path == self.folder or not self.ignored(path)]
        if not found:
            spaced = [part for part in self.folder.rglob("* *") if source in part.name.split()]
            hint = f'. For a name with spaces write a list: {step.name} ["{spaced[0].name}", "…"]' if spaced else ""
            raise step.fault(f"{source!r} is not in {self.folder.name}/ (or .dockerignore leaves it out){hint}")
        return [self._inside(step, path) for path in found]

    def _inside(self, step: Step, path: Path) -> Path:
        if path.resolve() != path and not path.resolve().is_relative_to(self.folder):
            raise step.fault(f"{path.name!r} is a link that leaves {self.folder.name}/")
        return path

    def _walk(self, source: Path) -> list[Path]:
        """`source` and everything below it that is not ignored, in a fixed order, links not followed."""
        if not source.is_dir() or source.is_symlink():
            return [source]
        found = [source]
        for folder, folders, names in os.walk(source):
            folders.sort()
            paths = [Path(folder, name) for name in (*folders, *sorted(names))]
            found += [path for path in paths if not self.ignored(path)]
        return found

    def digest(self, source: Path) -> str:
        """Of names, kinds, modes and bytes; times do not count."""
        whole = hashlib.sha256()
        for path in self._walk(source):
            info = path.stat() if path == source else path.lstat()
            name = path.relative_to(source).as_posix() if path != source else ""
            whole.update(f"\0{name}\0{stat.S_IFMT(info.st_mode)}\0{stat.S_IMODE(info.st_mode)}\0".encode())
            if stat.S_ISLNK(info.st_mode):
                whole.update(os.readlink(path).encode())
            elif stat.S_ISREG(info.st_mode):
                with path.open("rb") as file:
                    whole.update(hashlib.file_digest(file, "sha256").digest())
        return whole.hexdigest()

    def stage(self, source: Path, target: Path, step: Step, mode: str) -> Path:
        """What of `source` is copied, at `target`, with --chmod applied."""
        if mode and not re.fullmatch(r"[0-7]{3,4}", mode):
            raise step.refuse(f"--chmod={mode} is not an octal number")
        for path in self._walk(source):
            goal = target / path.relative_to(source) if path != source else target
            if path.is_symlink() and path != source:
                goal.symlink_to(os.readlink(path))
                continue
            if path.is_dir():
                goal.mkdir(parents=True, exist_ok=True)
                shutil.copymode(path, goal)
            elif path.is_file():
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, goal)
            else:
                raise step.fault(f"{path.name!r} is neither a file nor a folder")
            if mode:
                goal.chmod(int(mode, 8))
        return target


def _rules(path: Path) -> list[tuple[re.Pattern[str], bool]]:
    """(pattern, is it an exception) for each line of .dockerignore."""
    if not path.is_file():
        return []
    rules = []
    for line in path.read_text("utf-8-sig").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        keep, line = line.startswith("!"), os.path.normpath(line.removeprefix("!").strip()).lstrip("/")
        rules.append((re.compile(_pattern(line)), keep))
    return rules


def _pattern(line: str) -> str:
    """`**` crosses folders, `*` and `?` do not; what lies below a match matches too."""
    parts = []
    for part in re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", line):
        if part.startswith("**"):
            parts.append("(?:.*/)?" if part.endswith("/") else ".*")
        elif part == "*":
            parts.append("[^/]*")
        elif part == "?":
            parts.append("[^/]")
        elif part.startswith("["):
            parts.append(fnmatch.translate(part)[4:-3])
        else:
            parts.append(re.escape(part))
    return "".join(parts) + r"(?:/.*)?\Z"
