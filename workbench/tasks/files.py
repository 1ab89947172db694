"""The files of one task: which are there, which cannot be trusted, and the reading of the required ones."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from workbench.tasks import Fault
from workbench.tasks.config import strip_canary
from workbench.tasks.digest import Entry, TooMany, read_plain, walk

MAX_BYTES = 256 << 20
MAX_TEXT = 1 << 20  # of task.toml, an instruction, a script

# Direction overrides and tags show a reader other words than the agent reads; control characters drive a terminal.
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\x01-\x08\x0b\x0e-\x1f\x7f]")


class TaskFiles:
    """The files of one task by path, and the faults found so far. broken: too odd to look any further."""

    def __init__(self, root: Path, max_bytes: int):
        self.root, self.faults, self.broken = root, [], False
        self.entries: list[Entry] = []
        try:
            self.entries.extend(walk(root))
        except TooMany as error:
            self.fault("too-large", f"{error}; a task has fewer")
            self.broken = True
        except OSError as error:
            self.fault(
                "unsafe-path", f"cannot be read ({error.strerror}); make it readable", printable(str(error.filename))
            )
            self.broken = True
        self.by_path = {entry.path: entry for entry in self.entries}
        total = sum(entry.size for entry in self.entries)
        if total > max_bytes:
            largest = max(self.entries, key=lambda entry: entry.size)
            self.fault(
                "too-large",
                f"{total:,} bytes in all, more than {max_bytes:,}; make large data in the Dockerfile or in a step of it",
                printable(largest.path),
            )
        for entry in self.entries:
            if message := _unsafe(entry, self.by_path):
                self.fault("unsafe-path", message, printable(entry.path))

    def fault(self, kind: Any, message: str, where: str = "") -> None:
        self.faults.append(Fault(kind, message, where))

    def has(self, path: str) -> bool:
        return path in self.by_path

    def has_folder(self, path: str) -> bool:
        return any(name.startswith(path + "/") for name in self.by_path)

    def read(self, path: str, what: str) -> bytes | None:
        """A required file's bytes, at most 1 MiB; None after noting the fault."""
        entry = self.by_path.get(path)
        linked = next((p for p in _parents(path) if p in self.by_path), None)
        if entry is None:
            more = f": {linked} is a link or a file; it must be a folder of its own" if linked else f"; {what}"
            self.fault("missing-file", f"not there{more}", path)
        elif entry.kind != "file":
            if not any(fault.where == path for fault in self.faults):
                self.fault("unsafe-path", "must be a file of its own, not a link", path)
        elif entry.size == 0:
            self.fault("missing-file", f"is empty; {what}", path)
        elif entry.size > MAX_TEXT:
            self.fault("too-large", f"{entry.size:,} bytes; at most {MAX_TEXT:,} are read", path)
        else:
            try:
                return read_plain(self.root / path, MAX_TEXT)
            except (OSError, ValueError) as error:
                self.fault("unsafe-path", f"cannot be read: {error}", path)
        return None

    def script(self, path: str, what: str) -> None:
        """A shell script that is run directly: there, with its x bit, and with an interpreter that exists."""
        data = self.read(path, what)
        if data is None:
            return
        if not self.by_path[path].executable:
            self.fault("not-executable", f"has no x bit: chmod +x {path}", path)
        first = data.partition(b"\n")[0]
        if first.startswith(b"#!") and first.endswith(b"\r"):
            self.fault(
                "lint", r"its lines end in \r\n, so its interpreter is not found: convert it with dos2unix", path + ":1"
            )

    def text(self, path: str, what: str) -> str:
        """An instruction: UTF-8, not blank, nothing hidden in it. "" after noting the fault."""
        data = self.read(path, what)
        if data is None:
            return ""
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.fault("wrong-type", f"expected UTF-8 text, got byte {data[error.start]:#04x} at {error.start}", path)
            return ""
        if "\0" in text:
            self.fault("wrong-type", f"expected text, got a NUL at character {text.index(chr(0))}", path)
            return ""
        if hidden := _HIDDEN.search(text):
            line = text.count("\n", 0, hidden.start()) + 1
            self.fault(
                "lint",
                f"hidden control character U+{ord(hidden[0]):04X}: a reader would not see it; remove it",
                f"{path}:{line}",
            )
        text = strip_canary(text)
        if not text.strip():
            self.fault("missing-file", f"is blank; {what}", path)
        return text


def _unsafe(entry: Entry, by_path: dict[str, Entry]) -> str:
    """Why a path cannot be trusted; "" when it can."""
    if any(not c.isprintable() for c in entry.path) or "\\" in entry.path:
        return "its name has control characters, a backslash, or is not UTF-8; rename it"
    if entry.kind == "other":
        return "a device, pipe or socket; a task holds files, folders and links within itself"
    if entry.kind == "link":
        return _leaves(entry, by_path)
    return ""


def _leaves(link: Entry, by_path: dict[str, Entry]) -> str:
    """Follow a link by the names seen (nothing on disk is asked), and say when it leaves the task or never ends."""
    path, hops = link.path, 0
    while True:
        stop = next((p for p in [*_parents(path), path] if p in by_path and by_path[p].kind == "link"), None)
        if stop is None:
            around = path == "." or link.path.startswith(path + "/")
            return "a link to a folder that holds it; remove it" if around else ""
        target, hops = by_path[stop].target, hops + 1
        if hops > 40:
            return "a link that leads to itself; replace it by a file"
        if re.search(r"[^./][^/]*/+\.\.(/|$)", target):  # where that leads depends on other links
            return f"a link to {printable(target)!r}: put '..' only at its beginning"
        if target.startswith("/"):
            return f"a link to the absolute path {printable(target)!r}, outside of the task; replace it by a file"
        rest = path[len(stop) :].lstrip("/")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(stop), target, rest))
        if path == ".." or path.startswith("../"):
            return f"a link to {printable(target)!r}, which leaves the task; replace it by a file"


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def printable(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path)[:300]
