"""The versions of what a proposer keeps (`memory/` and `tools/`), and what each episode changed, as differences.

Read from the store's folder as docs/proposer.md describes it: `versions.jsonl` and `versions/NNNN/`. What lies in it was written
in a sandbox: links are not followed, sizes are capped, and nothing of it is run.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import traitlets

from workbench.report.explore_data import pairs
from workbench.report.explore_panel import Panel
from workbench.report.live_state import short
from workbench.report.widget import visible
from workbench.runs.folder import Run, find_run, open_run
from workbench.tasks.digest import TooMany, read_plain, walk

PARTS = ("memory/", "tools/")
MOST_VERSIONS, MOST_LOG = 5_000, 64 << 20  # versions, bytes of versions.jsonl
MOST_FILE, MOST_FILES, MOST_LINES = 256 << 10, 400, 2_000  # bytes, files, lines of both sides that are compared
MOST_SHOWN = 60_000  # characters of a difference
FACTS = "number source parent started changed replaced digest"


def find_store(run: Run | str | Path) -> Path:
    """The folder of a store: itself, or the one in a run's folder. FileNotFoundError when there is none."""
    folder = run.folder if isinstance(run, Run) else Path(run)
    if not isinstance(run, Run) and not folder.is_dir():
        folder = open_run(find_run(run)).folder
    places = [
        folder / "versions.jsonl",
        *sorted(folder.glob("*/versions.jsonl")),
        *sorted(folder.glob("*/*/versions.jsonl")),
    ]
    found = next((p.parent for p in places if p.is_file() and not p.is_symlink()), None)
    if found is None:
        raise FileNotFoundError(
            f"{folder} has no store of a harness proposer (a folder with versions.jsonl): give its `store`"
        )
    return found


def read_versions(folder: Path) -> list[dict[str, Any]]:
    """The rows of versions.jsonl; torn and odd lines are left out."""
    rows = []
    for line in read_plain(folder / "versions.jsonl", MOST_LOG).splitlines()[:MOST_VERSIONS]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("number"), int) and 0 <= row["number"] < MOST_VERSIONS:
            rows.append(row)
    return rows


def files_in(folder: Path, number: int) -> dict[str, bytes | None]:
    """path → bytes of a version, None for what is too large to compare. Links and special files are not there."""
    root, found = folder / "versions" / f"{number:04d}", {}
    if root.is_symlink() or not root.is_dir():
        return {}
    try:
        for entry in walk(root, MOST_FILES):
            if entry.kind == "file" and entry.path.startswith(PARTS):
                found[entry.path] = read_plain(root / entry.path, MOST_FILE) if entry.size <= MOST_FILE else None
    except (TooMany, OSError, ValueError) as error:
        found[short(f"… {error}")] = None
    return found


def difference(folder: Path, old: int, new: int) -> str:
    """What changed from one version to another, as a unified diff that is safe to show; what is no text is named only."""
    before, after = files_in(folder, old), files_in(folder, new)
    parts, size = [], 0
    for name in sorted({*before, *after}):
        a, b = before.get(name, b""), after.get(name, b"")
        if a == b and a is not None:
            continue
        parts.append(_of_file(visible(name), a, b, name in before, name in after))
        size += len(parts[-1])
        if size > MOST_SHOWN:
            return "\n".join(parts)[:MOST_SHOWN] + "\n[… more is not shown]"
    return "\n".join(parts)


def _of_file(name: str, a: bytes | None, b: bytes | None, had: bool, has: bool) -> str:
    names = (name if had else "(not there)", name if has else "(removed)")
    if a is None or b is None:
        return f"{name}: more than {MOST_FILE >> 10} kB, not compared"
    if b"\0" in a + b:
        return f"{name}: not a text, {len(a):,} to {len(b):,} bytes"
    lines = [[visible(line) for line in data.decode("utf-8", "replace").split("\n")] for data in (a, b)]
    if sum(map(len, lines)) > MOST_LINES:
        return f"{name}: {len(lines[0]):,} to {len(lines[1]):,} lines, too many to compare"
    return (
        "\n".join(difflib.unified_diff(*lines, *names, lineterm="")) or f"{name}: only its line ends or its mode differ"
    )


class HarnessVersions(Panel):
    """Choose a version; its difference from the one it was laid over is shown, or from `against` when that is not -1."""

    against = traitlets.Int(-1)

    def __init__(self, store: Run | str | Path):
        self.folder = find_store(store)
        self.versions = {row["number"]: row for row in read_versions(self.folder)}
        super().__init__(tabs=["changes", "files"], title=f"{len(self.versions)} versions of the proposer's harness")
        self.tab = "changes"

    @traitlets.observe("against")
    def _compared(self, _: Any) -> None:
        self.draw()

    @property
    def number(self) -> int:
        """The chosen version; the newest when none is."""
        chosen = int(self.item) if self.item.isdecimal() else -1
        return chosen if chosen in self.versions else max(self.versions, default=-1)

    def draw(self) -> None:
        newest = sorted(self.versions.values(), key=lambda row: -row["number"])
        self.items = [[str(row["number"]), _cells(row)] for row in newest]
        if not newest:
            self.blocks = [{"kind": "note", "text": "no versions yet"}]
            return
        row = self.versions[self.number]
        facts = {"kind": "facts", "name": f"version {self.number}", "rows": pairs(row, FACTS)}
        self.blocks = [facts, self._changes(row) if self.tab == "changes" else self._files()]

    def _changes(self, row: dict[str, Any]) -> dict[str, Any]:
        base = self.against if self.against >= 0 else row.get("parent")
        if not isinstance(base, int) or base not in self.versions:
            return {"kind": "note", "text": "the first version: nothing stands before it"}
        text = difference(self.folder, base, self.number) or "no difference"
        return {"kind": "diff", "name": f"from version {base}", "text": text}

    def _files(self) -> dict[str, Any]:
        found = files_in(self.folder, self.number)
        rows = [[short(name), f"{len(data):,}" if data is not None else "large"] for name, data in found.items()]
        return {"kind": "table", "name": "files", "columns": ["file", "bytes"], "rows": rows}


def _cells(row: dict[str, Any]) -> list[str]:
    changed, replaced = (len(v) if isinstance(v := row.get(k), list) else 0 for k in ("changed", "replaced"))
    over = f", {replaced} replaced another's" if replaced else ""
    return [str(row["number"]), short(row.get("source", ""), 60), f"{changed} changed{over}"]


__all__ = ["HarnessVersions", "difference", "find_store", "read_versions"]
