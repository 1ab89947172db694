"""Every command line that the documentation shows, as it stands there."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks" / "README.md",
    *(
        page for page in sorted((ROOT / "data").rglob("README.md")) if "environment" not in page.parts
    ),  # a task's own files
)
_FENCE = re.compile(r"^```")
_BEGINS = re.compile(
    r"^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:workbench|python3? -m|python|jupyter|harbor|make|sh scripts/\S+)(?: |$).*)"
)


@dataclass(frozen=True)
class Shown:
    page: str
    line: int
    text: str  # without prompt and comment

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def commands() -> list[Shown]:
    """Commands in code blocks, indented or fenced. A line that ends in a backslash goes on in the next one."""
    return [shown for page in PAGES for shown in _of(page)]


def _of(page: Path) -> list[Shown]:
    found, fenced, whole, begun = [], False, "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if not fenced and not line.startswith("    "):
            whole = ""
            continue
        part = re.sub(r"\s{2,}#.*|\s#\s.*", "", line.strip())
        whole, begun = (f"{whole} {part}", begun) if whole else (part, number)
        if whole.endswith("\\"):
            whole = whole[:-1].rstrip()
            continue
        if match := _BEGINS.match(whole):
            found.append(Shown(page.relative_to(ROOT).as_posix(), begun, match[1].strip()))
        whole = ""
    return found
