"""Rooms import downward only, and importing any of them imports nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "workbench"
HEAVY = ("torch", "transformers", "harbor", "litellm", "docker", "trl", "vllm", "papermill", "ray")
ANYONE = {"runs", "statistics", "paths", "__init__"}  # any room may import these

# What each room may import, as in docs/architecture.md; a room may always import itself.
BELOW: dict[str, set[str]] = {"tasks": set(), "models": set(), "traces": set(), "runs": set()}
BELOW["sandboxes"] = {"tasks"}
BELOW["agents"] = {"tasks", "sandboxes", "models", "traces"}
BELOW["trials"] = BELOW["agents"] | {"agents"}
BELOW["admission"] = BELOW["trials"] | {"trials"}
BELOW["worlds"] = {"tasks", "trials"}
BELOW["proposer"] = BELOW["admission"] | {"admission", "worlds"}
BELOW["training"] = BELOW["proposer"] | {"proposer"}
BELOW["report"] = {"traces", "tasks"}
TOP = {"cli", "check", "notebooks", "data"}  # above all rooms: no room imports them


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[tuple[str, int]]:
    """(room, line) of every import of this package, lazy ones too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write absolute imports"
            names = [node.module or ""]
            if node.module == "workbench":
                names = [f"workbench.{alias.name}" for alias in node.names]
        found |= {(name.split(".")[1], node.lineno) for name in names if name.startswith("workbench.")}
    return found


def sources() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "notebooks" not in p.parts and "data" not in p.parts)


def test_every_room_stands_in_the_table():
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert rooms - TOP <= BELOW.keys()


@pytest.mark.parametrize("path", sources(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_go_downward(path):
    room = room_of(path)
    if room in TOP:
        return
    allowed = BELOW.get(room, set()) | ANYONE | {room}
    wrong = [
        f"line {line}: {name}" for name, line in imported_rooms(path) if name not in allowed and name != "__version__"
    ]
    assert not wrong, f"{room} must not import from above or beside it: {wrong}"


def modules() -> list[str]:
    rooms = [f"workbench.{p.name}" for p in PACKAGE.iterdir() if (p / "__init__.py").exists()]
    return sorted(["workbench", "workbench.check", "workbench.statistics", "workbench.cli.parser", *rooms])


def test_importing_any_room_is_light():
    code = (
        "import importlib, sys\n"
        f"for name in {modules()!r}:\n"
        "    importlib.import_module(name)\n"
        f"    heavy = [h for h in {HEAVY!r} if h in sys.modules]\n"
        "    assert not heavy, f'{name} imports {heavy}'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
